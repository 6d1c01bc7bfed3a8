//go:build unix

package main

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/admin/endpoint"
)

// Nodes are offered by their names, which tell those of one bundle apart; a bundle in no cluster by its own.
func TestNodesAreCompleted(t *testing.T) {
	dir, err := os.MkdirTemp("", "find") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
	for pid, node := range map[int]string{11: "n1", 12: "n2", 13: ""} {
		name := "shop"
		if node == "" {
			name = "bank"
		}
		path, err := endpoint.Path(pid, name)
		if err != nil {
			t.Fatal(err)
		}
		sys, err := host.New(host.NewConfig(name))
		if err != nil {
			t.Fatal(err)
		}
		server, err := admin.Serve(t.Context(), sys, admin.NewConfig().WithSocket(path).WithNode(node))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Close()
			_ = sys.Close(context.Background())
		})
	}
	if got := begin(bundles(t.Context()), ""); !slices.Equal(got, []string{"bank", "shop@n1", "shop@n2"}) {
		t.Error(got)
	}
	if got := begin(bundles(t.Context()), "shop@n2"); !slices.Equal(got, []string{"shop@n2"}) {
		t.Error(got)
	}
}
