package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// session is a provider and the requests that it works on: what one incarnation of a service has.
type session[G any] struct {
	f        *frame[G]
	provider Provider[G]
	inline   Inline[G]    // nil: no operation is
	sequence Sequencer[G] // nil: the order does not matter

	mu      sync.Mutex
	calls   map[*call]struct{}
	open    int // calls that Serve works on
	closing bool
	idle    chan struct{} // closed when it closes and no call is left
}

// call is a request that Serve works on, or will.
type call struct{ cancel context.CancelCauseFunc }

func newSession[G any](f *frame[G], p Provider[G]) *session[G] {
	s := &session[G]{f: f, provider: p, calls: map[*call]struct{}{}, idle: make(chan struct{})}
	s.inline, _ = p.(Inline[G])
	s.sequence, _ = p.(Sequencer[G])
	return s
}

// serveNow is ServeNow, with panics as errors.
func (s *session[G]) serveNow(r *Request[G]) (answer any, err error, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			answer, err, ok = nil, s.f.panicked(r.Op, p), true
		}
	}()
	return s.inline.ServeNow(r)
}

// waitingShare: waiting requests of one grant are at most this part of all that may wait (1/4).
const waitingShare = 4

// later makes Serve do the work, as soon as the grant has room for it.
func (s *session[G]) later(ctx *host.Context, r *Request[G], size int64) *Error {
	f, budget := s.f, r.granted.budget
	base := ctx.Head().Trace(ctx.Head().Values())
	var reply *host.Reply
	if err := budget.room(max(f.atOnce/waitingShare, 1)); err != nil {
		return err
	}
	c := &call{}
	if err := s.begin(c); err != nil {
		return err
	}
	if r.wanted {
		var err error
		if reply, err = ctx.Later(); err != nil {
			s.end(c)
			return Errorf(Busy, "too many requests of all actors are in progress")
		}
		base = reply.Trace(reply.Context())
	}
	// The mailbox reuses the payload when the turn ends.
	r.Args = append([]byte(nil), r.Args...)
	work, cancel := context.WithCancelCause(base)
	s.mu.Lock()
	if c.cancel = cancel; s.closing {
		cancel(errClosing)
	}
	s.mu.Unlock()
	timer := f.env.Clock.AfterFunc(budget.bounds.Timeout, func() { cancel(context.DeadlineExceeded) })
	finish := func(requests int, answer any, err error) {
		timer.Stop()
		payload, err := f.encode(r, answer, ended(work, err))
		err = f.seen(r, err)
		// First the room is given back, then the answer is sent: the receiver may ask again at once.
		budget.leave(requests, size)
		switch {
		case reply == nil:
		case err != nil:
			_ = reply.Fail(err.Error())
		default:
			_ = reply.Send(host.Raw(payload)) // an error says that nobody waits any more
		}
		cancel(nil)
		s.end(c)
	}
	w := &waiter{}
	var patience interface{ Stop() bool }
	w.start = func() {
		if patience != nil {
			patience.Stop()
			f.waits.Add(-1)
		}
		if err := s.work(); err != nil {
			f.env.Go(func() { finish(1, nil, err) })
			return
		}
		if s.sequence != nil {
			s.sequence.Accepted(r)
		}
		f.env.Go(func() {
			answer, err := s.serve(work, r)
			s.worked()
			finish(1, answer, err)
		})
	}
	giveUp := func(err error) {
		if budget.abandon(w) {
			f.waits.Add(-1)
			finish(0, nil, err)
		}
	}
	w.wait = func() {
		b := &budget.bounds
		patience = f.env.Clock.AfterFunc(b.Wait, func() {
			giveUp(Errorf(Busy, "%d requests are in progress, which is the limit, and there was no room within %v; at-once and wait of the grant raise it", b.AtOnce, b.Wait))
		})
		executor.AfterDone(f.env.Clock, work, func() { giveUp(context.Cause(work)) })
		f.waits.Add(1) // the timers are set: whoever sees that it waits may move the clock
	}
	budget.enter(w)
	return nil
}

// begin adds a call, unless there are too many, or the service closes.
func (s *session[G]) begin(c *call) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return Errorf(Unavailable, "%s is closing", s.f.name)
	case s.open >= s.f.atOnce || len(s.calls) >= 2*s.f.atOnce:
		return Errorf(Busy, "%d requests of all actors are in progress, which is the limit", s.f.atOnce)
	}
	s.calls[c] = struct{}{}
	return nil
}

// work notes that Serve begins to work on a call.
func (s *session[G]) work() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.f.atOnce {
		return Errorf(Busy, "%d requests of all actors are in progress, which is the limit", s.f.atOnce)
	}
	s.open++
	return nil
}

// worked gives back the room that work has taken.
func (s *session[G]) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// working is how many requests Serve works on, and unfinished how many calls have something left to do.
func (s *session[G]) working() (open, unfinished int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, len(s.calls)
}

