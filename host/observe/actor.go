package observe

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Actor is one actor in full. What only the actor and its supervisor know is read between two
// of their turns; if one is in the middle of a turn, Actor waits a tenth of a second at most, and
// then sets Busy.
func (o *Observer) Actor(path string) (Detail, error) {
	ref, err := o.sys.Lookup(path)
	if err != nil {
		return Detail{}, noActor(path)
	}
	x, err := o.sys.View().Inspect(context.Background(), ref)
	if err != nil {
		return Detail{}, noActor(path)
	}
	o.mu.Lock()
	oldest := o.waiting.look(&x.Info, o.sys.Clock().Now().UnixNano())
	o.mu.Unlock()
	d := Detail{
		Version: Version, Actor: rowOf(&x.Info, oldest), Grace: x.Grace,
		HeldParts: Held(x.Parts), Limits: limitsOf(x.Limits),
		Capabilities: Capabilities{Send: x.Capabilities.Send, Spawn: x.Capabilities.Spawn, Stop: x.Capabilities.Stop},
		Lifetime:     x.Lifetime.String(), Supervisor: x.Parent.Path(), LastFailure: o.failure(&x),
	}
	if x.Module != "" {
		d.Module, d.Code = x.Module, hex.EncodeToString(x.Code[:])
	}
	if c := x.Counts; c != nil {
		d.Counts = &Counts{Timers: c.Timers, Asks: c.Asks, Watches: c.Watches, Watchers: c.Watchers, Stash: c.Stash, Replies: x.Replies}
	}
	if !x.Parent.IsZero() {
		d.Strategy = strategyOf(x.Strategy)
		if r := x.Record; r != nil {
			d.Record = &Record{Failures: r.Failures, Total: r.Total, RestartsInWindow: r.InWindow, LastDelayNS: int64(r.Delay), Left: x.Left}
		}
	}
	d.Busy = d.Counts == nil || !x.Parent.IsZero() && d.Record == nil
	return d, nil
}

func limitsOf(l host.Limits) Limits {
	return Limits{
		Mailbox: l.Mailbox, MailboxBytes: l.MailboxBytes, Fuel: l.Fuel, DeadlineNS: int64(l.Deadline), Memory: l.Memory, Outbox: l.Outbox, Message: l.Message,
		Children: l.Children, Timers: l.Timers, Watches: l.Watches, Asks: l.Asks, Stash: l.Stash, Replies: l.Replies, Held: l.Held,
		TreeActors: l.Tree.Actors, TreeMemory: l.Tree.Memory,
	}
}

// failure is the actor's last failure: from its event while that is kept, else what the
// host has kept of it.
func (o *Observer) failure(x *host.Inspection) *Failure {
	l := x.Failure
	if l == nil {
		return nil
	}
	f := &l.Failure
	if whole := o.events.failure(x.Ref, f.Turn, f.Kind); whole != nil {
		f = whole
	}
	return failureOf(l.At, f)
}

func failureOf(at time.Time, f *abi.Failure) *Failure {
	out := &Failure{Kind: f.Kind.String(), Reason: text(f.Reason), Message: text(f.Message), GuestStack: text(f.GuestStack), Turn: f.Turn, At: at.UTC()}
	for _, frame := range f.Stack {
		out.Stack = append(out.Stack, text(frame))
	}
	return out
}

// failure is the failure of an actor's turn, if its event is kept.
func (e *events) failure(of host.Ref, turn uint64, kind abi.FailureKind) *abi.Failure {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(e.kept) - 1; i >= e.head; i-- {
		if x := &e.kept[i]; x.Kind == host.EventFailed && x.Ref == of {
			if f := x.Failure; f != nil && f.Turn == turn && f.Kind == kind {
				return f
			}
			return nil
		}
	}
	return nil
}

func strategyOf(s supervision.Strategy) *Strategy {
	n, within := s.MaxRestarts()
	x := &Strategy{
		Kind: s.Kind().String(), MaxRestarts: n, WithinNS: int64(within), Sliding: s.Sliding(), Shared: s.Shared(), Exceeded: s.Exceeded().String(),
	}
	if b, ok := s.Backoff(); ok {
		x.Backoff = &Backoff{
			Curve: curveOf(b), MaxFailures: b.MaxFailures, GiveUp: supervision.GiveUps()[b.GiveUp], GraceNS: int64(b.Grace),
			Meanwhile: supervision.Meanwhiles()[b.Meanwhile],
		}
	}
	return x
}

// points is how many points of a curve are shown.
const points = 16

// curveOf is the delays of the first failures, between those with the lowest and the highest random
// numbers. A policy of the embedder's that panics has no curve.
func curveOf(b supervision.Backoff) (curve []Point) {
	defer func() {
		if recover() != nil {
			curve = []Point{}
		}
	}()
	n := points
	if b.MaxFailures > 0 {
		n = min(n, b.MaxFailures)
	}
	curve = []Point{}
	for i := range n {
		low, high := b.Policy.Delay(i, lowest{}), b.Policy.Delay(i, highest{})
		curve = append(curve, Point{Attempt: i + 1, DelayNS: int64(max(low, high)), LeastNS: int64(min(low, high))})
	}
	return curve
}

// lowest and highest are the extremes of random numbers.
type lowest struct{}

func (lowest) Float64() float64 { return 0 }
func (lowest) IntN(int) int     { return 0 }

type highest struct{}

func (highest) Float64() float64 { return 1 - 1.0/(1<<53) }
func (highest) IntN(n int) int   { return n - 1 }
