//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// Nodes with children of another node are rolled, one after the other, while their parent goes on: each child ends with its node, the parent is
// told `node gone` once for each and may start it again at once, on the other node. Then the parent's node is replaced: the children end, and
// nothing of them is left. No step waits for a child.
func TestNodesWithChildrenOfOthersAreRolled(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for half a minute")
	}
	f := fieldOfCrew(t)
	front := f.nodes[0]
	o, end := f.operate()
	defer end()

	on := map[string]uint64{} // the nodes of the workers
	hire := func(name string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			text, ok := front.told("hire " + name)
			if ok {
				var all [3]uint64
				if text, ok = front.told("who " + name); ok && json.Unmarshal([]byte(text), &all) == nil {
					on[name] = all[0]
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not hired: %s", name, text)
			}
		}
	}
	for i := range 8 {
		hire(fmt.Sprint("w", i))
	}
	numbers := map[uint64]string{}
	for _, p := range f.nodes[1:] {
		numbers[uint64(f.numberOf(p))] = p.name
	}
	roll := func(names ...string) {
		t.Helper()
		args := append([]string{"cluster", "roll", "--json", "--restart", "kill -TERM $(cat " + o.pids + "/$NODE)", "--bundle", fmt.Sprint(front.cmd.Process.Pid), "--wait", patience.String()}, names...)
		code, stdout, stderr := try(t, context.Background(), "", args...)
		var r rolled
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || len(r.Nodes) != len(names) || r.Failed != "" {
			t.Fatalf("%d: %v %s %s", code, err, stdout, stderr)
		}
	}
	times := map[string]int{} // how often the node of a worker has ended
	for _, p := range f.nodes[1:] {
		before := map[string]bool{}
		for name, number := range on {
			if numbers[number] == p.name {
				before[name] = true
				times[name]++
			}
		}
		roll(p.name)
		told := ""
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			told, _ = front.told("gone")
			missing := 0
			for name := range before {
				if strings.Count(told, name+": ") < times[name] {
					missing++
				}
			}
			if missing == 0 || time.Now().After(end) {
				break
			}
		}
		for name := range before {
			if n := strings.Count(told, name+": "); n != times[name] || strings.Count(told, name+": node gone") != n {
				t.Errorf("%s was on %s, which was rolled, its node has ended %d times: the parent is told %q", name, p.name, times[name], told)
			}
			hire(name)
		}
		for name, number := range on { // the others have not noticed
			if _, ok := front.told("who " + name); !ok {
				t.Errorf("%s on node %d does not answer after %s was rolled", name, number, p.name)
			}
		}
		t.Logf("%s was rolled with %d children", p.name, len(before))
		numbers = map[uint64]string{}
		for _, p := range f.nodes[1:] {
			numbers[uint64(f.numberOf(p))] = p.name
		}
	}

	roll("n1") // the parent's node
	for _, p := range f.nodes[1:] {
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			_, text, _ := try(t, context.Background(), "", "tree", "/system", "--bundle", fmt.Sprint(p.cmd.Process.Pid))
			if !strings.Contains(text, "  worker") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s has children of a node that was replaced:\n%s", p.name, text)
			}
		}
	}
	if text, _ := front.told("gone"); text != "" {
		t.Errorf("the parent begins anew, and is told %q", text)
	}
	hire("w0")
}
