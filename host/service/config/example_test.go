package config_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/config"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of the documentation, and that it stands there.
func TestBundle(t *testing.T) {
	m, err := bundle.LoadWith("testdata", nil, config.Service)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: "go", Allow: func([]bundle.Reach) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := b.Start(nil, func(*host.System) {})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Lookup("/user/shop")
	if err != nil {
		t.Fatal(err)
	}
	for order, want := range map[string]string{"string db.host": "db.example", "int retries": "3", "int db.pool": "5", "secret db.password none": "done 23"} {
		if got, err := host.AskAs[string](t.Context(), sys, ref, order); got != want || err != nil {
			t.Errorf("%s: %q, %v", order, got, err)
		}
	}
	if got := sys.Redaction().Text("not a secret of anybody"); strings.Trim(got, "*") != "" {
		t.Error(got)
	}
	_ = sys.Close(context.Background())
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile("../../../docs/services/config.md")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("testdata/bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(manifest), "services:\n  config")
	if !strings.Contains(string(page), "services:\n  config"+strings.TrimSpace(from)+"\n```") {
		t.Error("docs/services/config.md has another manifest")
	}
}

// keyring gives secrets out of Go.
type keyring map[string]string

func (k keyring) Secret(_ context.Context, key string) ([]byte, error) {
	if v, ok := k[key]; ok {
		return []byte(v), nil
	}
	return nil, fmt.Errorf("%s: %w", key, config.ErrNoSecret)
}

// A program has secrets of its own keeping.
func Example() {
	sys, _ := host.New(host.NewConfig("shop"))
	kind := config.New(map[string]config.Provider{"keyring": keyring{"api.token": "a token of six words or so"}})
	_, err := kind.Start(sys, nil, &config.Settings{Secrets: map[string]config.Secret{"api.token": {Provider: "keyring"}}})
	grant := kind.Grant(config.Grant{Secrets: []string{"api.*"}}, service.Bounds{})
	_, _ = sys.Spawn("shop", host.Func(func(*host.Context, host.Message) error { return nil }).WithGrant("config", grant))
	_ = sys.Close(context.Background())
	if err != nil {
		panic(err)
	}
	// Output:
}
