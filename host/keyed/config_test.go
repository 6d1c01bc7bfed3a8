package keyed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Each bound of a configuration is what Check says, to the last value, and a keeper that breaks one does not start.
func TestConfigIsChecked(t *testing.T) {
	w := newWorld(t)
	c := keyed.New(w.worker())
	for what, bounds := range map[string]struct{ good, bad []keyed.Config }{
		"keys, must be":             {[]keyed.Config{c.WithMax(1), c.WithMax(keyed.MaxKeys)}, []keyed.Config{c.WithMax(0), c.WithMax(keyed.MaxKeys + 1)}},
		"keys per sender":           {[]keyed.Config{c.WithMaxPerSender(0), c.WithMaxBytes(0)}, []keyed.Config{c.WithMaxPerSender(-1), c.WithMaxBytes(-1)}},
		"idle after":                {[]keyed.Config{c.WithIdle(keyed.MinIdle)}, []keyed.Config{c.WithIdle(keyed.MinIdle - 1)}},
		"a buffer of":               {[]keyed.Config{c.WithBuffer(1, 1)}, []keyed.Config{c.WithBuffer(0, 1), c.WithBuffer(1, 0)}},
		"keys to remember, must be": {[]keyed.Config{c.WithRemember(0), c.WithRemember(keyed.MaxRemember)}, []keyed.Config{c.WithRemember(-1), c.WithRemember(keyed.MaxRemember + 1)}},
		"a header's name":           {[]keyed.Config{c.WithHeader(strings.Repeat("h", abi.MaxHeaderKey))}, []keyed.Config{c.WithHeader(strings.Repeat("h", abi.MaxHeaderKey+1))}},
	} {
		for _, good := range bounds.good {
			if err := good.Check(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, bad := range bounds.bad {
			if err := bad.Check(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	both := c.WithIdle(0).WithRemember(-1).Check()
	if both == nil || strings.Count(both.Error(), "\n") != 1 {
		t.Errorf("two mistakes: %v", both)
	}
	if _, err := w.Spawn("odd", c.WithIdle(0).Props()); !errors.Is(err, host.ErrBadProps) || !strings.Contains(err.Error(), "idle after") {
		t.Error("a keeper that cannot work is spawned:", err)
	}
}

func TestAtLimitsHaveNames(t *testing.T) {
	for i, name := range keyed.AtLimits() {
		if a, ok := keyed.ParseAtLimit(name); !ok || a != keyed.AtLimit(i) {
			t.Errorf("%s: %v, %v", name, a, ok)
		}
	}
	if a, ok := keyed.ParseAtLimit("none"); ok || a != keyed.Refuse {
		t.Errorf("a name that there is not: %v, %v", a, ok)
	}
}

// The limits of the keeper follow its configuration where that says more than they do.
func TestLimitsOfTheKeeper(t *testing.T) {
	t.Run("children and watches", func(t *testing.T) {
		const keys = host.DefaultWatches + 1
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithMax(keys))
		for i := range keys {
			w.post(r, keyed.For(fmt.Sprint("k", i), "x"))
			if i%1000 == 999 {
				w.run()
			}
		}
		w.run()
		if n := len(w.live); n != keys {
			t.Errorf("%d actors of %d", n, keys)
		}
		if es := w.page(r, keyed.Page{}); len(es) != keyed.MostKeys {
			t.Errorf("%d keys in a page", len(es))
		}
		if es := w.page(r, keyed.Page{Most: keyed.MostKeys + 1}); len(es) != keyed.MostKeys {
			t.Errorf("%d keys in a page of more than there may be", len(es))
		}
	})
	t.Run("stash and bytes", func(t *testing.T) {
		const each = 50 << 10
		waits := host.DefaultHeld/each + 200 // more than the defaults of both
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithIdle(time.Hour).WithBuffer(4*waits, 8*host.DefaultHeld).WithLimits(host.Limits{MailboxBytes: 4 * host.DefaultHeld, Mailbox: 2 * waits}))
		w.tell(r, "a", "0")
		a := must(w.Lookup("/user/users/a"))(t)
		must(0, w.Operate().Pause(a, false))(t)
		w.run()
		w.post(r, host.Headed{Value: "a", Headers: map[string]string{keyed.Header: "passivate"}})
		w.run()
		text := strings.Repeat("x", each)
		for range waits {
			w.post(r, keyed.For("a", text))
			w.run()
		}
		w.heard = nil
		must(0, w.Operate().Unpause(a, false))(t)
		w.run()
		if len(w.heard) != waits {
			_, dead := w.DeadLetters()
			t.Errorf("%d messages of %d, %d dead letters", len(w.heard), waits, dead)
		}
	})
	t.Run("of the embedder", func(t *testing.T) {
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithName("mine").WithLimits(host.Limits{Mailbox: 2}))
		if typ := must(w.View().Info(r))(t).Type; typ != "mine" {
			t.Errorf("it is a %q", typ)
		}
		w.post(r, keyed.For("a", "1"), keyed.For("a", "2"))
		if err := w.Tell(r, keyed.For("a", "3")); err == nil {
			t.Error("the mailbox has more than it may")
		}
	})
	t.Run("of the tree", func(t *testing.T) {
		for _, c := range []struct {
			tree host.TreeLimits
			ok   bool
		}{{host.TreeLimits{}, false}, {host.TreeLimits{Memory: 64 << 20}, true}} {
			w := newWorld(t)
			r := w.start(keyed.New(w.worker()).WithMaxBytes(100 << 10).WithLimits(host.Limits{Tree: c.tree}))
			w.tell(r, "a", "0")
			a := must(w.Lookup("/user/users/a"))(t)
			if err := w.Tell(a, strings.Repeat("x", 200<<10)); (err == nil) != c.ok {
				t.Errorf("a message of twice the bound, tree %+v: %v", c.tree, err)
			}
			w.run()
		}
	})
}
