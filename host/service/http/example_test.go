package httpclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
)

// A service without a manifest: settings, a grant, an actor that has it.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.URL.Path) }))
	defer server.Close()

	sys, err := host.New(host.NewConfig("shop"))
	if err != nil {
		panic(err)
	}
	run, err := httpclient.Service.Start(sys, nil, &httpclient.Settings{Connections: 100})
	if err != nil {
		panic(err)
	}
	grant := httpclient.Service.Grant(httpclient.Grant{
		Hosts: []string{server.URL}, Private: []string{"loopback"}, Paths: []string{"/v1/**"},
	}, service.Bounds{AtOnce: 10})

	done := make(chan struct{})
	props := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			request := []any{"do", map[string]any{"url": server.URL + "/v1/tea"}}
			return ctx.Ask(run.Ref(), request, 1, 30*time.Second)
		}
		var answer struct {
			Status int    `cbor:"status"`
			Body   []byte `cbor:"body"`
		}
		if err := m.Decode(&answer); err != nil {
			return err
		}
		fmt.Println(answer.Status, string(answer.Body))
		close(done)
		return nil
	}).WithGrant(httpclient.Name, grant)
	ref, err := sys.Spawn("asker", props)
	if err != nil {
		panic(err)
	}
	_ = sys.Tell(ref, "go")
	<-done

	_ = sys.Close(context.Background())
	_ = run.Wait(context.Background())
	// Output: 200 hello /v1/tea
}
