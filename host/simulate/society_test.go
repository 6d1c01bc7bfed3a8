package simulate_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/supervision"
)

// acts is an actor made of a function.
type acts func(ctx *host.Context, m host.Message) error

// Receive implements host.Actor.
func (f acts) Receive(ctx *host.Context, m host.Message) error { return f(ctx, m) }

var errOnPurpose = errors.New("on purpose")

// societies is what the actors of a society share.
type societies struct {
	w        *simulate.World
	question uint64
	life     map[string]int
	refs     map[int]host.Ref
	watched  map[abi.Ref]map[string]int // how often each watcher was told
	handled  map[int]bool
	last     int // of the stashed ones
	later    []later
}

// later is an answer that is given later.
type later struct {
	due time.Time
	n   int
	r   *host.Reply
}

// answers gives the answers that are due.
func (s *societies) answers() {
	left := s.later[:0]
	for _, x := range s.later {
		if s.w.Now().Before(x.due) {
			left = append(left, x)
			continue
		}
		_ = x.r.Send(x.n)
	}
	s.later = left
}

// lossy reports whether messages may have been lost, or have come late.
func (s *societies) lossy() bool {
	for _, f := range s.w.Run().Faults() {
		switch f.Class {
		case simulate.Drop, simulate.Late, simulate.Crash, simulate.Full:
			return true
		}
	}
	return false
}

func number(m host.Message) int {
	n := -1
	if m.Decode(&n) != nil {
		return -1
	}
	return n
}

// society is a body whose actors use much of what the host has, and check what it promises.
func society(w *simulate.World) {
	s := &societies{w: w, life: map[string]int{}, refs: map[int]host.Ref{}, watched: map[abi.Ref]map[string]int{}, handled: map[int]bool{}, last: -1}
	violate := w.Run().Violate

	helper := w.Spawn("helper", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		return ctx.Reply(number(m))
	}))
	gone := w.Spawn("gone", host.Func(func(ctx *host.Context, m host.Message) error { return nil }))
	w.System().Stop(gone)
	forwards := w.Spawn("forwards", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Forward(helper) }))
	late := w.Spawn("late", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		r, err := ctx.Later()
		if err != nil {
			return err
		}
		s.later = append(s.later, later{ctx.Now().Add(time.Duration(number(m)%8) * time.Second), number(m), r})
		return nil
	}))
	asker := w.Spawn("asker", host.Native(func() host.Actor { return s.asker([]host.Ref{helper, forwards, late, gone}) }))
	for at := range 90 { // before the alarms that are due at the same times
		w.System().Clock().AfterFunc(time.Duration(at+1)*time.Second/2, s.answers)
	}
	alarms := w.Spawn("alarms", host.Native(s.alarms))
	idle := w.Spawn("idle", host.Native(func() host.Actor { return &resting{w: w} }))
	for at := range 10 {
		w.System().Clock().AfterFunc(time.Duration(at+1)*3*time.Second, func() { _ = w.System().Tell(idle, at) })
	}
	stash := w.Spawn("stash", host.Native(s.stasher))

	ear := w.Spawn("ear", host.Func(func(ctx *host.Context, m host.Message) error {
		if n := number(m); n%5 == 0 {
			violate("turns are atomic", "%d was sent by a turn that has failed", n)
		}
		return nil
	}))
	tried := map[int]int{}
	fails := w.Spawn("fails", host.Func(func(ctx *host.Context, m host.Message) error {
		n := number(m)
		if tried[n]++; tried[n] > 1 {
			violate("a message is handled once", "%d was handled %d times", n, tried[n])
		}
		if err := ctx.Tell(ear, n); err != nil {
			return err
		}
		if n%5 == 0 {
			return errOnPurpose
		}
		return nil
	}))

	head := w.Spawn("head", host.Native(func() host.Actor { return &heading{s: s} }))
	top := w.Spawn("top", host.Native(func() host.Actor { return &heading{s: s, deep: true} }).
		WithSupervision(supervision.Default().WithDecider(func(string, *abi.Failure) supervision.Directive { return supervision.Resume })))

	var watchers []host.Ref
	for _, name := range []string{"first", "second"} {
		watchers = append(watchers, w.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
			if m.Kind == abi.KindTerminated {
				of := s.watched[m.Sender.UID()]
				if of == nil {
					violate("watches", "%s is told of an actor that it does not watch", name)
					return nil
				}
				if of[name]++; of[name] > 1 {
					violate("watches", "%s is told %d times", name, of[name])
				}
				return nil
			}
			ref := s.refs[number(m)]
			if s.watched[ref.UID()] == nil {
				s.watched[ref.UID()] = map[string]int{}
			}
			s.watched[ref.UID()][name] += 0
			return ctx.Watch(ref)
		})))
	}
	nursery := w.Spawn("nursery", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return nil
		}
		n := number(m)
		ref, err := ctx.Spawn(fmt.Sprint("kid", n), host.Func(func(ctx *host.Context, m host.Message) error {
			ctx.Stop(ctx.Self())
			return nil
		}))
		if err != nil {
			return err
		}
		s.refs[n] = ref
		for _, x := range watchers {
			if err := ctx.Tell(x, n); err != nil {
				return err
			}
		}
		if n%2 == 0 {
			ctx.Stop(ref)
			return nil
		}
		return ctx.Tell(ref, n)
	}))

	told := 0
	for i := range 14 {
		w.Tell(asker, i)
		w.Tell(alarms, i)
		w.Tell(idle, i)
		for range 1 + w.Int(3) {
			w.Tell(stash, told)
			told++
		}
		w.Tell(fails, i)
		w.Tell(head, i)
		w.Tell(top, i)
		w.Tell(nursery, i)
	}
	for told%4 != 0 {
		w.Tell(stash, told)
		told++
	}
	w.Settled("all has come", func() error {
		w.Pass(time.Minute)
		if s.lossy() {
			return nil
		}
		for n := range told {
			if !s.handled[n] && n%13 != 12 {
				return fmt.Errorf("message %d of the stash was not handled", n)
			}
		}
		for _, of := range s.watched {
			for name, n := range of {
				if n != 1 {
					return fmt.Errorf("%s was told %d times of an actor's end", name, n)
				}
			}
		}
		return nil
	})
}

