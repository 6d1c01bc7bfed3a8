package bundle

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/host/service"
)

const taking = "modules: {w: {wasm: echo.wasm, env: {SECRET: s}}}\nactors: {idle: {type: w/echo}}\ncluster: {accept: {types: [w/spawn-child], fetch: [w/spawn-child], from: [n0]}}\n"

// until runs the nodes until something holds. Other goroutines read and check code meanwhile, so time passes slowly.
func (p *placed) until(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if p.pass(2 * time.Millisecond); time.Now().After(end) {
			p.t.Fatalf("%s: not within a minute", what)
		}
	}
}

// askSlowly is ask for what other goroutines have to do with.
func (p *placed) askSlowly(path string, v any) (text string) {
	p.t.Helper()
	to, err := p.nodes[0].system.Lookup(path)
	if err != nil {
		p.t.Fatal(err)
	}
	q, err := p.nodes[0].system.Request(to, v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.until(path, func() bool {
		select {
		case m := <-q.Answer():
			if m.Err() != nil {
				text = m.Err().Error()
			} else if err := m.Decode(&text); err != nil {
				p.t.Fatal(err)
			}
			return true
		default:
			return false
		}
	})
	return text
}

// A node that lacks the code gets it from the node of the parent, once for all children, keeps it, and gives the code nothing of its own.
func TestCodeOfAnotherNode(t *testing.T) {
	p := placedOn(t, parents, taking)
	for i := range 3 {
		if why := p.askSlowly("/user/parent", []any{fmt.Sprint("kid", i), nil, nil, "n1"}); why != "" {
			t.Fatal(why)
		}
	}
	there := p.nodes[1].bundle
	if n := there.Remote().Fetched.Load(); n != 1 || there.Remote().Here.Load() != 3 {
		t.Errorf("%d modules were fetched for %d children", n, there.Remote().Here.Load())
	}
	x := there.fetched.all[0]
	if all, most, ok := there.Fetched(); !ok || len(all) != 1 || all[0] != (FetchedCode{p.nodes[0].self.Number, "w", hex.EncodeToString([]byte(x.digest)), x.bytes, 3}) || most.ShareModules != shareFetched {
		t.Errorf("it says %+v of what it keeps, at most %+v", all, most)
	}
	if _, _, ok := p.nodes[0].bundle.Fetched(); ok {
		t.Error("a node that takes no code says that it does")
	}
	if x.pins != 3 || len(x.loaded.spec.Env) != 0 || x.as != "w" {
		t.Errorf("%+v", x)
	}
	finds := finder{&there.codes, &there.fetched, []string{"w/spawn-child", "w/echo"}, []string{"w/spawn-child"}, nil}
	if _, spawn, err := finds.find([]byte(x.digest), "g", "spawn-child"); err != nil || !slices.Equal(spawn, []string{"spawn-child"}) {
		t.Errorf("it may spawn %v, whose code may not come from others, %v", spawn, err)
	}
	if got := p.askSlowly("/user/parent/kid0", "heard"); strings.Contains(got, "denied") {
		t.Error(got)
	}
	for i := range 3 {
		kid, err := p.nodes[0].system.Lookup(fmt.Sprint("/user/parent/kid", i))
		if err != nil {
			t.Fatal(err)
		}
		p.nodes[0].system.Stop(kid)
	}
	p.until("no child", func() bool { return there.Remote().Here.Load() == 0 })
	if x.pins != 0 {
		t.Errorf("%d children hold the code after all have ended", x.pins)
	}
}

// Code that was fetched under other limits than those that hold now is fetched again, under these.
func TestFetchedCodeHasTheLimitsOfNow(t *testing.T) {
	p := placedOn(t, parents, taking)
	if why := p.askSlowly("/user/parent", []any{"kid", nil, nil, "n1"}); why != "" {
		t.Fatal(why)
	}
	there := p.nodes[1].bundle
	change := func(f func(*Module)) {
		all := maps.Clone(there.loaded)
		w := *all["w"]
		f(&w.spec)
		all["w"] = &w
		there.codes.set(all)
	}
	change(func(m *Module) { m.InitFuel = 1e9 })
	if why := p.askSlowly("/user/parent", []any{"kid1", nil, nil, "n1"}); why != "" {
		t.Fatal(why)
	}
	if n := there.Remote().Fetched.Load(); n != 2 {
		t.Errorf("%d were fetched", n)
	}
	change(func(m *Module) { m.Size = 64 << 10 })
	if why := p.askSlowly("/user/parent", []any{"kid2", nil, nil, "n1"}); !strings.Contains(why, "bytes, from 1 to 65536 are taken") {
		t.Errorf("under less: %q", why)
	}
}

// What a child is to run was found a moment before it is kept for it: if it is gone by then the child is refused.
func TestCodeThatIsGoneIsNotKept(t *testing.T) {
	p := placedOn(t, taking)
	b := p.nodes[0].bundle
	f := &fetcher{b, []string{"w/spawn-child"}}
	if _, err := f.Pin(bytes.Repeat([]byte{1}, 32), "w", "spawn-child"); !errors.Is(err, remote.ErrLacks) {
		t.Errorf("%v", err)
	}
	own, err := hex.DecodeString(b.Hash("w"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Pin(own, "w", "spawn-child"); err != nil {
		t.Errorf("of a module here: %v", err)
	}
}

// Whose manifest does not say so takes no code, and a type that is not named neither.
func TestCodeOfAnotherNodeIsRefused(t *testing.T) {
	p := placedOn(t, strings.Replace(parents, "'spawn-child@n1'", "'*@*'", 1), taking,
		strings.Replace(taking, "types: [w/spawn-child], fetch: [w/spawn-child]", "types: [w/echo]", 1),
		strings.Replace(strings.Replace(taking, "types: [w/spawn-child], fetch: [w/spawn-child]", "types: [w/spawn-child, w/other], fetch: [w/other, w/spawn-child]", 1), "env: {SECRET: s}", "limits: {size: 64KiB}", 1))

	for role, why := range map[string]string{"n2": "all nodes need the same build", "n3": "bytes, from 1 to 65536 are taken"} {
		if got := p.askSlowly("/user/parent", []any{"kid-" + role, nil, nil, role}); !strings.Contains(got, why) {
			t.Errorf("%s: %q", role, got)
		}
	}
	for _, s := range p.nodes[2:] {
		if n := s.bundle.Remote().Fetched.Load(); n != 0 || len(s.bundle.fetched.all) != 0 {
			t.Errorf("node %s has fetched %d", s.self.Name, n)
		}
	}
}

// What is kept is bounded by number and bytes, without what children run.
func TestFetchedCodeIsBounded(t *testing.T) {
	var c fetchedCodes
	dropped := 0
	drop := func(*loaded) { dropped++ }
	put := func(node uint16, name string, size int64, pins int) error {
		return c.put(&fetchedCode{node: node, as: "m", digest: name, bytes: size, pins: pins, loaded: &loaded{}}, drop)
	}
	kept := func(what string, want int) {
		t.Helper()
		if len(c.all) != want {
			t.Errorf("%s: %d are kept, not %d", what, len(c.all), want)
		}
	}
	for i := range shareFetched + 4 {
		if err := put(1, fmt.Sprint(i), 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if kept("one node's", shareFetched); dropped != 4 || c.all[0].digest != "4" {
		t.Errorf("%d were dropped, the first is %s", dropped, c.all[0].digest)
	}
	if err := put(1, "large", shareFetchedBytes, 1); err != nil {
		t.Error(err)
	}
	kept("a large one", 1)
	if err := put(1, "more", 1, 0); !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), "children run 1 modules of node 1, of 67108864 bytes, and this one has 1: 16 modules") {
		t.Error(err)
	}
	if err := put(2, "more", 1, 1); err != nil { // the share of the other one is full, this one's is not
		t.Error(err)
	}
	kept("two nodes'", 2)
	if err := put(3, "third", shareFetchedBytes-1, 1); err != nil {
		t.Error(err)
	}
	if err := put(4, "fourth", 1, 0); !errors.Is(err, host.ErrLimit) || !strings.Contains(err.Error(), "of other nodes") {
		t.Error(err)
	}
	kept("all together", 3)
	if got := settingsFor("b", "x", []string{"a/*", "b/x"}); got != "b" {
		t.Error(got)
	}
	if got := settingsFor("c", "x", []string{"a/y", "b/x", "d/x"}); got != "b" {
		t.Error(got)
	}
	if got := settingsFor("c", "z", []string{"a/y"}); got != "" {
		t.Error(got)
	}
}

// Code that is no module is refused as a module of the bundle is.
func TestFetchedCodeIsChecked(t *testing.T) {
	p := placedOn(t, taking)
	b := p.nodes[0].bundle
	f := &fetcher{b, []string{"w/spawn-child"}}
	if err := f.Load(context.Background(), 1, bytes.Repeat([]byte{1}, 32), "w", []byte("no module")); err == nil || len(b.fetched.all) != 0 {
		t.Errorf("%v", err)
	}
	if _, _, err := f.May("m", "other"); !errors.Is(err, remote.ErrLacks) {
		t.Errorf("%v", err)
	}
}

// To run code of others is asked for.
func TestCodeOfOthersNeedsConsent(t *testing.T) {
	m := parse(t, minimal+"cluster: {accept: {types: [t], fetch: [t]}}\n")
	r := m.Reaches()
	if len(r) != 1 || r[0].Kind != service.ReachCode || r[0].Value != "t" {
		t.Errorf("%+v", r)
	}
}
