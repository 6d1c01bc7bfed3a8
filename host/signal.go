package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// The other way in, beside deliver: signal finds the receiver of a ref and hands it a signal. It also decides what follows
// if a ref has no receiver.

// signal sends a signal to the receiver of the ref: an actor, a waiter outside, or a receiver on another node. It returns
// false if there is none; the sender was then notified where that matters. scr is nil outside workers. The caller holds no
// lock.
func (s *System) signal(scr *scratch, to abi.Ref, m signal.Signal) bool {
	if scr != nil && scr.after != 0 && signalsLater(s, scr, to, m) {
		return true
	}
	if a := s.table.Get(to); a != nil {
		if a.signal(scr, m) {
			return true
		}
	} else if s.outside.Signal(to, &m) || s.far.Signal(to, &m) {
		return true
	}
	s.unheard(scr, to, &m)
	return false
}

// unheard answers a signal that has reached no receiver.
func (s *System) unheard(scr *scratch, to abi.Ref, m *signal.Signal) {
	switch m.Kind {
	case signal.Watch:
		s.signal(scr, m.From, signal.Signal{Kind: signal.Terminated, From: to, Reason: "unknown"})
	case signal.Observe:
		s.signal(scr, m.From, signal.Signal{Kind: signal.Abandoned})
	}
}

// here is the actor that has a ref, for what only its own node can do with it: to look at it, to give it an order of an
// operator, to start a child below it. It is nil if there is none, or if it is elsewhere. Messages and signals do not
// ask this: see deliver and signal.
func (s *System) here(uid abi.Ref) *actor { return s.table.Get(uid) }

// signal sends a signal to the actor; false if it has gone.
func (a *actor) signal(scr *scratch, m signal.Signal) bool {
	switch m.Kind {
	case signal.Stop:
		return a.stop(scr, m.Reason)
	case signal.Kill:
		if !a.post(scr, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: m.Reason}}) {
			return false
		}
		if x := a.inst; x != nil {
			x.Kill("stopped")
		}
		return true
	case signal.Observe:
		if m.Correlation == 0 {
			return true // a message that may be answered, although nobody waits for an answer
		}
	case signal.Unanswered:
		if m.Err == ErrTimeout {
			return true // its own alarm tells it
		}
	}
	waits := m // on the heap
	return a.post(scr, sysmail.Msg{Kind: sysmail.Signal, Signal: &waits})
}

// signalled handles a signal, within the actor's run.
func (a *actor) signalled(scr *scratch, m *signal.Signal) {
	switch m.Kind {
	case signal.Watch:
		a.work.Watch.AddWatcher(m.From)
	case signal.Unwatch:
		a.work.Watch.RemoveWatcher(m.From)
	case signal.Terminated:
		if a.work.Watch.Watching(m.From) { // else it was ended in between
			e := scr.newEnvelope()
			path := m.Path
			if a.durable { // its log has no paths of others
				path = ""
			}
			a.work.News(e, m.From, path, m.Reason)
			a.insist(scr, e)
		}
	case signal.Unanswered:
		if ask := a.work.Asked(m.Correlation, m.From); ask != nil { // it gets this in place of the answer
			e := hostReply(scr, m.From, m.Correlation, m.Text())
			e.SetHeaders(ask.Trace)
			a.insist(scr, e)
		}
	case signal.Delegate:
		if ask := a.work.Asks.Get(m.Correlation); ask != nil {
			ask.Delegate(m.From, m.Other)
		}
	case signal.Observe:
		if !a.work.Asks.Observe(m.Correlation, m.From) {
			a.sys.abandoned(scr, m.From)
		}
	}
}

// notifyEnd tells a watcher that an actor has gone.
func (s *System) notifyEnd(scr *scratch, watcher abi.Ref, of Ref, reason string) {
	s.signal(scr, watcher, signal.Signal{Kind: signal.Terminated, From: of.UID(), Path: of.URI(), Reason: reason})
}