// asker asks, and notes how each question ends.
func (s *societies) asker(of []host.Ref) host.Actor {
	type question struct {
		n, to int
		due   time.Time
	}
	open := map[uint64]question{}
	violate := s.w.Run().Violate
	return acts(func(ctx *host.Context, m host.Message) error {
		q, known := open[m.Correlation]
		if m.Kind != abi.KindMessage && !known {
			violate("every answer has a question", "%v %d is one of an earlier incarnation, or has come already", m.Kind, m.Correlation)
			return nil
		}
		switch m.Kind {
		case abi.KindReply:
			if n := number(m); n != q.n {
				violate("the right answer", "%d to %d", n, q.n)
			}
		case abi.KindAskTimeout:
			if ctx.Now().Before(q.due) {
				violate("no question ends early", "one that is due at %v has ended at %v", q.due, ctx.Now())
			}
			if q.to != 2 && !s.lossy() {
				violate("every question is answered", "%d has got no answer", q.n)
			}
		case abi.KindMessage:
			n := number(m)
			if n%6 == 5 {
				return errOnPurpose
			}
			for to, ref := range of {
				s.question++
				open[s.question] = question{n, to, ctx.Now().Add(5 * time.Second)}
				if err := ctx.Ask(ref, n, s.question, 5*time.Second); err != nil {
					return err
				}
			}
			return nil
		}
		delete(open, m.Correlation)
		return nil
	})
}

// rings is what a timer carries.
type rings struct{ Life, N, Due int }

