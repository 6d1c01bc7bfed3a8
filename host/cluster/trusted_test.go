package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// rewrite has a node change the entry of another one.
func (w *net) rewrite(by *member, of cluster.Member, change func(*cluster.Member)) {
	w.t.Helper()
	m, ok := by.Member(of.Number)
	if !ok {
		w.t.Fatalf("node %d is not there", of.Number)
	}
	revision := m.Evicted().Revision
	change(&m)
	b, err := cbor.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	done := fmt.Errorf("no answer")
	by.machine.Put(fmt.Sprint("node.", m.Number), b, revision, func(_ uint64, err error) { done = err })
	w.pass(100 * time.Millisecond)
	if done != nil {
		w.t.Fatal(done)
	}
}

// A node is who it was for its links as long as it lives: an entry that says something else in the same life is no reason to believe so.
func TestAnEntryThatSaysToBeAnother(t *testing.T) {
	w := join(t, 3, func(c *cluster.Config) { c.Identity = []byte("certificate of " + c.Name) })
	a, b := w.members[0], w.members[1]
	w.rewrite(b, b.self, func(m *cluster.Member) { m.Name, m.Identity = "n2", []byte("certificate of n2") })
	for _, who := range []*member{a, w.members[2]} {
		if m, ok := who.Member(b.self.Number); !ok || m.Name != "n1" || string(m.Identity) != "certificate of n1" {
			t.Errorf("node %d takes it for %s with the %s", who.self.Number, m.Name, m.Identity)
		}
		if !slices.ContainsFunc(who.refused, func(text string) bool { return strings.Contains(text, "another name or certificate") }) {
			t.Errorf("node %d says %q", who.self.Number, who.refused)
		}
	}
	if w.pass(20 * time.Second); b.lost != nil || a.lost != nil { // they go on
		t.Error(a.lost, b.lost)
	}
}

// What belongs to a bundle does not see members that have no right to it, of any life, and does itself.
func TestMembersWithoutARight(t *testing.T) {
	w := join(t, 3, nil)
	a, b, c := w.members[0], w.members[1], w.members[2]
	asked, why := 0, errors.New("it is of another bundle")
	x := a.Trusting(func(m cluster.Member) error {
		if asked++; m.Name == "n1" {
			return nil
		}
		return why
	})
	numbers := func() (all []uint16) {
		for _, m := range x.Members() {
			all = append(all, m.Number)
		}
		return all
	}
	if got := numbers(); !slices.Equal(got, []uint16{a.self.Number, b.self.Number}) {
		t.Errorf("it sees %v", got)
	}
	if x.Gone(a.self.Number, a.self.Born) || x.Gone(b.self.Number, b.self.Born) || !x.Gone(c.self.Number, c.self.Born) || !x.Gone(c.self.Number, c.self.Born+1000) || x.Gone(17, 5) {
		t.Error("another one is gone than the member without a right")
	}
	for _, o := range []*member{b, c} { // again and again
		if m, _ := a.Member(o.self.Number); x.Trusts(m) != (o == b) || (x.Why(m) == why) != (o == c) {
			t.Errorf("node %d: %v", o.self.Number, x.Why(m))
		}
	}
	if numbers(); asked != 2 {
		t.Errorf("it was asked %d times for two lives", asked)
	}
	c.system.Close(t.Context())
	c.Leave(func(error) {})
	w.pass(time.Second)
	if !x.Gone(c.self.Number, c.self.Born) {
		t.Error("one that has left is there")
	}
}
