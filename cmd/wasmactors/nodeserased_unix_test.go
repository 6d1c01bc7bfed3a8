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
	if code, text, errs := do("cluster", "journal", "ls"); code != 0 || !strings.Contains(text, "KIND") || len(strings.Split(strings.TrimSpace(text), "\n")) != 2 || !strings.Contains(text, "1 (n1)") {
		t.Errorf("ls: %d %s %s", code, text, errs)
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
	for why, args := range map[string][]string{"there is nothing": {"delete", "regs", "bob"}, "no keyed actor": {"show", "none", "x"}, "show or delete": {"list", "regs", "x"}, "wrong number": {"ls", "regs", "x"}} {
		if code, _, errs := do(append([]string{"cluster", "journal"}, args...)...); code == 0 || !strings.Contains(errs, why) {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

// All keys with a journal are listed on each node, in pages, those without an actor, too; and what one has is deleted on whichever node that is
// ordered: the one that has the key does it.
func TestAKeyIsErasedFromAnyNode(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for some seconds, and compiles a guest")
	}
	f := fieldOfBooks(t, 3, "{m: {wasm: book.wasm}}", "  regs: {type: m/book, durable: events, keyed: {scope: cluster, shards: 8, idle: 10m}}\n  one: {type: m/book, durable: events, singleton: {}}\n")
	b := &books{field: f, stored: map[string][]int64{}}
	do := func(p *process, args ...string) (int, string, string) {
		return try(t, context.Background(), "", append(args, "--bundle", fmt.Sprint(p.cmd.Process.Pid))...)
	}
	for i := range 6 {
		if !b.write(f.nodes[i%3], fmt.Sprintf("/user/regs/k%d", i)) {
			t.Fatal("it stores nothing")
		}
	}
	if !b.write(f.nodes[0], "/user/one") {
		t.Fatal("it stores nothing")
	}
	owner := func(key string) *process {
		t.Helper()
		code, text, errs := do(f.nodes[0], "cluster", "where", "regs", key, "--json")
		var at struct{ Name string }
		if code != 0 || json.Unmarshal([]byte(text), &at) != nil {
			t.Fatal(text, errs)
		}
		for _, p := range f.nodes {
			if p.name == at.Name {
				return p
			}
		}
		t.Fatalf("%s is on %q", key, at.Name)
		return nil
	}
	has := owner("k3")
	if code, _, errs := do(has, "stop", "/user/regs/k3"); code != 0 {
		t.Fatal(errs)
	}
	type listed struct {
		Keys []struct {
			Kind, Key, Name string
			Bytes           int64
			Records, Shard  int
			Last            time.Time
		}
		Next string
	}
	list := func(p *process, args ...string) (l listed, names string) {
		t.Helper()
		code, text, errs := do(p, append([]string{"cluster", "journal", "ls", "--json"}, args...)...)
		if code != 0 || json.Unmarshal([]byte(text), &l) != nil {
			t.Fatal(text, errs)
		}
		for _, k := range l.Keys {
			names += k.Kind + "/" + k.Key + " "
			if k.Bytes < 10 || k.Records < 1 || k.Shard < 0 || time.Since(k.Last) > time.Hour || k.Kind == "regs" && k.Name != owner(k.Key).name {
				t.Errorf("%+v", k)
			}
		}
		return l, names
	}
	for _, p := range f.nodes {
		if l, names := list(p, "regs"); names != "regs/k0 regs/k1 regs/k2 regs/k3 regs/k4 regs/k5 " || l.Next != "" {
			t.Errorf("%s lists %s", p.name, names)
		}
	}
	if l, names := list(f.nodes[1]); !strings.HasPrefix(names, "one/") || len(l.Keys) != 7 {
		t.Errorf("all are %s", names)
	}
	if _, names := list(f.nodes[1], "regs", "--prefix", "k5"); names != "regs/k5 " {
		t.Errorf("those with k5 are %s", names)
	}
	first, names := list(f.nodes[2], "--limit", "4")
	if second, more := list(f.nodes[2], "--after", first.Next); len(first.Keys) != 4 || first.Next != "regs/k2" || len(second.Keys) != 3 || second.Next != "" {
		t.Errorf("%s %s, and then %s", names, first.Next, more)
	}

	other := f.nodes[0]
	if other == has {
		other = f.nodes[1]
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) { // it ends soon
		code, text, errs := do(other, "cluster", "journal", "delete", "regs", "k3")
		if code == 0 && strings.Contains(text, "1 events") {
			break
		}
		if time.Now().After(end) || !strings.Contains(errs, "node "+has.name+": ") || !strings.Contains(errs, "the actor of the key is there") {
			t.Fatalf("delete on %s, which is on %s: %d %s %s", other.name, has.name, code, text, errs)
		}
	}
	if said := has.said(); !strings.Contains(said, "of /user/regs/k3: 1 events; it was ordered on node "+other.name) {
		t.Errorf("it does not say so:\n%s", said)
	}
	stored := []int64{}
	if a := <-other.put("/user/regs/k3", "read"); a.Kind != "reply" || json.Unmarshal(a.Reply, &stored) != nil || len(stored) != 0 {
		t.Errorf("it has %s %s", a.Reply, a.Reason)
	}
	if code, _, errs := do(other, "cluster", "journal", "delete", "regs", "nobody"); code == 0 || !strings.Contains(errs, "there is nothing of the key") {
		t.Errorf("a key that has nothing: %d %s", code, errs)
	}
}
