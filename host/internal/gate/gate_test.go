package gate

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

func isMessage(e *mailbox.Envelope) bool { return e.Kind == abi.KindMessage }

// queueOf is a queue of messages of these numbers; those below 0 are the host's.
func queueOf(numbers ...int) *mailbox.Mailbox {
	q := &mailbox.Mailbox{}
	q.Init(mailbox.Limits{Messages: 1000, Bytes: 1 << 20})
	for _, n := range numbers {
		q.Force(numbered(n))
	}
	return q
}

func numbered(n int) *mailbox.Envelope {
	e := mailbox.New()
	e.Correlation = uint64(max(n, -n))
	if n < 0 {
		e.Kind = abi.KindTimer
	}
	return e
}

func numberOf(e *mailbox.Envelope) int {
	if e.Kind != abi.KindMessage {
		return -int(e.Correlation)
	}
	return int(e.Correlation)
}

func drain(q *mailbox.Mailbox) (out []int) {
	for e := q.Pop(); e != nil; e = q.Pop() {
		out = append(out, numberOf(e))
	}
	return out
}

// Trimming drops the oldest messages beyond the bound; what is the host's neither counts
// nor loses its place.
func TestTrim(t *testing.T) {
	for _, c := range []struct {
		bound      int
		queue      []int
		kept, gone []int
	}{
		{0, []int{1, 2, 3}, []int{1, 2, 3}, nil},
		{3, []int{1, 2, 3}, []int{1, 2, 3}, nil},
		{2, []int{1, 2, 3}, []int{2, 3}, []int{1}},
		{1, []int{-1, 2, -3, 4, 5, -6}, []int{-1, -3, 5, -6}, []int{2, 4}},
		{1, []int{-1, -2, -3}, []int{-1, -2, -3}, nil},
		{1, []int{-1, 2, -3}, []int{-1, 2, -3}, nil},
	} {
		var g Gate
		g.Close(supervision.Backoff{Stash: c.bound})
		if g.Bounded() != (c.bound > 0) {
			t.Errorf("bounded: %v", g.Bounded())
		}
		q := queueOf(c.queue...)
		var gone []int
		g.Trim(q, isMessage, func(e *mailbox.Envelope) { gone = append(gone, numberOf(e)) })
		if kept := drain(q); !slices.Equal(kept, c.kept) || !slices.Equal(gone, c.gone) {
			t.Errorf("%d of %v: %v and %v", c.bound, c.queue, kept, gone)
		}
	}
}

// Whatever waits: the bound holds, the order stays, only the oldest messages go, and
// what is kept is whole.
func TestTrimWhatever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Bool(), 0, 20).Draw(t, "messages")
		bound := rapid.IntRange(1, 10).Draw(t, "bound")
		q, messages := queueOf(), 0
		var all []*mailbox.Envelope
		for i, is := range numbers {
			n := i + 1
			if is {
				messages++
			} else {
				n = -n
			}
			e := numbered(n)
			all = append(all, e)
			q.Force(e)
		}
		var g Gate
		g.Close(supervision.Backoff{Stash: bound})
		gone := 0
		g.Trim(q, isMessage, func(e *mailbox.Envelope) {
			gone++
			e.Free() // it may be another's now
		})
		if want := max(messages-bound, 0); gone != want {
			t.Fatalf("%d are gone, want %d", gone, want)
		}
		skip := gone
		for i, is := range numbers {
			if is && skip > 0 {
				skip--
				continue
			}
			e := q.Pop()
			if e != all[i] || e.Correlation != uint64(i+1) {
				t.Fatalf("%v, want %d", e, i+1)
			}
		}
	})
}

func TestPolicy(t *testing.T) {
	var g Gate
	if g.Policy() != supervision.MeanwhileKeep {
		t.Error(g.Policy())
	}
	g.Close(supervision.Backoff{Meanwhile: supervision.MeanwhileReply, Stash: 1})
	if g.Policy() != supervision.MeanwhileReply || !g.Bounded() {
		t.Error(g.Policy())
	}
	g.Open()
	if g.Policy() != supervision.MeanwhileKeep || g.Bounded() {
		t.Error(g.Policy())
	}
}

// owner is an actor that has a grace.
type owner struct {
	v      *clock.Virtual
	alarms alarm.Board
	told   []sysmail.Msg
}

func (o *owner) Alarms() *alarm.Board { return &o.alarms }
func (o *owner) Clock() clock.Clock   { return o.v }
func (o *owner) Now() time.Time       { return o.v.Now() }
func (o *owner) Post(m sysmail.Msg)   { o.told = append(o.told, m) }

func graceOf(overtake bool) supervision.Backoff {
	return supervision.Backoff{Grace: time.Second, Overtake: overtake}
}

// An overtaking grace holds what has waited and lets newer ones pass; what it has held
// comes back before all that is newer.
func TestOvertakingGrace(t *testing.T) {
	var g Gate
	var m life.Machine
	o := &owner{v: clock.NewVirtual(time.Unix(1, 0))}
	q := queueOf(1, 2)
	if g.BeginGrace(o, &m, q, supervision.Backoff{Overtake: true}); g.Grace() != nil {
		t.Error("a grace of no time")
	}
	g.BeginGrace(o, &m, q, graceOf(true))
	if !q.Empty() || g.Holds() || m.Held(life.Grace) || g.Grace() == nil {
		t.Error("nothing is held")
	}
	q.Force(numbered(3))
	var held []int
	g.Held(func(e *mailbox.Envelope) { held = append(held, numberOf(e)) })
	if !slices.Equal(held, []int{1, 2}) {
		t.Error(held)
	}
	g.EndGrace(&m, q)
	if got := drain(q); !slices.Equal(got, []int{1, 2, 3}) || g.Grace() != nil {
		t.Error(got)
	}
	g.EndGrace(&m, q)
	g.Held(func(*mailbox.Envelope) { t.Error("held") })
}

// A grace without overtaking leaves the queue as it is and holds all of it back.
func TestHoldingGrace(t *testing.T) {
	var g Gate
	var m life.Machine
	o := &owner{v: clock.NewVirtual(time.Unix(1, 0))}
	if g.Holds() || g.Grace() != nil {
		t.Error("a grace before any")
	}
	q := queueOf(1, 2)
	g.BeginGrace(o, &m, q, graceOf(false))
	first := g.Grace()
	if !g.Holds() || !m.Held(life.Grace) || q.Len() != 2 || g.Due() != time.Unix(2, 0) {
		t.Error("it does not hold")
	}
	g.EndGrace(&m, q)
	o.v.Advance(time.Minute)
	if g.Holds() || m.Held(life.Grace) || len(o.told) != 0 || o.alarms.Pending() != 0 {
		t.Error("the grace is not over")
	}
	g.LoadGrace(o, &m, true, nil, o.v.Now().Add(time.Second))
	if g.Grace() == first || !m.Held(life.Grace) {
		t.Error("one grace is another")
	}
	if o.v.Advance(time.Second); len(o.told) != 1 || o.told[0].Kind != sysmail.GraceOver || o.told[0].Due != g.Grace() {
		t.Errorf("%+v", o.told)
	}
}
