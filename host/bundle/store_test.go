package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/service"
)

const storeKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func TestStoreKeys(t *testing.T) {
	const head = "wasmactors: 1\nname: b\nmodules: {m: {wasm: m.wasm}, hot: {wasm: m.wasm, freeze: false}, d: {wasm: m.wasm, dirs: [{host: ., guest: /d}]}}\n"
	for _, c := range []struct{ manifest, want string }{
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: true}}\n", ""},
		{"store: {path: s, size: 64MiB, sync: 5ms, key: {env: K}}\nactors: {a: {type: m/echo, durable: true, children: {c: {type: m/echo}}}}\n", ""},
		{"actors: {a: {type: m/echo, durable: true}}\n", "4:37: actor a: durable needs the key store"},
		{"store: {path: s}\nactors: {a: {type: hot/echo, durable: true}}\n", "5:39: actor a: durable needs an image that is frozen, and the module hot has freeze: false"},
		{"store: {path: s}\nactors: {a: {type: d/echo, durable: true}}\n", "durable cannot be combined with dirs of the module d"},
		{"store: {path: s}\nactors: {a: {type: m/echo, children: {c: {type: m/echo, durable: true}}}}\n", "actor c: durable is for actors at the top"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: true, mailbox: {kind: priority, priorities: {header: x, values: {a: 1}}}}}\n", "mailbox"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: true, dispatcher: {thread: true}}}\n", "dispatcher"},
		{"store: {path: s}\nsupervision: {strategy: all-for-one}\nactors: {a: {type: m/echo, durable: true}}\n", "must be one-for-one"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: events, limits: {durable: 64MiB}, children: {c: {type: m/echo, durable: events}}}}\n", ""},
		{"store: {path: s}\nactors: {a: {type: hot/echo, durable: events, keyed: {field: k}}}\n", ""},
		{"actors: {a: {type: m/echo, durable: events}}\n", "actor a: durable: events needs the key store"},
		{"cluster: {}\nactors: {a: {type: m/echo, durable: events, keyed: {field: k}}}\n", "5:37: actor a: durable: events needs the key store"},
		{"cluster: {}\nactors: {a: {type: m/echo, durable: events, keyed: {scope: cluster}}, b: {type: m/echo, durable: events, singleton: {}, limits: {durable: 64KiB}}}\n", ""},
		{"cluster: {}\nactors: {a: {type: m/echo, durable: events, keyed: {scope: cluster}, limits: {durable: 1MiB}}}\n", "5:88: actor a: limits.durable is 1048576 bytes, at most 786432"},
		{"cluster: {}\nlimits: {durable: 1MiB}\nactors: {a: {type: m/echo, durable: events, singleton: {}}}\n", "6:37: actor a: limits.durable is 1048576 bytes, at most 786432"},
		{"cluster: {}\nactors: {a: {type: m/echo, durable: true, keyed: {scope: cluster}}}\n", "5:37: actor a: durable: true repeats what an actor was sent"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: true, children: {c: {type: m/echo, durable: events}}}}\n", "cannot keep events"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: evens}}\n", "cannot be \"evens\""},
		{"store: {path: s, size: 1MiB}\nactors: {a: {type: m/echo}}\n", "store.size"},
		{"store: {path: s, sync: 5h}\nactors: {a: {type: m/echo}}\n", "between 1ms and 1m"},
		{"store: {path: s, recovery: 50ms}\nactors: {a: {type: m/echo, durable: true, limits: {durable: 64MiB}}}\n", ""},
		{"store: {path: s, return: late}\nactors: {a: {type: m/echo, durable: true}}\n", ""},
		{"store: {path: s, return: start}\nactors: {a: {type: m/echo, durable: true}}\n", ""},
		{"store: {path: s, return: never}\nactors: {a: {type: m/echo, durable: true}}\n", "return"},
		{"store: {path: s, keep: 168h}\nactors: {a: {type: m/echo}}\n", ""},
		{"store: {path: s, keep: 5s}\nactors: {a: {type: m/echo}}\n", "store.keep must be 0, or between 1m0s and ten years"},
		{"store: {path: \"\"}\nactors: {a: {type: m/echo}}\n", "4:15: store.path must name a folder"},
		{"store: {path: \"a\\0b\"}\nactors: {a: {type: m/echo}}\n", "4:15: store.path must name a folder"},
		{"store: {path: s, recovery: 5ms}\nactors: {a: {type: m/echo}}\n", "store.recovery must be between 10ms and 1h"},
		{"store: {path: s}\nactors: {a: {type: m/echo, limits: {durable: 1}}}\n", "durable"},
		{"store: {path: s}\nactors: {a: {type: m/echo, limits: {durable: 64MiB}}}\n", "5:46: actor a: limits.durable bounds what is kept of an actor, and nothing is kept of this one: write durable: true or"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: events, limits: {durable: 64MiB}, children: {c: {type: m/echo, limits: {durable: 64MiB}}}}}\n", "actor c: limits.durable bounds"},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: true, children: {c: {type: m/echo, limits: {durable: 64MiB}}}}}\n", ""},
		{"store: {path: s}\nlimits: {durable: 64MiB}\nactors: {a: {type: m/echo}}\n", ""},
		{"store: {path: s}\nactors: {a: {type: m/echo, durable: wrong}}\n", "cannot be \"wrong\"; valid here: true, false, events"},
		{"cluster: {listen: \"127.0.0.1\"}\nactors: {a: {type: m/echo}}\n", "4:19: cluster.listen: the address \"127.0.0.1\" is not host:port"},
		{"cluster: {listen: \"127.0.0.1:65535\"}\nactors: {a: {type: m/echo}}\n", "a port from 1 to 65534"},
		{"store: {path: s, key: {}}\nactors: {a: {type: m/echo}}\n", "either env, file or command"},
		{"store: {path: s, key: {env: K, file: k}}\nactors: {a: {type: m/echo}}\n", "either env, file or command"},
		{"store: {path: s, key: {file: k, command: [cat, k]}}\nactors: {a: {type: m/echo}}\n", "either env, file or command"},
		{"store: {path: s, key: {command: []}}\nactors: {a: {type: m/echo}}\n", "store.key"},
		{"store: {path: s, key: {command: cat}}\nactors: {a: {type: m/echo}}\n", "store.key.command"},
		{"store: {path: s, key: {command: [cat, k]}}\nactors: {a: {type: m/echo}}\n", ""},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "bundle.yaml")
		if err := os.WriteFile(file, []byte(head+c.manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Load(file)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s\n%v", c.manifest, err)
		}
		if x := time.Duration(0); strings.Contains(c.manifest, "50ms") {
			if x = m.Store.Recovery; x != 50*time.Millisecond || m.Actors[0].Limits.Durable != 64<<20 {
				t.Error(x, m.Actors[0].Limits.Durable)
			}
		}
		if c.want == "" && m.Store == nil { // the cluster keeps events
			if m.Actors[0].Limits.Durable != journal.MaxBytes || m.Actors[1].Limits.Durable != 64<<10 {
				t.Error(m.Actors[0].Limits.Durable, m.Actors[1].Limits.Durable)
			}
			continue
		}
		if o := (durable.Options{}); c.want == "" && m.Store.KeyEnv == "" && len(m.Store.KeyCommand) == 0 {
			if o, err = m.Store.Options(); err != nil || o.Lazy != strings.Contains(c.manifest, "return: late") {
				t.Errorf("%s\n%v, %v", c.manifest, o.Lazy, err)
			}
		}
		if c.want == "" && m.Store.Path != filepath.Join(dir, "s") {
			t.Error(m.Store)
		}
	}
}

