package blob_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/blob"
)

// An actor in Go puts an object as a guest does.
func Example() {
	dir, err := os.MkdirTemp("", "blob")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sys, err := host.New(host.NewConfig("example"))
	if err != nil {
		panic(err)
	}
	running, err := blob.Service.Start(sys, &service.Env{Base: dir}, &blob.Settings{Folder: "blobs"})
	if err != nil {
		panic(err)
	}
	answers := make(chan int)
	props := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Sender == running.Ref() {
			var out struct {
				Size int `cbor:"size"`
			}
			if err := m.Decode(&out); err != nil { // a reply that is an error, too
				panic(err)
			}
			answers <- out.Size
			return nil
		}
		object := map[string]any{"name": "hello.txt", "data": []byte("hello"), "type": "text/plain"}
		return ctx.Ask(running.Ref(), []any{"put", object}, 1, time.Minute)
	})
	props = props.WithGrant("blob", blob.Service.Grant(blob.Grant{Namespace: "pictures", Access: "rw"}, service.Bounds{}))
	ref, err := sys.Spawn("keeper", props)
	if err != nil {
		panic(err)
	}
	if err := sys.Tell(ref, "go"); err != nil {
		panic(err)
	}
	fmt.Println(<-answers)
	_ = sys.Close(context.Background())
	_ = running.Wait(context.Background())
	// Output: 5
}
