// Package all is the services that come with wasmactors, for programs that want all of them:
// the command, and what is made from manifests. An embedder links those that it needs.
package all

import (
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/pubsub"
)

// Kinds are the services, in the order in which they are started.
func Kinds() []service.Kind { return []service.Kind{pubsub.Service} }
