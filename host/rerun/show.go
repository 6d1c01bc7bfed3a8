package rerun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/runtime"
)

var (
	// ErrTime says that a time is not within a recording.
	ErrTime = errors.New("the recording has no such time")
	// ErrMoving says that another caller moves a Show.
	ErrMoving = errors.New("it is on the way to another time")
	// ErrNoActor says that an actor is not in a recording.
	ErrNoActor = errors.New("no such actor is in the recording")
)

// Show is a recording at one of its times. To go forward its guests go on, to go back they begin again. Its methods are for any
// goroutine.
type Show struct {
	engine *runtime.Engine
	of     *recorder.Recording
	o      Options
	plan   *plan
	names  names
	now    atomic.Pointer[Moment]

	moving sync.Mutex // held by the caller that moves it, which has what follows
	run    *run
	spoilt bool // the run has ended within an entry
	actors map[abi.Ref]*tally
	types  map[string]*Sum
}

// Sum is what actors have come to.
type Sum struct {
	Turns, Fuel, Crashes, Restarts uint64
}

func (s *Sum) add(t Sum) {
	s.Turns += t.Turns
	s.Fuel += t.Fuel
	s.Crashes += t.Crashes
	s.Restarts += t.Restarts
}

// tally is what an actor has come to since the recording began.
type tally struct {
	Sum
	first, last uint64 // incarnations. There is no order between the entries of several ones
	since       int64  // of the last
	failure     *abi.Failure
	failed      uint64 // incarnation
	failedAt    int64
}

// Moment is what is there at a time of a recording. It does not change.
type Moment struct {
	At int64 // ns since 1970
	// Turns and Failed are those that have come about again, as in Report.
	Turns, Failed int
	Actors        []Standing // that live and have begun, by path and ref
	// Ended is what the actors that have stopped have come to since the recording began, by type.
	Ended map[string]Sum
	// Difference is the first turn that did not come out as recorded: nothing behind it was repeated. nil: all did.
	Difference *Difference
}

// Standing is an actor at a moment.
type Standing struct {
	Of       *recorder.Incarnation
	Image    int // of the recording
	Sum          // its Turns are all of the actor, the others count since the recording began
	Since    int64
	Failure  *abi.Failure // the last one: kind, reason and fuel; nil: it has not failed
	FailedAt int64
	Chain    recorder.Chain
}

// OpenShow loads what is needed to repeat all of a recording, and goes to a time, as Goto does; 0 is that of the last turn
// before the actors are stopped at the end. Of o, Modules and Memory count.
// Errors are as those of Run.
func OpenShow(ctx context.Context, engine *runtime.Engine, of *recorder.Recording, o Options, at int64) (*Show, error) {
	s := &Show{engine: engine, of: of, o: Options{Modules: o.Modules, Memory: o.Memory, plant: o.plant}}
	var err error
	if s.plan, err = planOf(ctx, of, ""); err != nil {
		return nil, err
	}
	if s.plan.begin == 0 {
		return nil, ErrEmpty
	}
	if s.names, _, err = namesOf(of); err != nil {
		return nil, err
	}
	own := s.o
	own.seen = s.count
	s.run = newRun(ctx, of, s.plan, own)
	if err := s.run.load(engine); err != nil {
		s.run.close()
		return nil, err
	}
	s.rewind()
	if _, err := s.Goto(ctx, cmp.Or(at, s.plan.calm, s.plan.end)); err != nil {
		s.run.close()
		return nil, err
	}
	return s, nil
}

// Recording is what is shown.
func (s *Show) Recording() *recorder.Recording { return s.of }

// Span is the first and the last time that it can show, ns since 1970.
func (s *Show) Span() (begin, end int64) { return s.plan.begin, s.plan.end }

// NotRecorded are actors that are not, or not to their end, in the recording, up to a bound.
func (s *Show) NotRecorded() []Absent { return s.plan.absent }

// Inexact are actors that were handed a known secret, see Report.Inexact.
func (s *Show) Inexact() []Absent { return s.plan.inexact }

// Now is the moment that it shows.
func (s *Show) Now() *Moment { return s.now.Load() }

// Goto goes to a time within its span: all entries up to that are repeated, and those only. It takes as long as the turns have
// taken: from where it is, or from the begin if it goes back. If ctx ends before, it stays where it was. The error is then that
// of ctx; it wraps ErrTime if the recording has no such time, and ErrMoving while another caller moves it.
func (s *Show) Goto(ctx context.Context, at int64) (*Moment, error) {
	if begin, end := s.Span(); at < begin || at > end {
		text := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
		return nil, fmt.Errorf("%w: it is from %s to %s", ErrTime, text(begin), text(end))
	}
	if !s.moving.TryLock() {
		return nil, ErrMoving
	}
	defer s.moving.Unlock()
	now := s.now.Load()
	if s.spoilt || now != nil && at < now.At {
		s.rewind()
	}
	if s.run.report.Difference == nil {
		s.spoilt = true
		if err := s.run.forward(ctx, at); err != nil {
			return nil, err
		}
		s.spoilt = false
	}
	now = s.moment(at)
	s.now.Store(now)
	return now, nil
}

func (s *Show) rewind() {
	s.run.rewind()
	s.spoilt, s.actors, s.types = false, map[abi.Ref]*tally{}, map[string]*Sum{}
}