// abandoned tells handles that the ask which they observe is over.
func (s *System) abandoned(scr *scratch, handles ...abi.Ref) {
	for _, handle := range handles {
		s.signal(scr, handle, signal.Signal{Kind: signal.Abandoned})
	}
}

// unanswered tells the asker that there will be no answer to a message.
func (s *System) unanswered(scr *scratch, e *mailbox.Envelope, to abi.Ref, err error) {
	if mark.AwaitsReply(e) {
		s.willNotAnswer(scr, e.Sender, e.Correlation, to, err)
	}
}

// willNotAnswer tells an asker that there will be no answer of an actor.
func (s *System) willNotAnswer(scr *scratch, asker abi.Ref, correlation uint64, of abi.Ref, err error) {
	s.signal(scr, asker, signal.Signal{Kind: signal.Unanswered, From: of, Correlation: correlation, Err: err})
}

// delegate adds to as an answerer of what from was asked.
func (s *System) delegate(scr *scratch, e *mailbox.Envelope, from, to abi.Ref) {
	if mark.AwaitsReply(e) {
		s.signal(scr, e.Sender, signal.Signal{Kind: signal.Delegate, From: from, Other: to, Correlation: e.Correlation})
	}
}

// refOf is the full ref of a living actor; the path of any other is that of receivers that are no actors.
func (s *System) refOf(uid abi.Ref) Ref {
	if uid == 0 {
		return Ref{}
	}
	if a := s.here(uid); a != nil {
		return a.ref()
	}
	return newRef(uid, s.temp)
}

// sender is the sender of an envelope, even if it has stopped since.
func (s *System) sender(e *mailbox.Envelope) Ref {
	if e.SenderPath != "" {
		return newRef(e.Sender, e.SenderPath)
	}
	return s.refOf(e.Sender)
}

// killFor kills a turn that goes on for too long after its actor was told to stop, or to restart.
func (a *actor) killFor(reason string) {
	x := a.inst
	if x == nil || !a.place.Running() || !x.Awake() || !a.killing.CompareAndSwap(false, true) {
		return
	}
	a.Clock().AfterFunc(a.sys.cfg.Grace, func() {
		a.killing.Store(false)
		if a.place.Running() && a.sysq.Waiting() {
			x.Kill(reason)
		}
	})
}

// post sends a system message; false if the actor has gone.
func (a *actor) post(scr *scratch, m sysmail.Msg) bool {
	owe(a, 1) // before it is there
	ok, first := a.sysq.Push(&m)
	if !first {
		owe(a, -1)
	}
	if !ok {
		return false
	}
	a.place.Wake(scr.worker())
	if a.inst != nil && a.place.Running() && a.sys.repeats.Load() == nil { // a repeated batch ends where it ended
		a.inst.EndBatch()
		a.sysq.Cut.Store(true) // afterwards: goOn must not come in between
	}
	if m.Kind.Urgent() {
		a.place.Hurry()
	}
	return true
}

// stop asks the actor to stop after its current turn; false if it has gone. Any goroutine may call it.
func (a *actor) stop(scr *scratch, reason string) bool {
	ok := a.post(scr, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: reason}})
	a.killFor("stopped")
	return ok
}

// leaveLater has f called when the present turn is durable. bytes is what waits with it.
func leaveLater(s *System, scr *scratch, bytes int, f func(error)) {
	s.durable.leaving.Add(1)
	s.cfg.Recorder.(record.Outputs).Later(scr.after, bytes, func(err error) {
		f(err)
		s.durable.leaving.Add(-1)
	})
}

// signalsLater is the same for signals; false if the receiver is durable, or unknown. When the store has failed its actors end in
// this process, whatever the log has of it: who waits for that, or for an answer, is told.
func signalsLater(s *System, scr *scratch, to abi.Ref, m signal.Signal) bool {
	if a := s.here(to); a != nil && a.durable || a == nil && !s.outside.Has(to) {
		return false
	}
	leaveLater(s, scr, overhead, func(err error) {
		if err == nil || m.Kind == signal.Terminated || m.Kind == signal.Unanswered || m.Kind == signal.Abandoned {
			s.signal(nil, to, m)
		}
	})
	return true
}
