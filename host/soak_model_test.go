package host

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/supervision"
)

// What must hold in a soak: the fate of every message, and every restart within its
// window and not before its delay.

type letterKey struct {
	to   abi.Ref
	via  abi.Ref // the router that it was told to
	s, n uint64
}

// letterOf is where the fate of a parcel is that an actor has: it was told to it, or to its router. Of what goes
// to all routees each has one of its own.
func letterOf(uid abi.Ref, p parcel) letterKey {
	if p.Via != 0 && !p.All {
		uid = p.Via
	}
	return letterKey{uid, p.Via, p.S, p.N}
}

// orderKey is what keeps the order of messages.
type orderKey struct {
	to, via abi.Ref
	s       uint64
	level   uint8
}

// fate is what has become of an accepted message.
type fate struct {
	end     string // "" while it waits
	crashes int
	policy  CrashedMessage
}

// book is the model.
type book struct {
	w      *world
	fates  map[letterKey]*fate
	last   map[orderKey]uint64 // by receiver, sender and level, of its router: the last number handled
	routed int
	copies int
	story  []string

	restarts map[abi.Ref][]time.Time // decided for a child's own failures, since it lives
	shared   map[abi.Ref][]time.Time // likewise, by supervisor, in its incarnation
	due      map[abi.Ref]time.Time   // no restart before
}

func newBook(w *world) *book {
	return &book{w: w, fates: map[letterKey]*fate{}, last: map[orderKey]uint64{},
		restarts: map[abi.Ref][]time.Time{}, shared: map[abi.Ref][]time.Time{}, due: map[abi.Ref]time.Time{}}
}

func (b *book) accepted(c *actor, p parcel) {
	if p.All {
		return // see fateOf
	}
	policy := c.props.crashed
	if of, router := c.soakRouter(); router {
		policy = of
	}
	b.fates[letterOf(c.uid, p)] = &fate{policy: policy}
}

// fateOf is what has become of a parcel so far; nil: it was told to nobody. That of a copy begins
// when the routee shows that it has it.
func (b *book) fateOf(uid abi.Ref, p parcel) *fate {
	key := letterOf(uid, p)
	f := b.fates[key]
	if f == nil && p.All && uid != p.Via {
		c := b.w.table.Get(uid)
		if c == nil {
			c = b.w.cells[uid]
		}
		if c == nil {
			return nil
		}
		f = &fate{policy: c.props.crashed}
		b.fates[key], b.w.cells[uid] = f, c
		b.copies++
	}
	return f
}

func (b *book) refused(c *actor, p parcel) { delete(b.fates, letterOf(c.uid, p)) }

func (b *book) enter(uid abi.Ref, p parcel, end string) {
	if f := b.fateOf(uid, p); f != nil && f.end == "" {
		f.end = end
	}
}

// handled: once, and in the order of its sender unless newer ones may overtake.
func (b *book) handled(uid abi.Ref, p parcel) {
	f := b.fateOf(uid, p)
	if f == nil || f.end != "" {
		b.w.wrong("%v to %v is handled, though it is %+v", p, uid, f)
		return
	}
	f.end = "handled"
	b.story = append(b.story, fmt.Sprint("handled ", uid, p))
	if p.Via != 0 {
		b.routed++
	}
	order := orderKey{uid, p.Via, p.S, p.Level}
	if b.last[order] >= p.N {
		overtake := false
		for _, at := range []abi.Ref{uid, p.Via} {
			c := b.w.table.Get(at)
			if c == nil {
				c = b.w.cells[at] // it has stopped
			}
			if c != nil {
				backoff, _ := c.backoff()
				overtake = overtake || backoff.Overtake && backoff.Grace > 0
			}
		}
		if !overtake {
			b.w.wrong("%v of sender %d to %v comes after %d", p.N, p.S, uid, b.last[order])
		}
	}
	b.last[order] = max(b.last[order], p.N)
}

func (b *book) crashed(uid abi.Ref, p parcel) {
	if f := b.fateOf(uid, p); f == nil || f.end != "" {
		b.w.wrong("%v to %v crashes, though it is %+v", p, uid, f)
	} else {
		f.crashes++
	}
}

