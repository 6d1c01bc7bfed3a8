package kv_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/kv"
)

func Example() {
	sys, _ := host.New(host.NewConfig("shop"))
	folder, _ := os.MkdirTemp("", "kv")
	defer os.RemoveAll(folder)
	env := &service.Env{StateDir: func() (string, error) { return folder, nil }}
	running, _ := kv.Service.Start(sys, env, &kv.Settings{})
	grant := kv.Service.Grant(kv.Grant{Namespace: "orders", Mode: "rw", Quota: 1 << 20}, service.Bounds{Rate: 100})
	_, _ = sys.Spawn("clerk", host.Func(func(ctx *host.Context, m host.Message) error {
		store, _ := ctx.Service("kv")
		return ctx.Tell(store, []any{"put", map[string]any{"key": "order/1", "value": []byte("tea")}})
	}).WithGrant("kv", grant))

	_ = sys.TellPath("/user/clerk", "an order")
	store, _ := kv.Of(running) // for whoever operates it
	for {
		if e, err := store.Get("orders", "order/1"); err == nil {
			fmt.Printf("%s\n", e.Value)
			break
		}
	}
	_ = sys.Close(context.Background())
	fmt.Println(running.Wait(context.Background()))
	// Output:
	// tea
	// <nil>
}

// What the page shows is a manifest, and what is wrong in one is told where it is.
func TestManifest(t *testing.T) {
	load := func(text string) (*bundle.Manifest, error) {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/bundle.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return bundle.LoadWith(dir, nil, kv.Service)
	}
	text, err := os.ReadFile("testdata/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := bundle.LoadWith("testdata", nil, kv.Service)
	if err != nil || len(m.Services) != 1 {
		t.Fatal(m, err)
	}
	for change, want := range map[[2]string]string{
		{"namespace: orders, mode: rw,", "mode: rw,"}:                    "a grant names its namespace",
		{"namespace: orders, mode: rw,", "namespace: Orders,"}:           "12:",
		{"namespace: orders, mode: rw,", "namespace: orders, mode: wr,"}: "mode",
		{"- {namespace: orders}", "- {namespace: reports}"}:              "is there twice",
		{"        rate: 100", "        mode: rw"}:                        "with namespaces, each has its own",
		{"durability: disk", "durability: paper"}:                        "durability",
	} {
		if _, err := load(strings.Replace(string(text), change[0], change[1], 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}
