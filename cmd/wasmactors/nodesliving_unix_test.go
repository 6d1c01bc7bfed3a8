//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/admin"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// living are the actors of keys that are on nodes, once for each node.
func (f *field) living(nodes ...*process) (all []string) {
	f.t.Helper()
	for _, p := range nodes {
		_, text, _ := try(f.t, context.Background(), "", "tree", "--json", "--bundle", fmt.Sprint(p.cmd.Process.Pid))
		var top observe.TreeNode
		if err := json.Unmarshal([]byte(text), &top); err != nil {
			continue // it joins again
		}
		var walk func(n observe.TreeNode)
		walk = func(n observe.TreeNode) {
			if strings.HasPrefix(n.Path, "/user/") && strings.Count(n.Path, "/") == 3 {
				all = append(all, n.Path)
			}
			for _, c := range n.Nodes {
				walk(c)
			}
		}
		walk(top)
	}
	slices.Sort(all)
	return all
}

// lives waits until exactly some keys have an actor on nodes, each one.
func (f *field) lives(when string, want []string, nodes ...*process) {
	f.t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = f.living(nodes...); slices.Equal(got, want) {
			return
		}
	}
	f.t.Fatalf("%s the keys that live are\n%v, not\n%v", when, got, want)
}

// Three processes, whose keys are remembered. Nobody asks them any more: one is killed, all end, all are killed. Those that live do then, on one
// node each, whether they keep events or not, and one that was stopped does not.
func TestKeysThatLive(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for half a minute")
	}
	f := fieldOfBooks(t, 3, "{m: {wasm: register.wasm}, b: {wasm: book.wasm}}",
		"  regs: {type: m/register, keyed: {scope: cluster, shards: 16, idle: 10m, remember: true}}\n"+
			"  books: {type: b/book, durable: events, keyed: {scope: cluster, shards: 16, idle: 10m, remember: true, starts: 50}}\n")
	var keys []string
	for _, kind := range []string{"books", "regs"} {
		for i := range 9 {
			key := fmt.Sprintf("/user/%s/k%d", kind, i)
			if a := <-f.nodes[i%3].put(key, "read"); a.Kind != "reply" {
				t.Fatalf("%s: %s %s", key, a.Kind, a.Reason)
			}
			keys = append(keys, key)
		}
	}
	f.lives("at first", keys, f.nodes...)
	began := time.Now()
	f.nodes[0].kill()
	f.lives("after a kill", keys, f.nodes[1:]...)
	t.Logf("after a kill all live again in %v", time.Since(began).Round(100*time.Millisecond))
	f.start(f.nodes[0])

	stopped := keys[len(keys)-1]
	// The node that has come back gets shards: a key that ends in the moment its shard moves may come back once, and is stopped again.
	asked := false
	for end, gone := time.Now().Add(patience), 0; gone < 10 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		gone++
		for _, p := range f.nodes {
			if slices.Contains(f.living(p), stopped) {
				code, _, _ := try(t, context.Background(), "", "stop", stopped, "--bundle", fmt.Sprint(p.cmd.Process.Pid))
				asked, gone = asked || code == 0, 0
			}
		}
	}
	if !asked {
		t.Fatalf("%s was not stopped", stopped)
	}
	keys = keys[:len(keys)-1]
	f.lives("after one was stopped", keys, f.nodes...)
	f.remembers("regs", len(keys)/2-1)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, p := range f.nodes {
			p.signal(s)
		}
		for _, p := range f.nodes {
			select {
			case <-p.over:
			case <-time.After(patience):
				t.Fatalf("%s does not end", p.name)
			}
		}
		began := time.Now()
		f.start(f.nodes...)
		f.lives(fmt.Sprint("after ", s, " of all"), keys, f.nodes...)
		t.Logf("after %v of all nodes all live again in %v", s, time.Since(began).Round(100*time.Millisecond))
	}
}

// remembers has the nodes say how many keys of a kind are to live, and that none waits for its start.
func (f *field) remembers(kind string, least int) {
	f.t.Helper()
	n := 0
	for _, p := range f.nodes {
		_, text, errs := try(f.t, context.Background(), "", "cluster", "status", "--json", "--bundle", fmt.Sprint(p.cmd.Process.Pid))
		var s admin.ClusterStatus
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			f.t.Errorf("%v: %s", err, errs)
			continue // it joins again
		}
		for _, k := range s.Kinds {
			if k.Kind == kind {
				if n += k.Keys; k.Starting != 0 || k.Unstarted != "" {
					f.t.Errorf("%s: %+v", p.name, k)
				}
			}
		}
	}
	if n < least {
		f.t.Errorf("%d keys of %s have an actor", n, kind)
	}
}
