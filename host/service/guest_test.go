package service_test

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

func greeterKind() *service.Service[settings, grant] {
	return service.Define(service.Definition[settings, grant]{
		Name: "kv", Doc: "greets", // under a name that the guest asks for
		Open: func(*service.Env, *settings) (service.Provider[grant], error) {
			return &greeter{greeting: "hello"}, nil
		},
	})
}

// What a guest does, or makes others do, with services: only what it was granted itself.
func TestGuestsGrants(t *testing.T) {
	kind := greeterKind()
	w := servicetest.New(t, kind, nil, nil, func(c host.Config) host.Config { return c.WithMostAwake(1) })
	granted := kind.Grant(grant{[]string{"ann"}}, service.Bounds{})
	other := kind.Grant(grant{[]string{"bob"}}, service.Bounds{})
	a, b, none := w.Asker("a", granted), w.Asker("b", other), w.Asker("none", nil)
	greet := func(who host.Ref, name string) string {
		var text string
		if err := w.Request(who, "greet", map[string]string{"name": name}, &text); err != nil {
			return err.Error()
		}
		return text
	}
	for _, c := range []struct {
		who        host.Ref
		name, want string
	}{
		{a, "ann", "hello ann"}, {b, "bob", "hello bob"}, {a, "bob", "denied: bob may not"}, {b, "ann", "denied: ann may not"},
		{none, "ann", "denied: "},
	} {
		if got := greet(c.who, c.name); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s greets %s: %s", c.who, c.name, got)
		}
	}
	t.Run("a ref is no grant", func(t *testing.T) {
		m, err := w.Ask(t.Context(), none, []any{uint64(w.Running.Ref().UID()), "greet", map[string]string{"name": "ann"}})
		if err == nil || !strings.Contains(err.Error(), "denied: kv is not granted") {
			t.Error(m, err)
		}
	})
	t.Run("what is forwarded has no grant, whosever it was", func(t *testing.T) {
		for name, g := range map[string]any{"granted": granted, "other": other} {
			f := w.Spawn("forwarder-"+name, "service-forwarder", g, "kv")
			// a asks the forwarder, which forwards the request in the name of a.
			_, err := w.Ask(t.Context(), a, []any{uint64(f.UID()), "greet", map[string]string{"name": "ann"}})
			if err == nil || !strings.Contains(err.Error(), "denied: kv is not granted") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a grant outlives a restart", func(t *testing.T) {
		if err := w.Operate().Restart(a); err != nil {
			t.Fatal(err)
		}
		if got := greet(a, "ann"); got != "hello ann" {
			t.Error(got)
		}
	})
	t.Run("and sleep", func(t *testing.T) {
		for range 3 {
			if x, y := greet(a, "ann"), greet(b, "bob"); x != "hello ann" || y != "hello bob" {
				t.Error(x, y)
			}
		}
		if w.View().Stats().Asleep == 0 {
			t.Error("nobody sleeps")
		}
	})
}
