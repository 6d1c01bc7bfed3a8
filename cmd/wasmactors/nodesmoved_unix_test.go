//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// The commands for a node that runs: where a key is, to move it, to drain a node under load without a question that fails, to
// see all nodes and which does not answer, and to leave.
func TestNodesAreMoved(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("three processes for half a minute: make thorough")
	}
	f := fieldOf(t, 3, ofRegisters)
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	first := f.settle(keys)
	command := func(p *process, args ...string) (int, string) {
		t.Helper()
		code, stdout, stderr := try(t, context.Background(), "", append(append([]string{"cluster"}, args...), "--bundle", fmt.Sprint(p.cmd.Process.Pid))...)
		return code, stdout + stderr
	}
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	for _, key := range keys[:4] {
		name := strings.TrimPrefix(key, "/user/regs/")
		if code, text := command(b, "where", "regs", name); code != 0 || !strings.Contains(text, fmt.Sprintf("%s is on node %d (", key, first[key].node)) {
			t.Errorf("%d %s; it is on node %d", code, text, first[key].node)
		}
	}
	if code, text := command(a, "where", "nothing", "x"); code == 0 || !strings.Contains(text, "there are regs, one") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := command(a, "where", "one"); code != 0 || !strings.Contains(text, fmt.Sprintf("/user/one is on node %d", first["/user/one"].node)) {
		t.Errorf("%d %s", code, text)
	}
	if code, text := command(a, "move", "regs", "k00", "n3"); code != 0 {
		t.Errorf("%d %s", code, text)
	}
	number := f.numberOf(c)
	f.until(a, keys[0], func(l life) bool { return l.node == number })
	if code, text := command(b, "where", "regs", "k00"); code != 0 || !strings.Contains(text, "by hand") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := command(a, "move", "regs", "k00", "nobody"); code == 0 || !strings.Contains(text, "no node") {
		t.Errorf("%d %s", code, text)
	}
	// A node is drained under load.
	ctx, stop := context.WithCancel(context.Background())
	wait := f.load(ctx, keys, 5*time.Millisecond)
	code, text := command(c, "drain", "--json")
	var drained struct {
		Owned   int
		Seconds float64
	}
	if err := json.Unmarshal([]byte(text), &drained); code != 0 || err != nil || drained.Owned != 0 {
		t.Errorf("%d %s", code, text)
	}
	stop()
	answered, failed := wait()
	t.Logf("drained in %.1f s, %d questions were answered meanwhile", drained.Seconds, answered)
	if failed > 0 || answered == 0 {
		t.Errorf("%d questions failed, %d were answered", failed, answered)
	}
	for _, key := range keys {
		if _, l := f.nodes[2].ask(key, "read"); l.node == number || l.id == 0 {
			t.Errorf("%s is on node %d, which was drained", key, l.node)
		}
	}
	if code, text := command(c, "status"); code != 0 || !strings.Contains(text, "moved to others") || !strings.Contains(text, "regs") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := command(c, "drain", "--undo"); code != 0 || !strings.Contains(text, "again") {
		t.Errorf("%d %s", code, text)
	}
	// All nodes, of which one stands still.
	b.signal(syscall.SIGSTOP)
	began := time.Now()
	code, text = command(a, "tree", "--json")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it has waited for %v", took)
	}
	b.signal(syscall.SIGCONT)
	var all admin.ClusterNodes
	if err := json.Unmarshal([]byte(text), &all); code != 0 || err != nil || len(all.Nodes) != 3 {
		t.Fatalf("%d %s", code, text)
	}
	for _, n := range all.Nodes {
		if n.Name == "n2" && n.Error == "" || n.Name != "n2" && (n.Error != "" || n.Actors == 0 || len(n.Tree) < 3) {
			t.Errorf("%+v", n)
		}
	}
	if code, text := command(a, "ps"); code != 0 || strings.Count(text, "field") < 2 {
		t.Errorf("%d %s", code, text)
	}
	f.settle(keys)
	if code, text := command(c, "leave"); code != 0 || !strings.Contains(text, "has ended") {
		t.Errorf("%d %s", code, text)
	}
	for _, key := range keys {
		f.until(a, key, func(l life) bool { return l.node != number })
	}
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
}
