package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/host/upgrade"
)

// The nearest actor above decides, itself included, and then the module; what makes no sense is refused with its place.
func TestUpgradeKey(t *testing.T) {
	m := parse(t, `wasmactors: 1
name: b
modules: {m: {wasm: ./m.wasm, upgrade: [replay, restart]}, n: {wasm: ./n.wasm}}
actors:
  a: {type: m/t, upgrade: [state], children: {k: {type: m/t, upgrade: [state, restart]}, l: {type: n/t}}}
  b: {type: n/t}
  c: {type: m/t}
`)
	for _, x := range []struct{ module, path, want string }{
		{"m", "/user/a", "[state]"}, {"m", "/user/a/k", "[state restart]"}, {"m", "/user/a/k/1", "[state restart]"}, {"n", "/user/a/l", "[state]"},
		{"m", "/user/a2", "[replay restart]"}, {"n", "/user/b/x", "[]"}, {"m", "/user/c", "[replay restart]"}, {"m", "/system/http/1", "[replay restart]"}, {"m", "", "[replay restart]"},
	} {
		if got := fmt.Sprint(m.ways(x.module)(x.path, "t")); got != x.want {
			t.Errorf("%s of %s: %s, want %s", x.path, x.module, got, x.want)
		}
	}
	for key, want := range map[string]string{
		"[replay, replay]": `"replay" is there twice`, "[state, state]": `"state" is there twice`, "[]": "it names no way", "[memory]": "valid here: state, events, replay, restart", "state": "must be a list",
	} {
		_, err := Parse(FileName, []byte("wasmactors: 1\nname: b\nmodules: {m: {wasm: ./m.wasm}}\nactors: {a: {type: m/t, upgrade: "+key+"}}\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":4:") {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

func tallyOf(t *testing.T, name string) []byte {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "upgrade", "testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// tallies runs a bundle of the guests of package upgrade's tests, and returns what an actor answers.
func tallies(t *testing.T, manifest string) (b *Bundle, sys *host.System, ask func(name string) uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.wasm"), tallyOf(t, "tally1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = Open(ctx, m, Options{CacheDir: servicetest.CacheDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(ctx) })
	if sys, err = b.Start(nil, nil); err != nil {
		t.Fatal(err)
	}
	return b, sys, func(name string) (n uint64) {
		t.Helper()
		ref, err := sys.Lookup("/user/" + name)
		if err != nil {
			t.Fatal(err)
		}
		within, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		answer, err := sys.Ask(within, ref, 0)
		if err == nil {
			err = answer.Decode(&n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

const talliesManifest = `wasmactors: 1
name: tally
modules: {m: {wasm: m.wasm, limits: {memory: 1MiB}}}
idle: {after: 0}
actors: {a: {type: m/tally}, b: {type: m/tally, upgrade: [restart]}}
`

// Code that is given takes the module's place, until the bundle is read again; the images that nobody runs are closed.
func TestUpgradeOfAModule(t *testing.T) {
	b, sys, ask := tallies(t, talliesManifest)
	ctx := context.Background()
	ask("a")
	ask("b")
	old := b.Images["m"]
	c, err := b.PrepareModule(ctx, "m", tallyOf(t, "tally2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	done, err := c.Upgrade(ctx, sys, upgrade.Options{}, nil)
	if err != nil || len(done) != 1 || done[0].Module != "m" || done[0].Now != b.Hash("m") || done[0].Before == done[0].Now {
		t.Fatal(done, err)
	}
	if x, y := ask("a"), ask("b"); x != 202 || y != 201 {
		t.Errorf("a says %d, which has kept its state, and b %d, which has not", x, y)
	}
	if b.Images["m"] == old || len(b.Codes()) != 1 || b.Codes()[0].Actors != 2 {
		t.Errorf("%+v", b.Codes())
	}
	if c, err := b.PrepareModule(ctx, "m", tallyOf(t, "tally2"), Options{}); err != nil || !c.Empty() {
		t.Error("the same code is no change:", err)
	}
	if c, err = b.Prepare(ctx, b.Manifest, Options{}, func(string) bool { return true }); err != nil || len(c.Modules) != 1 {
		t.Fatal(err)
	}
	if _, err = c.Upgrade(ctx, sys, upgrade.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if x := ask("a"); x != 103 {
		t.Error("a says", x)
	}
	_, err = b.PrepareModule(ctx, "m", []byte("no module"), Options{})
	if _, ok := err.(*ModuleError); !ok {
		t.Error(err)
	}
}

// A state goes over as it is to the same code under other limits.
func TestUpgradeOfLimits(t *testing.T) {
	b, sys, ask := tallies(t, strings.Replace(talliesManifest, "a: {type: m/tally}", "a: {type: m/tally, upgrade: [state]}", 1))
	ask("a")
	m := *b.Manifest
	m.Modules = append([]Module{}, m.Modules...)
	m.Modules[0].Memory = 2 << 20
	c, err := b.Prepare(context.Background(), &m, Options{}, func(string) bool { return false })
	if err != nil || len(c.Modules) != 1 || c.Modules[0].Before != c.Modules[0].Now {
		t.Fatal(c, err)
	}
	done, err := c.Upgrade(context.Background(), sys, upgrade.Options{}, nil)
	if err != nil || done[0].Actors[0].Did != upgrade.Upgraded {
		t.Fatal(done, err)
	}
	if x := ask("a"); x != 102 {
		t.Error("a says", x)
	}
	ref, _ := sys.Lookup("/user/a")
	if b.Images["m"].Info().MemoryLimit != 2<<20 || ref.IsZero() {
		t.Error("the limit is the old one")
	}
}

// A reload keeps the state where it can go over, and restarts the others: those that may lose it, and with a reason.
func TestReloadKeepsState(t *testing.T) {
	for code, want := range map[string]struct{ a, b uint64 }{"tally2": {202, 201}, "load-trap": {201, 201}} {
		b, sys, ask := tallies(t, talliesManifest)
		ask("a")
		ask("b")
		c, err := b.PrepareModule(context.Background(), "m", tallyOf(t, code), Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := map[string]ActorChange{}
		for _, x := range c.Apply(context.Background(), sys) {
			done[x.Path] = x
			if x.Err != nil || x.Module != "m" {
				t.Error(x)
			}
		}
		if x, y := ask("a"), ask("b"); x != want.a || y != want.b {
			t.Errorf("%s: a says %d, b %d", code, x, y)
		}
		a := done["/user/a"]
		if code == "tally2" && (a.Did != upgrade.Upgraded || a.Why != "module m, its state is kept") || code != "tally2" && (a.Did != upgrade.Restarted || !strings.Contains(a.Why, "its state is lost: load: trap")) {
			t.Errorf("%s: %+v", code, a)
		}
		if b := done["/user/b"]; b.Did != upgrade.Restarted || !strings.HasSuffix(b.Why, "the manifest says so") {
			t.Errorf("%s: %+v", code, b)
		}
		if len(b.Codes()) != 1 {
			t.Errorf("%s: %+v", code, b.Codes())
		}
	}
}

// An actor that must not restart keeps its code, and the reload says so.
func TestReloadNeverLosesAStateThatMustStay(t *testing.T) {
	b, sys, ask := tallies(t, strings.Replace(talliesManifest, "a: {type: m/tally}", "a: {type: m/tally, upgrade: [state]}", 1))
	ask("a")
	c, err := b.PrepareModule(context.Background(), "m", tallyOf(t, "load-trap"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := c.Apply(context.Background(), sys)
	if len(done) != 2 || done[0].Err == nil || done[0].Did != upgrade.Kept {
		t.Errorf("%+v", done)
	}
	if x := ask("a"); x != 102 {
		t.Error("a says", x)
	}
}