// count counts what an entry has come to.
func (s *Show) count(h *happened) bool {
	of := s.types[h.of.Type]
	if of == nil {
		of = &Sum{}
		s.types[h.of.Type] = of
	}
	t := s.actors[h.of.Ref]
	one := Sum{Turns: uint64(h.outcome.done), Fuel: h.outcome.fuel}
	n := h.of.Number
	switch {
	case t == nil:
		t = &tally{first: n, last: n}
		if s.actors[h.of.Ref] = t; h.of.Snapshot == nil {
			t.since = h.record.Now
		}
	case n > t.last:
		one.Restarts = n - t.last
		t.last, t.since = n, h.record.Now
	case n < t.first:
		one.Restarts = t.first - n
		t.first = n
	}
	if f := h.outcome.failure; f != nil {
		one.Turns++
		one.Crashes++
		if now := h.record.Now; now > t.failedAt || now == t.failedAt && n >= t.failed {
			last := *f
			t.failure, t.failed, t.failedAt = &last, n, now
		}
	}
	t.add(one)
	of.add(one)
	return true
}

// moment is what is there.
func (s *Show) moment(at int64) *Moment {
	r := s.run
	m := &Moment{At: at, Turns: r.report.Turns, Failed: r.report.Failed, Ended: map[string]Sum{}, Difference: r.report.Difference}
	for name, x := range s.types {
		m.Ended[name] = *x
	}
	for _, l := range r.living(func(l *life) bool { return l.p != nil || l.Snapshot != nil }) { // otherwise its first turn is later
		x := Standing{Of: &l.Incarnation, Image: l.image}
		if t := s.actors[l.Ref]; t != nil {
			x.Sum, x.Since, x.Failure, x.FailedAt = t.Sum, t.since, t.failure, t.failedAt
			e := m.Ended[l.Type]
			m.Ended[l.Type] = Sum{e.Turns - t.Turns, e.Fuel - t.Fuel, e.Crashes - t.Crashes, e.Restarts - t.Restarts}
		}
		if x.Turns = l.Turns; l.p != nil {
			x.Turns, x.Chain = l.p.next, l.p.chain
		}
		m.Actors = append(m.Actors, x)
	}
	return m
}

// Close gives its memory back. It waits for the caller that moves it.
func (s *Show) Close() {
	s.moving.Lock()
	defer s.moving.Unlock()
	s.run.close()
}

// Traced is a message that a guest has taken in, or that such a turn sends. Messages that a failed turn would have sent are not
// among them.
type Traced struct {
	Time        int64 // of the turn, ns since 1970
	Of          *recorder.Incarnation
	Turn        uint64
	Out         bool
	Forward     bool
	Kind        abi.Kind
	Peer        abi.Ref // 0: no actor, or Path
	Path        string  // of the peer: as the guest has written it, or as it is recorded; "" if it is not
	Correlation uint64
	Payload     []byte       // valid until the call ends
	Failure     *abi.Failure // of the turn that has taken it in
}

// Trace calls f with the messages of the actor at a path in turns that are later than after, and not later than until (0: to the
// end of the recording), or until f returns false: those of an incarnation in order. What leads to them is repeated from the begin,
// which does not move the Show. Errors are as those of Run; it wraps
// ErrNoActor if the actor is not in the recording.
func (s *Show) Trace(ctx context.Context, path string, after, until int64, f func(*Traced) bool) error {
	path = localPath(path)
	known := false
	for ref := range s.names {
		known = known || s.path(ref) == path
	}
	if !known {
		return fmt.Errorf("%w: %s", ErrNoActor, printable.Line(path, mostSaid))
	}
	p, err := planOf(ctx, s.of, path)
	if err != nil {
		return err
	}
	o := s.o
	o.Actor = path
	o.seen = func(h *happened) bool {
		if !isAt(h.of.Path, path) || h.record.Now <= after {
			return true
		}
		more := true
		s.names.deeds(h, func(d *deed) bool {
			more = s.trace(h, d, f)
			return more
		})
		return more
	}
	r := newRun(ctx, s.of, p, o)
	defer r.close()
	if err := r.load(s.engine); err != nil {
		return err
	}
	if err := r.forward(ctx, until); err != nil {
		return err
	}
	if d := r.report.Difference; d != nil {
		return fmt.Errorf("it does not come out as recorded: %s", d)
	}
	return nil
}

// trace tells the messages of a turn.
func (s *Show) trace(h *happened, d *deed, f func(*Traced) bool) bool {
	one := Traced{Time: h.record.Now, Of: h.of, Turn: d.turn}
	in := one
	in.Kind, in.Peer, in.Path, in.Correlation, in.Payload, in.Failure = d.in.Kind, d.in.Sender, s.path(d.in.Sender), d.in.Correlation, d.in.Payload, d.failure
	if !f(&in) {
		return false
	}
	for i := range d.commands {
		c := &d.commands[i]
		out := one
		out.Out, out.Kind, out.Correlation, out.Payload = true, abi.KindMessage, c.Correlation, c.Payload
		switch {
		case c.Op == abi.OpForward:
			out.Forward, out.Kind, out.Correlation, out.Payload = true, d.in.Kind, d.in.Correlation, d.in.Payload
		case c.Op == abi.OpSend && c.Flags&abi.FlagReply != 0:
			out.Kind = abi.KindReply
		case c.Op == abi.OpSend && c.Flags&abi.FlagReplyError != 0:
			out.Kind = abi.KindReplyError
		case c.Op != abi.OpSend && c.Op != abi.OpAsk:
			continue
		}
		if c.ToPath != nil {
			out.Path = string(c.ToPath)
		} else {
			out.Peer, out.Path = c.ToRef, s.path(c.ToRef)
		}
		if !f(&out) {
			return false
		}
	}
	return true
}

// path is that of a recorded actor, without scheme and system.
func (s *Show) path(ref abi.Ref) string {
	name := s.names[ref]
	if n := len(name); n > 0 && name[n-1] == ')' { // "(2)": the second actor there
		for i := n - 1; i > 0; i-- {
			if name[i] == ' ' {
				return name[:i]
			}
		}
	}
	return name
}
