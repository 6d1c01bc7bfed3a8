package bundle

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/upgrade"
)

// keeping is a bundle with a store, in a process of its own as far as the store can tell.
type keeping struct {
	t   *testing.T
	dir string
	b   *Bundle
	sys *host.System
	log bytes.Buffer
}

const keepingManifest = `wasmactors: 1
name: tally
store: {path: ./state, size: 64MiB}
modules: {m: {wasm: m.wasm, limits: {memory: 1MiB}}}
actors: {a: {type: m/tally, durable: true}, b: {type: m/tally, durable: true, upgrade: [state, restart]}, c: {type: m/tally}}
`

// startKeeping runs the bundle of a folder, with a module.
func startKeeping(t *testing.T, dir, module string) *keeping {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), tallyOf(t, module), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(keepingManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeping{t: t, dir: dir}
	if k.b, err = Open(context.Background(), m, Options{Log: slog.New(slog.NewTextHandler(&k.log, nil))}); err != nil {
		t.Fatal(err)
	}
	if k.sys, err = k.b.Start(nil, nil); err != nil {
		_ = k.b.Close(context.Background())
		t.Fatal(err)
	}
	return k
}

// killed is a folder with what is left of the process when it is killed now.
func (k *keeping) killed() string {
	k.t.Helper()
	dir := k.t.TempDir()
	for _, sub := range []string{"log", "modules", "."} {
		if err := os.MkdirAll(filepath.Join(dir, "state", sub), 0o700); err != nil {
			k.t.Fatal(err)
		}
		from := filepath.Join(k.dir, "state", sub)
		all, err := os.ReadDir(from)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, f := range all {
			if f.IsDir() || f.Name() == "lock" {
				continue
			}
			b, err := os.ReadFile(filepath.Join(from, f.Name()))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "state", sub, f.Name()), b, 0o600)
			}
			if err != nil {
				k.t.Fatal(err)
			}
		}
	}
	return dir
}

func (k *keeping) ask(name string) (n uint64) {
	k.t.Helper()
	ref, err := k.sys.Lookup("/user/" + name)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := k.sys.Ask(ctx, ref, 0)
	if err == nil {
		err = answer.Decode(&n)
	}
	if err != nil {
		k.t.Fatal(name, err)
	}
	return n
}

func (k *keeping) end() {
	k.t.Helper()
	if err := k.b.Close(context.Background()); err != nil {
		k.t.Error(err)
	}
}

func (k *keeping) upgrade(module string) Upgraded {
	k.t.Helper()
	c, err := k.b.PrepareModule(context.Background(), "m", tallyOf(k.t, module), Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	done, err := c.Upgrade(context.Background(), k.sys, upgrade.Options{}, nil)
	if err != nil || len(done) != 1 {
		k.t.Fatal(done, err)
	}
	return done[0]
}

// Durable actors are upgraded as others are, and come back with their code and state after a crash. If the manifest names other code, they
// are upgraded to that when they are back, in the ways that it says; where that fails they keep what they have, and the log says so.
func TestDurableActorsAndOtherCode(t *testing.T) {
	k := startKeeping(t, t.TempDir(), "tally1")
	k.ask("a")
	k.ask("b")
	k.ask("c")
	if u := k.upgrade("tally2"); u.Stopped != "" || len(u.Actors) != 3 {
		t.Fatalf("%+v", u.Report)
	}
	if a, b, c := k.ask("a"), k.ask("b"), k.ask("c"); a != 202 || b != 202 || c != 202 {
		t.Errorf("%d %d %d", a, b, c)
	}
	for _, x := range []struct {
		module  string
		a, b, c uint64
		says    string
	}{
		{"tally2", 203, 203, 201, ""},
		{"tally1", 103, 103, 101, "2 upgraded"}, // the upgrade was given by hand, and its manifest names the code before it
		{"load-trap", 203, 203, 201, "keeps the code that it had"},
		{"save-trap", 203, 203, 201, "2 upgraded"},
	} {
		t.Run(x.module, func(t *testing.T) {
			dir := k.killed()
			for life := range uint64(3) {
				k := startKeeping(t, dir, x.module)
				if a, b, c := k.ask("a"), k.ask("b"), k.ask("c"); a != x.a+life || b != x.b+life || c != x.c {
					t.Errorf("life %d: %d %d %d", life, a, b, c)
				}
				if said := k.log.String(); life == 0 && !strings.Contains(said, x.says) || x.says == "" && strings.Contains(said, "code") {
					t.Errorf("life %d: %s", life, said)
				}
				if life == 1 {
					dir = k.killed()
				} else if err := k.b.Store().Checkpoint(context.Background()); err != nil {
					t.Error(err)
				}
				k.end()
			}
		})
	}
	k.end()
}