// Keys that a cluster remembers are those of all bundles of the name: who starts such a bundle is given them, and consent is asked.
func TestKeysOfAClusterNeedConsent(t *testing.T) {
	p := newPlace(t)
	m := p.load("wasmactors: 1\nname: b\nmodules: {m: {wasm: echo.wasm}}\ncluster: {}\nactors: {a: {type: m/echo, keyed: {scope: cluster, remember: true}}, b: {type: m/echo, keyed: {scope: cluster, remember: 9}}}\n")
	found := m.Reaches()
	if len(found) != 1 || found[0].Key != "actors.a.keyed.remember" || found[0].Kind != service.ReachCluster || found[0].Real != "b" || found[0].Line != 5 || found[0].Column != 62 {
		t.Fatalf("%+v", found)
	}
	var refused *OutsideError
	if err := (Options{}).Consent(m); !errors.As(err, &refused) || !strings.Contains(err.Error(), "actors.a.keyed.remember: ") {
		t.Errorf("without consent: %v", err)
	}
	if err := (Options{Allow: Permit(found[0].Permission())}).Consent(m); err != nil {
		t.Errorf("with consent: %v", err)
	}
}

// Events that a cluster keeps are those of all bundles of the name, which a stranger chooses: consent is asked. Spread actors that keep
// none need no consent.
func TestEventsOfAClusterNeedConsent(t *testing.T) {
	p := newPlace(t)
	actors := "cluster: {}\nactors: {a: {type: m/echo, durable: events, singleton: {}}, b: {type: m/echo, singleton: {}}, c: {type: m/echo, durable: events, keyed: {scope: cluster}}}\n"
	m := p.load("wasmactors: 1\nname: b\nmodules: {m: {wasm: echo.wasm}}\n" + actors)
	found := m.Reaches()
	if len(found) != 2 || found[0].Key != "actors.a.durable" || found[1].Key != "actors.c.durable" {
		t.Fatalf("%v", found)
	}
	for _, r := range found {
		if r.Kind != service.ReachCluster || r.Real != "b" || r.Line != 5 || r.Column < 37 {
			t.Errorf("%+v", r)
		}
	}
	var refused *OutsideError
	if err := (Options{}).Consent(m); !errors.As(err, &refused) || !strings.Contains(err.Error(), "actors.a.durable: ") {
		t.Errorf("without consent: %v", err)
	}
	other := Permission{service.ReachCluster, "shop"}
	if err := (Options{Allow: Permit(other)}).Consent(m); !errors.As(err, &refused) {
		t.Errorf("with consent to another name: %v", err)
	}
	if err := (Options{Allow: Permit(found[0].Permission())}).Consent(m); err != nil {
		t.Errorf("with consent: %v", err)
	}
}

