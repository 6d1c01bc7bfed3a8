// Package all is the services that come with wasmactors, for programs that want all of them:
// the command, and what is made from manifests. An embedder links those that it needs.
package all

import (
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/blob"
	"github.com/wasmactors/wasmactors/host/service/config"
	"github.com/wasmactors/wasmactors/host/service/events"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
	"github.com/wasmactors/wasmactors/host/service/journal"
	"github.com/wasmactors/wasmactors/host/service/kv"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
	"github.com/wasmactors/wasmactors/host/service/schedule"
	"github.com/wasmactors/wasmactors/host/service/sql"
	"github.com/wasmactors/wasmactors/host/service/tcp"
	"github.com/wasmactors/wasmactors/host/service/udp"
)

// Kinds are the services, in the order in which they are started.
func Kinds() []service.Kind {
	return []service.Kind{
		config.Service, kv.Service, blob.Service, sql.Service, pubsub.Service, events.Service, journal.Service, schedule.Service, httpclient.Service, tcp.Service, udp.Service,
	}
}
