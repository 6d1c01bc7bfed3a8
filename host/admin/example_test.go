package admin_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/client"
	"github.com/wasmactors/wasmactors/host/observe"
)

// A program opens its system to `wasmactors tree --bundle PATH` with one call.
func ExampleServe() {
	ctx := context.Background()
	sys, err := host.New(host.NewConfig("shop"))
	if err != nil {
		log.Fatal(err)
	}
	defer sys.Close(ctx)
	dir, err := os.MkdirTemp("", "shop") // endpoint.Path has one where `wasmactors ps` looks
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	server, err := admin.Serve(ctx, sys, admin.NewConfig().WithSocket(filepath.Join(dir, "shop.sock")))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	c := client.Dial(filepath.Join(dir, "shop.sock"))
	defer c.Close()
	about, err := client.Get[observe.System](ctx, c, "/v1/system", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(about.Name)
	// Output: shop
}
