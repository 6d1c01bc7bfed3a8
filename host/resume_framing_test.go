package host

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// memoryOf is the state of a guest's instance as bytes.
func memoryOf(t *testing.T, s *System, ref Ref) []byte {
	t.Helper()
	g := guestOf(s.table.Get(ref.UID()))
	var snap sandbox.Snapshot
	must(0, g.inst.Load().Save(&snap))(t)
	return must(sandbox.AppendSnapshot(nil, g.inst.Image, &snap))(t)
}

// A guest that was resumed has the same memory, to the byte, as one that did not fail: what was handled in a batch
// is repeated in that batch.
func TestResumeRepeatsTheBatches(t *testing.T) {
	for what, c := range map[string]struct {
		p          func(t *testing.T) Props
		add, crash any
	}{
		"go":  {func(t *testing.T) Props { return familyGuest(t, "worker") }, 1, "panic x"},
		"wat": {func(t *testing.T) Props { return puppet(t) }, script(rec(recAdd, 1, nil)), script(trap())},
	} {
		t.Run(what, func(t *testing.T) {
			inBatches.run(t, "in batches", func(t *testing.T) {
				state := func(fails bool) []byte {
					l := newLab(t, otherwise(supervision.Resume))
					ref := l.spawn("a", c.p(t))
					for range 3 {
						l.tell(ref, c.add) // one alone
						for range 10 {
							must(0, l.Tell(ref, c.add))(t)
						}
						l.run()
					}
					if n := len(guestOf(l.table.Get(ref.UID())).inst.States.Log); n == 0 || n == 33 {
						t.Fatalf("%d turns are remembered: nothing is repeated, or there was no checkpoint", n)
					}
					if fails {
						l.tell(ref, c.crash)
						if len(l.seen(EventResumed)) != 1 {
							t.Fatal("it was not resumed")
						}
					}
					return memoryOf(t, l.System, ref)
				}
				if twin, resumed := state(false), state(true); !bytes.Equal(twin, resumed) {
					t.Errorf("the memory differs: %d bytes before, %d after", len(twin), len(resumed))
				}
			})
		})
	}
}

// An entry that has ended early is repeated with what was pushed then, and the turns behind that are not begun.
func TestResumeRepeatsAnEntryThatEndedEarly(t *testing.T) {
	inBatches.run(t, "in batches", func(t *testing.T) {
		l := newLab(t, otherwise(supervision.Resume))
		ref := l.spawn("a", puppet(t))
		add := script(rec(recAdd, 1, nil))
		for _, m := range []any{add, add, script(trap()), add, add} {
			must(0, l.Tell(ref, m))(t)
		}
		l.run()
		log := guestOf(l.table.Get(ref.UID())).inst.States.Log
		var got []string
		for _, e := range log {
			got = append(got, fmt.Sprint(e.Turn, " ", e.Behind, " ", e.Unread))
		}
		want := []string{"1 false false", "2 true false", "0 true true", "0 true true", "0 true true", "4 false false", "5 true false"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		l.tell(ref, script(trap()))
		if m := l.ask(ref, script(rec(recReport, 0, nil))); m.Kind != abi.KindReply || !bytes.Contains(m.Payload, []byte{4}) {
			t.Errorf("it holds % x", m.Payload)
		}
	})
}
