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
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
)

// A run with children on other nodes is recorded on each node for itself, and repeated without the other: what a guest has spawned there
// is a wish of its turn, and the child's turns are those of any guest.
func TestRecordingsOfChildrenElsewhere(t *testing.T) {
	dir := t.TempDir()
	path := func(node int) string { return filepath.Join(dir, fmt.Sprint(node, ".wrec")) }
	tapes := map[int]*recorder.Recorder{}
	p := placedWith(t, func(node int, c host.Config) host.Config {
		tape, err := recorder.Open(recorder.Config{Path: path(node), Ended: func(err error) { t.Errorf("the recording has ended: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		tapes[node] = tape
		return c.WithRecording(tape)
	}, parents, hosts)
	if why := p.ask("/user/parent", []any{"kid", nil, nil, "n1"}); why != "" {
		t.Fatal(why)
	}
	for _, text := range []string{"a", "b"} {
		if got := p.ask("/user/parent/kid", "heard"); strings.Contains(got, text) {
			t.Error(got)
		}
		kid, err := p.nodes[0].system.Lookup("/user/parent/kid")
		if err == nil {
			err = p.nodes[0].system.Tell(kid, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.pass(time.Second)
	}
	if why := p.ask("/user/parent", []any{"none", nil, nil, "n7"}); !strings.Contains(why, "denied") {
		t.Error(why)
	}
	for i, s := range p.nodes {
		if err := s.system.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := tapes[i].Close(); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile(path(i))
		if err != nil {
			t.Fatal(err)
		}
		of, err := recorder.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rerun.Run(t.Context(), s.bundle.engine, of, rerun.Options{})
		if err != nil || r.Difference != nil || of.Missing != nil || r.Turns < 3 {
			t.Errorf("node %d: %+v, missing %v, %v", i, r, of.Missing, err)
		}
	}
}

// replace gives a node other code of the module, while all run.
func (p *placed) replace(node int, module string, code []byte) (done []ActorChange) {
	p.t.Helper()
	s := p.nodes[node]
	c, err := s.bundle.PrepareModule(context.Background(), module, code, Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		done = c.Apply(context.Background(), s.system)
	}()
	p.until("the change", func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	return done
}

// The nodes get new code one after the other, as in a roll: children elsewhere go on, with the code of their node. In between a node has
// not the code of the other, and refuses children; or it fetches it, if its manifest says so.
func TestNewCodeWithChildrenElsewhere(t *testing.T) {
	fetches := strings.Replace(hosts, "types: [w/spawn-child]", "types: [w/spawn-child], fetch: [w/spawn-child]", 1)
	wide := strings.Replace(parents, "['spawn-child@n1']", "['spawn-child@*'], stop: []", 1)
	for _, c := range []struct {
		target string
		why    string // of a spawn in between
	}{{strings.Replace(hosts, "max: 2", "max: 9", 1), "all nodes need the same build"}, {strings.Replace(fetches, "max: 2", "max: 9", 1), ""}} {
		p := placedOn(t, wide, c.target)
		if why := p.askSlowly("/user/parent", []any{"kid", nil, nil, "n1"}); why != "" {
			t.Fatal(why)
		}
		code, err := os.ReadFile(filepath.Join(p.nodes[1].bundle.Manifest.Dir, "g.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, 0, 2, 1, 'a')
		alive := func(when string) {
			t.Helper()
			if got := p.askSlowly("/user/parent/kid", "ready"); got != "" {
				t.Errorf("%s: the child answers %q", when, got)
			}
			if there := p.nodes[1].system.Select("/system/remote.*/*/kid"); len(there) != 1 {
				t.Errorf("%s: on the other node there are %v", when, there)
			}
		}
		// The parent's node is last in a roll that keeps parents; here the child's is first.
		for _, x := range p.replace(1, "w", code) {
			if x.Err != nil {
				t.Errorf("%+v", x)
			}
		}
		alive("new code there")
		if got := p.askSlowly("/user/parent", []any{"between", nil, nil, "n1"}); c.why == "" != (got == "") || !strings.Contains(got, c.why) {
			t.Errorf("a spawn of code that is old there: %q", got)
		}
		for _, x := range p.replace(0, "m", code) {
			if x.Err != nil {
				t.Errorf("%+v", x)
			}
		}
		// The parent was restarted, since its guest keeps no state, and its children have ended with it, on both nodes.
		p.until("the end of its children", func() bool { return p.nodes[1].bundle.Remote().Here.Load() == 0 })
		if here := p.nodes[0].system.Select("/user/parent/*"); len(here) != 0 {
			t.Errorf("here there are %v", here)
		}
		if got := p.askSlowly("/user/parent", []any{"after", nil, nil, "n1"}); got != "" {
			t.Errorf("a spawn of code that both have: %q", got)
		}
		for _, u := range p.nodes[1].bundle.Codes() {
			if u.Module == "w" && u.Hash == p.nodes[0].bundle.Hash("m") && (!u.Present || u.Actors == 0) {
				t.Errorf("%+v", u)
			}
		}
	}
}