// alarms sets timers, replaces and cancels them.
func (s *societies) alarms() host.Actor {
	s.life["alarms"]++
	life, due := s.life["alarms"], map[uint64]rings{}
	violate := s.w.Run().Violate
	last, rung := time.Time{}, 0
	return acts(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindTimer && m.Correlation == 9 {
			if !last.IsZero() && ctx.Now().Sub(last) < 4*time.Second {
				violate("periods", "a period of 4s has taken %v", ctx.Now().Sub(last))
			}
			last = ctx.Now()
			if rung++; rung == 5 {
				ctx.Cancel(9)
			}
			return nil
		}
		if m.Kind == abi.KindTimer {
			var r rings
			switch x := due[m.Correlation]; {
			case m.Decode(&r) != nil || r.Life != life:
				violate("timers end with their incarnation", "%+v rings in life %d", r, life)
			case x != r:
				violate("timers ring once, unless they are cancelled", "%+v rings, and %+v is due", r, x)
			}
			delete(due, m.Correlation)
			return nil
		}
		n := number(m)
		switch {
		case n%5 == 4:
			return errOnPurpose
		case n%5 == 3:
			for key := uint64(1); key <= 3; key++ {
				ctx.Cancel(key)
				delete(due, key)
			}
			return nil
		case n == 0:
			last, rung = time.Time{}, 0
			if err := ctx.After(9, 4*time.Second, 4*time.Second, 0); err != nil {
				return err
			}
		}
		for key := uint64(1); key <= 3; key++ {
			after := (n*int(key))%4 + n%2
			r := rings{life, n, after}
			due[key] = r
			if err := ctx.After(key, time.Duration(after)*time.Second/2, 0, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// resting waits until nothing comes.
type resting struct {
	w     *simulate.World
	last  time.Time
	rests int
}

// Started implements host.Starter.
func (r *resting) Started(ctx *host.Context) error {
	ctx.SetReceiveTimeout(3 * time.Second)
	r.last = ctx.Now()
	return nil
}

// Receive implements host.Actor.
func (r *resting) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindReceiveTimeout {
		if d := ctx.Now().Sub(r.last); d < 3*time.Second {
			r.w.Run().Violate("a receive timeout comes when nothing has come", "it has come after %v", d)
		}
		if r.rests++; r.rests > 5 {
			ctx.SetReceiveTimeout(0)
		}
		r.last = ctx.Now()
		return nil
	}
	r.last = ctx.Now()
	return nil
}

// stasher puts three of four messages aside, until the fourth comes.
func (s *societies) stasher() host.Actor {
	seen := map[int]bool{}
	return acts(func(ctx *host.Context, m host.Message) error {
		n := number(m)
		switch {
		case n%13 == 12 && n%4 != 3:
			return errOnPurpose
		case n%4 == 3:
			ctx.Unstash()
			s.handled[n] = true
			return nil
		case !seen[n]:
			seen[n] = true
			return ctx.Stash()
		}
		if n <= s.last {
			s.w.Run().Violate("what is stashed keeps its order", "%d has come after %d", n, s.last)
		}
		s.last, s.handled[n] = n, true
		return nil
	})
}

// heading has children, and fails.
type heading struct {
	s    *societies
	deep bool // its child has one, and fails instead of it
	kid  host.Ref
}

// Started implements host.Starter.
func (h *heading) Started(ctx *host.Context) (err error) {
	kid := host.Func(func(ctx *host.Context, m host.Message) error { return nil })
	if h.deep {
		kid = host.Native(func() host.Actor { return &heading{s: h.s} })
	}
	if h.kid, err = ctx.Spawn("kid", kid); err != nil {
		h.s.w.Run().Violate("an incarnation finds the names of its children free", "%v", err)
	}
	return err
}

// Receive implements host.Actor.
func (h *heading) Receive(ctx *host.Context, m host.Message) error {
	if n := number(m); m.Kind == abi.KindMessage && n%4 == 3 && !h.deep {
		return errOnPurpose
	}
	return ctx.Tell(h.kid, number(m))
}