// The service journal finds events of a store only: beside actors whose events a cluster keeps it is refused where they say so.
func TestNoServiceJournalInACluster(t *testing.T) {
	p := newPlace(t)
	for actors, want := range map[string]string{
		"a: {type: m/echo, durable: events, singleton: {}}":           "6:37: actor a: its events are kept by the nodes of the cluster, and services.journal finds those of a store only: remove that",
		"a: {type: m/echo, durable: events, keyed: {scope: cluster}}": "6:37: actor a: its events are kept by the nodes of the cluster",
		"a: {type: m/echo, singleton: {}}":                            "",
	} {
		p.file("b/"+FileName, "wasmactors: 1\nname: b\nmodules: {m: {wasm: echo.wasm}}\ncluster: {}\nservices: {journal: {}}\nactors: {"+actors+"}\n")
		if _, err := LoadWith(p.dir, nil, attacked()...); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", actors, err)
		}
	}
}

// A bundle with a key finds its actors again, without the key or with another one it does not start, and a second one of it
// is refused while it runs.
func TestBundleWithStore(t *testing.T) {
	p := newPlace(t)
	t.Setenv("K", storeKey)
	text := echoing + "store: {path: state, key: {env: K}}\n"
	text = strings.Replace(text, "type: echo", "type: echo, durable: true", 1)
	start := func() (*Bundle, *host.System, error) {
		o := Options{Allow: func([]Reach) error { return nil }, NoBuild: true}
		b, err := Open(t.Context(), p.load(text), o)
		if err != nil {
			t.Fatal(err)
		}
		sys, err := b.Start(nil, nil)
		if err != nil {
			return nil, nil, errOf(err, b.Close(context.Background()))
		}
		return b, sys, nil
	}
	b, sys, err := start()
	if err != nil {
		t.Fatal(err)
	}
	first, err := sys.Lookup("/user/a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := sys.Ask(ctx, first, "x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := start(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
	t.Setenv("K", strings.Repeat("ab", 32))
	if _, _, err := start(); err == nil || !strings.Contains(err.Error(), "key") {
		t.Error(err)
	}
	t.Setenv("K", "short")
	if _, _, err := start(); err == nil || !strings.Contains(err.Error(), "store.key: the variable K does not have 32 bytes") {
		t.Error(err)
	}
	t.Setenv("K", storeKey)
	b, sys, err = start()
	if err != nil {
		t.Fatal(err)
	}
	again, err := sys.Lookup("/user/a")
	if err != nil || again.UID() != first.UID() {
		t.Error(again, first, err)
	}
	i, err := sys.View().Info(again)
	if err != nil || i.Turns != 2 {
		t.Error(i.Turns, err)
	}
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}
