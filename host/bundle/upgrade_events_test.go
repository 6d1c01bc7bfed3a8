package bundle

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/all"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/upgrade"
)

// An actor that keeps events comes to other code by them, also one of a keyed actor, which the manifest does not name: with
// messages that have come at once, and asleep.
func TestKeyedActorsGoByTheirEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("a guest of standard Go is built and compiled, and compiled again")
	}
	state := t.TempDir()
	m, err := LoadWith("../../samples/accounts", func(name string) (string, bool) { return state, name == "STATE" }, all.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), m, Options{Allow: func([]Reach) error { return nil }, CacheDir: servicetest.CacheDir(), Compiler: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	sys, err := b.Start(func(c host.Config) host.Config { return c.WithMostAwake(1).WithIdleAfter(time.Millisecond) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := sys.Lookup("/user/account")
	if err != nil {
		t.Fatal(err)
	}
	balance := func(name string, amounts ...int) (n int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, amount := range amounts {
			order := map[string]any{"account": name, "amount": amount}
			if i+1 < len(amounts) {
				if err := sys.Tell(keeper, order); err != nil {
					t.Fatal(err)
				}
				continue
			}
			answer, err := sys.Ask(ctx, keeper, order)
			if err == nil {
				err = answer.Decode(&n)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	if a, s := balance("awake", 500, 20, 3), balance("other", 40, 2); a != 523 || s != 42 {
		t.Fatal(a, s)
	}
	for end := time.Now().Add(time.Minute); sys.View().Stats().Asleep == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("none is asleep")
		}
	}
	image, err := b.Twin(t.Context(), "accounts", true)
	if err != nil {
		t.Fatal(err)
	}
	r, err := upgrade.Run(t.Context(), sys, b.Module("accounts"), image, upgrade.Options{Ways: func(string, string) []upgrade.Way { return []upgrade.Way{upgrade.Events} }})
	if err != nil {
		t.Fatal(err)
	}
	went := 0
	for i := range r.Actors {
		if a := &r.Actors[i]; strings.HasPrefix(a.Path, "/user/account/") {
			if went++; a.Way != upgrade.Events || a.Did != upgrade.Upgraded {
				t.Errorf("%+v", a)
			}
		}
	}
	if went != 2 {
		t.Errorf("%d accounts, %+v", went, r.Actors)
	}
	if a, s := balance("awake", 1), balance("other", 1, 1); a != 524 || s != 44 {
		t.Error(a, s)
	}
}
