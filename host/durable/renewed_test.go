package durable

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// An actor that was restarted with other props, as by `reload`, is back with them whenever the process is killed, and so are its children.
func TestRenewedActors(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	module := host.NewModule(puppetImage(t))
	puppet := func(records ...[]byte) host.Props {
		return host.GuestOf(module, "puppet").WithArgs(script(records...)).WithDurable().WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	}
	kid := func(n byte) host.Props {
		return puppet(rec(recAdd, n), rec(0, 0, send("/user/outside", text(fmt.Sprint("kid ", n)))))
	}
	with := func(n byte, kids ...string) Props {
		p := puppet(rec(recAdd, n), rec(0, 0, send("/user/outside", text(fmt.Sprint("p ", n)))))
		var all []host.Child
		for _, name := range kids {
			all = append(all, host.Child{Name: name, Props: kid(n).WithChildren(host.Child{Name: "x", Props: kid(n)})})
		}
		return Props{"p": p.WithChildren(all...)}
	}
	for _, c := range []struct {
		name string
		a, b Props
	}{
		{"the same", with(1), with(1)},
		{"the same, with a child", with(1, "k"), with(1, "k")},
		{"arguments", with(1), with(2)},
		{"arguments of children", with(1, "k", "l"), with(2, "k", "l")},
		{"an added child", with(1, "k"), with(1, "j", "k", "l")},
		{"the first child", with(1), with(1, "k")},
		{"a removed child", with(1, "j", "k", "l"), with(1, "l")},
		{"the last child", with(1, "k"), with(1)},
		{"others", with(1, "j", "k"), with(2, "k", "l")},
	} {
		test := func(t *testing.T, checkpoint bool) {
			w, err := live(t, crashfs.New(), host.NewVirtualClock(begun), c.a, false)
			if err != nil {
				t.Fatal(err)
			}
			w.rest()
			if checkpoint {
				if err := w.store.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ref, err := w.Lookup("/user/p")
			if err == nil {
				err = w.Operate().Renew(ref, c.b["p"])
			}
			if err != nil {
				t.Fatal(err)
			}
			recorded := false // that children are taken away
			check := func(when string, want map[string]string) {
				back, err := live(t, w.fs.Copy(), host.NewVirtualClock(begun), c.b, false)
				if err != nil && want == nil && !recorded && strings.Contains(err.Error(), "starts no such child now") {
					return // as after an edit of the manifest alone
				}
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				recorded = true
				back.rest()
				for path, x := range want {
					if got := back.look()[path]; got != x {
						t.Errorf("%s: %s: %s", when, path, around(x, got))
					}
				}
				back.end(t)
			}
			for n := 0; w.Step() || w.store.Work(); n++ {
				check(fmt.Sprint("after ", n, " steps"), nil)
			}
			check("at the end", w.look())
			w.end(t)
		}
		t.Run(c.name, func(t *testing.T) { test(t, false) })
		t.Run(c.name+", behind a checkpoint", func(t *testing.T) { test(t, true) })
	}
}
