//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An operator looks at what the journal has of a key, and deletes it when its actor has ended. It begins empty then.
func TestAKeyIsErased(t *testing.T) {
	if testing.Short() {
		t.Skip("a process for some seconds, and compiles a guest")
	}
	f := fieldOfBooks(t, 1, "{m: {wasm: book.wasm}}", "  regs: {type: m/book, durable: events, keyed: {scope: cluster, shards: 4, idle: 10m}}\n")
	p := f.nodes[0]
	b := &books{field: f, stored: map[string][]int64{}}
	for range 3 {
		if !b.write(p, "/user/regs/ann") {
			t.Fatal("it stores nothing")
		}
	}
	do := func(args ...string) (int, string, string) {
		return try(t, context.Background(), "", append(args, "--bundle", fmt.Sprint(p.cmd.Process.Pid))...)
	}
	if code, text, errs := do("cluster", "journal", "show", "regs", "ann"); code != 0 || !strings.Contains(text, "3 events, the last is number 3") {
		t.Errorf("show: %d %s %s", code, text, errs)
	}
	if code, _, errs := do("cluster", "journal", "delete", "regs", "ann"); code == 0 || !strings.Contains(errs, "the actor of the key is there") || !strings.Contains(errs, "wasmactors stop") {
		t.Errorf("while it lives: %d %s", code, errs)
	}
	if code, _, errs := do("stop", "/user/regs/ann"); code != 0 {
		t.Fatal(errs)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // it ends soon
		code, text, errs := do("cluster", "journal", "delete", "regs", "ann")
		if code == 0 && strings.Contains(text, "3 events") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("delete: %d %s %s", code, text, errs)
		}
	}
	if code, text, errs := do("cluster", "journal", "show", "regs", "ann"); code != 0 || !strings.Contains(text, " 0 events, the last is number 0") {
		t.Errorf("then: %d %s %s", code, text, errs)
	}
	has := []int64{}
	if a := <-p.put("/user/regs/ann", "read"); a.Kind != "reply" || json.Unmarshal(a.Reply, &has) != nil || len(has) != 0 {
		t.Errorf("it has %s %s", a.Reply, a.Reason)
	}
	if said := p.said(); !strings.Contains(said, "cluster: erased: an operator has deleted what the journal had of /user/regs/ann: 3 events") {
		t.Errorf("it does not say so:\n%s", said)
	}
	for why, args := range map[string][]string{"there is nothing": {"delete", "regs", "bob"}, "no keyed actor": {"show", "none", "x"}, "show or delete": {"list", "regs", "x"}} {
		if code, _, errs := do(append([]string{"cluster", "journal"}, args...)...); code == 0 || !strings.Contains(errs, why) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}
