package baskets

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// The bundle of docs/guide/event-sourcing.md: a basket is what it was when the run before has ended, and of an empty one nothing is kept.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := bundle.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	m.Store.Path = filepath.Join(t.TempDir(), "state")
	for run, want := range []string{"map[jam:1 tea:1]", "map[jam:2 tea:2]", "map[]"} {
		b, err := bundle.Open(ctx, m, bundle.Options{Compiler: "go", CacheDir: servicetest.CacheDir(), Allow: func([]bundle.Reach) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		sys, err := b.Start(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		tell := func(words ...string) (text string) {
			for _, word := range words {
				to, err := sys.AddressOf("/user/baskets/ann")
				if err != nil {
					t.Fatal(err)
				}
				a, err := sys.Ask(ctx, to.To, to.Message(word))
				var things map[string]int
				if err = errors.Join(err, a.Decode(&things)); err != nil {
					t.Fatal(err)
				}
				text = fmt.Sprint(things)
			}
			return text
		}
		got := ""
		if run < 2 {
			got = tell("tea", "jam")
		} else {
			got = tell("clear")
		}
		if got != want {
			t.Errorf("run %d: %s, want %s", run, got, want)
		}
		if j := persist.Of(sys); j == nil {
			t.Error("no journal")
		} else if err := j.Idle(ctx); err != nil {
			t.Error(err)
		} else if i, err := j.Info("/user/baskets/ann"); err != nil || i.Last == 0 || run == 2 && i.Bytes != 0 || run < 2 && i.Last-i.Deleted != 1 {
			t.Errorf("%+v, %v", i, err)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