// end is called when a call has nothing left to do.
func (s *session[G]) end(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c)
	if s.closing && len(s.calls) == 0 {
		close(s.idle)
	}
}

// stop ends all calls; idle is closed when they have returned.
func (s *session[G]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	if len(s.calls) == 0 {
		close(s.idle)
	}
	for c := range s.calls {
		if c.cancel != nil {
			c.cancel(errClosing)
		}
	}
}

// close closes the provider when the last call has returned.
func (s *session[G]) close() error {
	s.stop()
	executor.Take(s.f.env.Clock, s.idle)
	return s.provider.Close(context.Background())
}

// serve is Serve, with panics as errors.
func (s *session[G]) serve(ctx context.Context, r *Request[G]) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, s.f.panicked(r.Op, p)
		}
	}()
	return s.provider.Serve(ctx, r)
}

// Outage is the time in which a service does not serve.
type Outage struct {
	Service string
	Since   time.Time
	Why     string // for operators; it may name files
}

// incarnation is the actor of a service between two restarts.
type incarnation[G any] struct {
	frame *frame[G]
	again bool // it is not the first one, which begins with the provider that Start has opened
}

// Started implements host.Starter.
func (i *incarnation[G]) Started(ctx *host.Context) error {
	if i.again {
		i.frame.reopen(ctx.Self())
	}
	return nil
}

// Receive implements host.Actor.
func (i *incarnation[G]) Receive(ctx *host.Context, m host.Message) error {
	i.frame.mu.Lock()
	s := i.frame.now
	i.frame.mu.Unlock()
	return i.frame.receive(ctx, m, s)
}

// Stopped implements host.Stopper.
func (i *incarnation[G]) Stopped(*host.Context) {
	if s := i.frame.down(); s != nil {
		s.stop()
	}
}

// down notes that the service does not serve, and returns the session that it had.
func (f *frame[G]) down() *session[G] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outage.Since.IsZero() {
		f.outage = Outage{Since: f.env.Clock.Now(), Why: "its actor has failed, or was stopped"}
	}
	return f.now
}

// reopen closes the session of the incarnation before, and opens another. If that fails the actor
// fails, and its supervisor decides when to try again.
func (f *frame[G]) reopen(self host.Ref) {
	last := f.down()
	f.mu.Lock()
	f.now = nil
	f.opening++
	f.attempt++
	attempt := f.attempt
	f.mu.Unlock()
	f.env.Go(func() {
		executor.Outside(f.env.Clock, f.one.Lock)
		defer f.one.Unlock()
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.opening--
			f.settled.Broadcast()
		}()
		if last != nil {
			if err := last.close(); err != nil {
				f.env.Log.Error("the service was not closed in order", "error", err)
			}
		}
		if f.stale(attempt) {
			return
		}
		p, err := f.tryOpen()
		if f.begun(attempt, p, err) {
			return
		}
		if err == nil { // the system has ended, or the actor was restarted again
			err = p.Close(context.Background())
		}
		if err != nil && !f.stale(attempt) {
			f.fault("the service cannot be opened again", "error", err)
			_ = f.env.System.Operate().Crash(self, 0, "the service cannot be opened again; the host's log says why")
		}
	})
}

// stale reports whether an attempt to open the service is no longer the last one.
func (f *frame[G]) stale(attempt int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over || f.attempt != attempt
}

// begun makes a provider the one that serves, unless there is none, or it comes too late.
func (f *frame[G]) begun(attempt int, p Provider[G], err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.over || f.attempt != attempt:
		return false
	case err != nil:
		f.outage.Why = err.Error()
		return false
	}
	f.now, f.outage = newSession(f, p), Outage{}
	return true
}

// tryOpen is open, with panics as errors.
func (f *frame[G]) tryOpen() (p Provider[G], err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it has panicked: %v", r)
		}
	}()
	p, err = f.open()
	if err == nil && p == nil {
		err = errors.New("it has opened nothing")
	}
	return p, err
}

// close closes the last session, when the system has ended.
func (f *frame[G]) close() error {
	f.mu.Lock()
	f.over = true
	s := f.now
	f.mu.Unlock()
	if s != nil {
		s.stop()
	}
	f.mu.Lock()
	for f.opening > 0 {
		f.settled.Wait()
	}
	s = f.now
	f.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.close()
}

// session is the one that is open, nil if none is.
func (f *frame[G]) session() *session[G] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// isDown is the outage that lasts; Since is zero if none does.
func (f *frame[G]) isDown() Outage {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.outage
	o.Service = f.name
	return o
}

// work is how many requests are under way, and how much there is left to do.
func (f *frame[G]) work() (open, busy int) {
	f.mu.Lock()
	s, opening := f.now, f.opening
	f.mu.Unlock()
	if s != nil {
		open, busy = s.working()
	}
	return open, busy + opening
}
