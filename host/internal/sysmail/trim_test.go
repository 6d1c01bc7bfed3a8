package sysmail

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// TestTrim: a queue that had two messages keeps their room until it is trimmed, and what is pushed after that, also
// while a message is being handled, is as it was pushed.
func TestTrim(t *testing.T) {
	var q Queue
	q.Init()
	push := func(from uint64) {
		q.Push(&Msg{Kind: Signal, Signal: &signal.Signal{Kind: signal.Watch, From: abi.Ref(from)}})
	}
	take := func(want ...uint64) {
		t.Helper()
		items := q.Take()
		if len(items) != len(want) {
			t.Fatalf("%d messages, not %d", len(items), len(want))
		}
		push(99)
		for i, w := range want {
			if items[i].Signal.From != abi.Ref(w) {
				t.Errorf("message %d is from %v, not %d", i, items[i].Signal.From, w)
			}
		}
		q.Done(items)
		q.Trim() // one waits: nothing happens
		if last := q.Take(); len(last) != 1 || last[0].Signal.From != abi.Ref(99) {
			t.Errorf("pushed meanwhile: %+v", last)
		} else {
			q.Done(last)
		}
	}
	push(1)
	push(2)
	take(1, 2)
	if cap(q.spare) < 2 {
		t.Fatalf("room for %d", cap(q.spare))
	}
	q.Trim()
	if cap(q.spare) != 1 {
		t.Errorf("room for %d after Trim", cap(q.spare))
	}
	push(3)
	take(3)
	push(4)
	push(5)
	push(6)
	take(4, 5, 6)
}