func (b *book) crashesOf(uid abi.Ref, p parcel) int {
	if f := b.fateOf(uid, p); f != nil {
		return f.crashes
	}
	return 0
}

func (b *book) event(e *Event) {
	b.story = append(b.story, fmt.Sprint(e.Kind, e.Time.UnixNano(), e.Ref, e.Incarnation, e.Directive, e.Delay, e.Failures, e.Note))
	switch e.Kind {
	case EventDeadLetter:
		b.letter(e.Dead)
	case EventUnhandled: // by a router without routees
		var p parcel
		if (Message{Payload: e.Dead.Payload}).Decode(&p) == nil && p.Via == e.Ref.UID() {
			b.enter(p.Via, p, "unhandled")
		}
	case EventFailed:
		b.decided(e)
	case EventRestarted:
		if due, ok := b.due[e.Ref.UID()]; ok && e.Time.Before(due) {
			b.w.wrong("%v is restarted %v before its delay is over", e.Ref, due.Sub(e.Time))
		}
		delete(b.due, e.Ref.UID())
		delete(b.shared, e.Ref.UID()) // of its children
	}
}

func (b *book) letter(d *DeadLetter) {
	var p parcel
	if (Message{Payload: d.Payload}).Decode(&p) != nil || p.What == "" {
		return
	}
	f := b.fateOf(d.Recipient, p)
	if f == nil {
		return // refused: the sender knows
	}
	if f.end != "" {
		b.w.wrong("%v to %v is a dead letter (%v), though it is %q", p, d.Recipient, d.Reason, f.end)
	}
	if d.Reason == DeadCrashed && f.crashes != spawning.TimesOf(f.policy)+1 {
		b.w.wrong("%v to %v is given up after %d crashes, with %+v", p, d.Recipient, f.crashes, f.policy)
	}
	f.end = d.Reason.String()
}

// decided checks a restart against the limit, without the code that it checks.
func (b *book) decided(e *Event) {
	c := b.w.table.Get(e.Ref.UID())
	if c == nil || e.Directive != supervision.Restart {
		return
	}
	if c.props.life == supervision.Temporary {
		b.w.wrong("%v is temporary and restarted", e.Ref)
	}
	b.due[e.Ref.UID()] = e.Time.Add(e.Delay)
	s := c.parent.props.strategy
	n, within := s.MaxRestarts()
	if n == supervision.Unlimited && within == 0 {
		return
	}
	times, key := b.restarts, e.Ref.UID()
	if s.Shared() {
		times, key = b.shared, c.parent.uid
	}
	times[key] = append(times[key], e.Time)
	all := times[key]
	switch k := len(all) - 1; {
	case within == 0 && len(all) > n:
		b.w.wrong("%v: %d restarts of %d", e.Ref, len(all), n)
	case within > 0 && s.Sliding() && k >= n && e.Time.Sub(all[k-n]) <= within:
		b.w.wrong("%v: %d restarts within %v, %d are allowed", e.Ref, n+1, e.Time.Sub(all[k-n]), n)
	case within > 0 && k >= 2*n && e.Time.Sub(all[k-2*n]) <= within: // two windows side by side
		b.w.wrong("%v: %d restarts within %v, tumbling with %d", e.Ref, 2*n+1, e.Time.Sub(all[k-2*n]), n)
	}
}

// atRest checks that nobody waits in vain and that no message has vanished.
func (b *book) atRest() {
	b.w.table.Each(func(c *actor) {
		if c.life.State() != life.Running || c.life.Suspended() != 0 || !c.life.Free() || !c.box.Empty() || c.super.Undecided() > 0 || c.gate.Policy() != 0 {
			b.w.wrong("%s is %v, suspended %d times, held: %v, %d messages wait, %d decisions", c.path, c.life.State(), c.life.Suspended(), !c.life.Free(), c.box.Len(), c.super.Undecided())
		}
	})
	for k, f := range b.fates {
		if f.end == "" && (f.crashes == 0 || f.policy != DropCrashed() || f.crashes > 1) {
			b.w.wrong("%+v is lost: %+v", k, f)
		}
	}
}
