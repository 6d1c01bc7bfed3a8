//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// operators see to processes as a service manager does: one that ends is started again, but those that are broken.
type operators struct {
	f    *field
	pids string // the folder of their numbers

	mu     sync.Mutex
	broken map[string]bool
}

func (o *operators) note(p *process) {
	if err := os.WriteFile(filepath.Join(o.pids, p.name), fmt.Append(nil, p.cmd.Process.Pid), 0o600); err != nil {
		o.f.t.Error(err)
	}
}

func (o *operators) breaks(name string, broken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken[name] = broken
}

// watch starts processes again until the context ends.
func (o *operators) watch(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for _, p := range o.f.nodes {
		all.Go(func() {
			for {
				p.mu.Lock()
				over := p.over
				p.mu.Unlock()
				select {
				case <-over:
				case <-ctx.Done():
					return
				}
				for wait := true; wait; {
					o.mu.Lock()
					wait = o.broken[p.name]
					o.mu.Unlock()
					select {
					case <-ctx.Done():
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
				p.launch()
				o.note(p)
			}
		})
	}
	return all.Wait
}

// operate has operators start processes again that a roll ends, until end is called.
func (f *field) operate() (o *operators, end func()) {
	f.t.Helper()
	o = &operators{f: f, pids: f.t.TempDir(), broken: map[string]bool{}}
	for _, p := range f.nodes {
		o.note(p)
	}
	ctx, stop := context.WithCancel(context.Background())
	wait := o.watch(ctx)
	return o, func() { stop(); wait() }
}

// All nodes are replaced one at a time, while each question that does not come by the node that is replaced is answered. One whose
// process does not come back, and one whose command fails, end the roll, and the others go on.
func TestNodesAreRolled(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for half a minute")
	}
	f := fieldOf(t, 3, ofRegisters)
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	f.settle(keys)
	o, end := f.operate()
	defer end()
	seat := f.nodes[1]
	roll := func(restart string, more ...string) (int, rolled, string) {
		t.Helper()
		args := append([]string{"cluster", "roll", "--json", "--restart", restart, "--bundle", fmt.Sprint(seat.cmd.Process.Pid)}, more...)
		code, stdout, stderr := try(t, context.Background(), "", args...)
		var r rolled
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%d: %v %s %s", code, err, stdout, stderr)
		}
		return code, r, stderr
	}
	restart := "kill -TERM $(cat " + o.pids + "/$NODE)"
	before := map[string]uint16{}
	for _, p := range f.nodes {
		before[p.name] = f.numberOf(p)
	}

	// One that asks all the time: its own process is not replaced in the first two steps.
	loaded, over := context.WithCancel(context.Background())
	load := (&field{t: t, nodes: f.nodes[1:2]}).load(loaded, keys, 2*time.Millisecond)
	code, r, said := roll(restart, "n1", "n3")
	over()
	answered, failed := load()
	if code != 0 || r.Failed != "" || len(r.Nodes) != 2 || r.Nodes[0].Node != "n1" || r.Nodes[1].Node != "n3" {
		t.Fatalf("%d %+v\n%s", code, r, said)
	}
	t.Logf("n1: drained in %.2f s, back after %.2f s; n3: %.2f s, %.2f s; %d questions were answered", r.Nodes[0].Drained, r.Nodes[0].Back, r.Nodes[1].Drained, r.Nodes[1].Back, answered)
	if failed > 0 || answered == 0 {
		t.Errorf("%d questions failed, %d were answered", failed, answered)
	}
	for _, n := range r.Nodes {
		if n.Before != int(before[n.Node]) || n.Number == n.Before {
			t.Errorf("%+v, its number was %d", n, before[n.Node])
		}
	}

	// All, the one that is asked included: it is the last.
	code, r, said = roll(restart)
	if code != 0 || len(r.Nodes) != 3 || r.Nodes[2].Node != "n2" || len(r.Left) != 0 {
		t.Fatalf("%d %+v\n%s", code, r, said)
	}
	f.settle(keys)
	if !thorough.Enabled {
		return
	}

	// The process of the one in the middle does not come back.
	o.breaks("n2", true)
	seat = f.nodes[2]
	code, r, said = roll(restart, "n1", "n2", "n3", "--wait", "8s")
	if code != 1 || len(r.Nodes) != 1 || r.Nodes[0].Node != "n1" || r.Failed != "n2" || !slices.Equal(r.Left, []string{"n3"}) || !strings.Contains(r.Why, "not come back") || !strings.Contains(r.Why, "not there any more") {
		t.Errorf("%d %+v\n%s", code, r, said)
	}
	for _, key := range keys { // the others have its keys
		f.until(f.nodes[0], key, func(life) bool { return true })
	}
	// While it is away no other is taken.
	if code, r, said = roll(restart, "n1", "--wait", "2s"); code != 1 || r.Failed != "n1" || len(r.Nodes) != 0 {
		t.Errorf("%d %+v\n%s", code, r, said)
	}
	o.breaks("n2", false)
	f.start()
	f.settle(keys)

	// The command fails for the one in the middle, which goes on and has shards again.
	code, r, said = roll("[ $NODE != n2 ] && "+restart, "n1", "n2", "n3")
	if code != 1 || len(r.Nodes) != 1 || r.Failed != "n2" || !strings.Contains(r.Why, "exit status 1") || !strings.Contains(r.Why, "it goes on") {
		t.Errorf("%d %+v\n%s", code, r, said)
	}
	f.settle(keys) // all three have some
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
}
