// Package work has what an actor has under way besides its messages: asks, timers, the receive timeout, watches and the
// stash, within its limits and on its account; and which of the envelopes that come of them still count.
package work

import (
	"cmp"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/watch"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// How much things take, in bytes, besides payloads: about what Go's heap needs for them.
const (
	TimerBytes = 320
	AskBytes   = 448
	WatchBytes = 96
)

// Owner is the actor that the work belongs to.
type Owner interface {
	timers.Owner
	Now() time.Time
	Account() *account.Account
	Limits() *view.Limits
	// Incarnation is the number of the present incarnation.
	Incarnation() uint64
}

// Work is that of one actor. Only the actor's own run may use it. The zero value has none.
//
// The parts may be read directly. What changes the actor's bytes goes through the methods of Work, which keep the
// account up to date. Methods that end asks return their observers, who are to be told.
type Work struct {
	Asks    asks.Table
	Timers  timers.Set
	Receive *timers.Receive // nil: none
	Stash   stash.Stash
	Watch   watch.Set
}

// Idle reports whether nothing is under way. A receive timeout and watches do not count.
func (w *Work) Idle() bool { return w.Timers.Len() == 0 && w.Asks.Len() == 0 && w.Stash.Len() == 0 }

// Hold sets what an account holds of a kind, or fails with an error that wraps errs.ErrLimit.
func Hold(a *account.Account, k account.Kind, n int64) error {
	if err := a.Set(k, n); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrLimit, err)
	}
	return nil
}

// more is Hold of so many bytes more.
func more(o Owner, k account.Kind, n int64) error {
	a := o.Account()
	return Hold(a, k, a.Of(k)+n)
}

func (w *Work) noteTimers(o Owner) {
	o.Account().Note(account.Timers, int64(w.Timers.Len())*TimerBytes+2*int64(w.Timers.Bytes()))
}

func (w *Work) noteAsks(o Owner) {
	o.Account().Note(account.Asks, int64(w.Asks.Len())*AskBytes+int64(w.Asks.Bytes()))
}

func (w *Work) noteWatches(o Owner) {
	o.Account().Note(account.Watches, int64(w.Watch.Len())*WatchBytes+int64(w.Watch.Bytes()))
}

func (w *Work) noteStash(o Owner) { o.Account().Note(account.Stash, w.stashBytes()) }

// stashBytes is what the stash takes and what is held aside.
func (w *Work) stashBytes() int64 {
	return w.Stash.Held() + int64(w.Stash.Bytes()) + int64(w.Stash.Len())*box.EnvelopeBytes
}

// AddAsk notes an ask of the actor's own, before it is sent to target (0: not yet known). It fails with errs.ErrLimit,
// also if the correlation is in use or 0. trace is kept for the messages about it.
func (w *Work) AddAsk(o Owner, correlation uint64, target abi.Ref, timeout time.Duration, trace []byte) (*asks.Ask, error) {
	if correlation == 0 || w.Asks.Get(correlation) != nil || w.Asks.Len() >= o.Limits().Asks {
		return nil, errs.ErrLimit
	}
	if err := more(o, account.Asks, AskBytes+int64(len(trace))); err != nil {
		return nil, err
	}
	ask := &asks.Ask{Target: target, Due: o.TurnTime().Add(timeout), Trace: trace}
	ask.Add(target)
	w.startAsk(o, correlation, ask)
	return ask, nil
}

// KeepRequest keeps what was asked with an open ask. It fails with errs.ErrLimit without room for it.
func (w *Work) KeepRequest(o Owner, correlation uint64, r *asks.Request) error {
	if err := more(o, account.Asks, int64(r.Bytes())); err != nil {
		return err
	}
	w.Asks.Keep(correlation, r)
	return nil
}

func (w *Work) startAsk(o Owner, correlation uint64, ask *asks.Ask) {
	w.Asks.Add(correlation, ask, o.Alarms().After(o.Clock(), ask.Due.Sub(o.Now()), func() {
		o.Insist(timedOut(correlation, ask, message.Null, ask.Trace))
	}))
}

// LoadAsk enters an ask of a snapshot. If the envelope of its end waits already, it does not end once more.
func (w *Work) LoadAsk(o Owner, correlation uint64, ask *asks.Ask, waits bool) {
	if waits {
		w.Asks.Add(correlation, ask, alarm.Alarm{})
	} else {
		w.startAsk(o, correlation, ask)
	}
	w.noteAsks(o)
}

// timedOut is what an actor is told when the time of an ask is over.
func timedOut(correlation uint64, ask *asks.Ask, payload, headers []byte) *mailbox.Envelope {
	e := mailbox.New()
	e.Kind, e.Correlation, e.Value, e.Due = abi.KindAskTimeout, correlation, ask, ask.Due.UnixNano()
	e.SetPayload(payload)
	e.SetHeaders(headers)
	return e
}

// DropAsk ends an ask: it was answered, its time is over, or no answer can come.
func (w *Work) DropAsk(o Owner, correlation uint64) (observers []abi.Ref) {
	observers = w.Asks.Remove(correlation)
	w.noteAsks(o)
	return observers
}

// TakeAsk takes an ask out, which goes on until its End, or if PutBackAsk undoes that. It is nil if there is none.
func (w *Work) TakeAsk(o Owner, correlation uint64) *asks.Ask {
	ask := w.Asks.Take(correlation)
	if ask != nil {
		w.noteAsks(o)
	}
	return ask
}

// PutBackAsk undoes TakeAsk.
func (w *Work) PutBackAsk(o Owner, correlation uint64, ask *asks.Ask) {
	w.Asks.PutBack(correlation, ask)
	w.noteAsks(o)
}

// Asked is the ask with a correlation, nil if from was not asked; 0 is anybody.
func (w *Work) Asked(correlation uint64, from abi.Ref) *asks.Ask {
	ask := w.Asks.Get(correlation)
	if ask == nil || from != 0 && ask.Target != 0 && !ask.Has(from) {
		return nil
	}
	return ask
}

// SetTimer sets a timer that begins with the turn, within the limits.
func (w *Work) SetTimer(o Owner, key uint64, delay, period time.Duration, payload, trace []byte) error {
	if !w.Timers.Has(key) && w.Timers.Len() >= o.Limits().Timers {
		return errs.ErrLimit
	}
	if err := w.HoldTimer(o, payload); err != nil {
		return err
	}
	w.StartTimer(o, o.TurnTime(), key, delay, period, timers.FixedDelay, payload, trace)
	return nil
}

// HoldTimer takes the bytes of a timer, which NoteTimers gives back unless it is started.
func (w *Work) HoldTimer(o Owner, payload []byte) error {
	return more(o, account.Timers, TimerBytes+2*int64(len(payload)))
}

// NoteTimers has the account hold what the timers take that there are.
func (w *Work) NoteTimers(o Owner) { w.noteTimers(o) }

// StartTimer starts a timer whose delay begins at a time.
func (w *Work) StartTimer(o Owner, at time.Time, key uint64, delay, period time.Duration, pace timers.Pace, payload, trace []byte) {
	w.Timers.StartAt(o, at, key, delay, period, pace, payload, trace)
	w.noteTimers(o)
}

// LoadTimers starts the timers of a snapshot.
func (w *Work) LoadTimers(o Owner, states []timers.State) {
	w.Timers.Load(o, states)
	w.noteTimers(o)
}

// CancelTimer takes a timer back.
func (w *Work) CancelTimer(o Owner, key uint64) {
	w.Timers.Cancel(key)
	w.noteTimers(o)
}

// SetReceiveTimeout starts a receive timeout in place of the present one, or with 0 none.
func (w *Work) SetReceiveTimeout(o Owner, d time.Duration) {
	w.Receive.Stop()
	w.Receive = nil
	if d > 0 {
		w.Receive = timers.StartReceive(o, d)
	}
}

// Cancel cancels the timers, the asks and the receive timeout.
func (w *Work) Cancel(o Owner) (observers []abi.Ref) {
	w.Timers.CancelAll()
	w.noteTimers(o)
	observers = w.Asks.RemoveAll()
	w.noteAsks(o)
	w.SetReceiveTimeout(o, 0)
	return observers
}

// AddWatch notes a watch, of which the watched actor is not told yet; false if there is nothing to be told.
func (w *Work) AddWatch(o Owner, uid abi.Ref, path string) (bool, error) {
	if w.Watch.Watching(uid) {
		return false, nil
	}
	if w.Watch.Len() >= o.Limits().Watches {
		return false, errs.ErrLimit
	}
	if err := more(o, account.Watches, WatchBytes+int64(len(path))); err != nil {
		return false, err
	}
	w.Watch.Watch(uid, path)
	return true, nil
}

// PutBackWatch undoes DropWatch.
func (w *Work) PutBackWatch(o Owner, uid abi.Ref, path string) {
	w.Watch.Watch(uid, path)
	w.noteWatches(o)
}

// DropWatch ends a watch; false if there was none.
func (w *Work) DropWatch(o Owner, uid abi.Ref) bool {
	if !w.Watch.Unwatch(uid) {
		return false
	}
	w.noteWatches(o)
	return true
}

// HoldAside sets how many bytes the actor's own code keeps aside.
func (w *Work) HoldAside(o Owner, bytes int64) error {
	if err := Hold(o.Account(), account.Stash, w.stashBytes()-w.Stash.Held()+bytes); err != nil {
		return err
	}
	w.Stash.Hold(bytes)
	return nil
}

// PutAside stashes a copy of a message whose turn runs, under a name or without one, within the limits.
func (w *Work) PutAside(o Owner, name string, e *mailbox.Envelope) (*mailbox.Envelope, error) {
	if w.Stash.Len() >= o.Limits().Stash {
		return nil, errs.ErrLimit
	}
	if err := more(o, account.Stash, int64(e.Size())+box.EnvelopeBytes); err != nil {
		return nil, err
	}
	k := message.CloneEnvelope(e)
	k.Position, k.Origin = e.Position, e.Origin
	switch e.Kind {
	case abi.KindMessage:
		if message.IsBound(e) {
			k.Value, e.Value = message.BoundMark{}, nil // the turn that takes it out of the stash takes the question
		}
	case abi.KindTerminated:
		k.Value = stash.Stashed{Lasting: true, Path: PathOfEnded(e)}
	case abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout:
		k.Value = stash.Stashed{Incarnation: o.Incarnation()}
	case abi.KindReply, abi.KindReplyError:
		if e.Correlation != 0 {
			k.Value = stash.Stashed{Incarnation: o.Incarnation()}
		}
	}
	w.Stash.PutFor(name, k)
	return k, nil
}

// Keep stashes envelopes that the actor is not asked about.
func (w *Work) Keep(o Owner, name string, mail ...*mailbox.Envelope) {
	for _, e := range mail {
		w.Stash.PutFor(name, e)
	}
	w.noteStash(o)
}

// Minds reports whether Begun has something to do for a message whose turn begins, before anything that the turn itself does.
func (w *Work) Minds(e *mailbox.Envelope) bool { return w.Receive != nil || e.Kind != abi.KindMessage }

// TakeBack stashes under a name what has come back from the actor of that name, before messages that have come for it since.
func (w *Work) TakeBack(o Owner, name string, mail []*mailbox.Envelope) {
	for _, e := range mail {
		e.Attached = message.Below(e.Attached, name) // it may have been sent to a ref
	}
	if len(mail) > 0 {
		w.KeepBefore(o, name, mail)
	}
}

// KeepBefore is Keep before all others of the name.
func (w *Work) KeepBefore(o Owner, name string, mail []*mailbox.Envelope) {
	w.Stash.PutBefore(name, mail)
	w.noteStash(o)
}

// DropAside undoes PutAside.
func (w *Work) DropAside(o Owner, name string, k *mailbox.Envelope) {
	w.Stash.Remove(name, k)
	k.Free()
	w.noteStash(o)
}

// Front is the mailbox that stashed envelopes go back to.
type Front interface {
	PushFront(...*mailbox.Envelope)
}

// Unstash puts everything stashed back to the front, in order.
func (w *Work) Unstash(o Owner, to Front) {
	if w.Stash.Len() > 0 {
		to.PushFront(w.Stash.TakeAll()...)
		w.noteStash(o)
	}
}

// UnstashFor is Unstash for what is under a name.
func (w *Work) UnstashFor(o Owner, to Front, name string) {
	if mail := w.Stash.TakeFor(name); len(mail) > 0 {
		to.PushFront(mail...)
		w.noteStash(o)
	}
}

// Return gives back what an incarnation that has ended held aside, and puts what it has stashed back for the next one.
func (w *Work) Return(o Owner, to Front) {
	if w.Stash.Held() > 0 {
		w.Stash.Hold(0)
		w.noteStash(o)
	}
	w.Unstash(o, to)
}

// Validity is whether an envelope still counts.
type Validity uint8

// The outcomes.
const (
	Counts      Validity = iota
	Over                 // it is no longer valid
	Late                 // an answer that is not accepted: its ask is over
	Forged               // an answer of somebody who was not asked
	CountsLater          // only known after the system messages are handled
)

// StillCounts checks every envelope other than an ordinary message. waiting says that system messages wait.
func (w *Work) StillCounts(o Owner, e *mailbox.Envelope, waiting bool) Validity {
	if v, ok := e.Value.(stash.Stashed); ok {
		if v.Lasting || v.Incarnation == o.Incarnation() {
			return Counts
		}
		return Over
	}
	ok := true
	switch e.Kind {
	case abi.KindTerminated:
		ok = w.Watch.Watching(e.Sender)
	case abi.KindTimer:
		ok = w.Timers.Current(e)
	case abi.KindReceiveTimeout:
		ok = w.Receive.Current(e)
	case abi.KindAskTimeout:
		ask := w.Asks.Get(e.Correlation)
		ok = ask != nil && e.Value == any(ask)
	case abi.KindReply, abi.KindReplyError:
		return w.answerCounts(e, waiting)
	}
	if ok {
		return Counts
	}
	return Over
}

// answerCounts says whether an answer is accepted: it must come from the actor that was asked, or from one that the
// question was forwarded to. A system message tells of the forward; it was sent before the answer but may not have been
// handled yet.
func (w *Work) answerCounts(e *mailbox.Envelope, waiting bool) Validity {
	if e.Correlation == 0 || e.Flags&mark.Again != 0 {
		return Counts
	}
	ask := w.Asks.Get(e.Correlation)
	switch {
	case ask == nil:
		return Late
	case e.Flags&mark.Ours != 0 || ask.Has(e.Sender):
		return Counts
	case waiting:
		return CountsLater
	}
	return Forged
}

// Begun does the book-keeping of an envelope other than an ordinary message, whose turn begins, before anything that the
// turn itself does.
func (w *Work) Begun(o Owner, e *mailbox.Envelope) (observers []abi.Ref) {
	if w.Receive != nil && e.Flags&mark.NoInfluence == 0 {
		w.Receive.Restart(o)
	}
	if _, done := e.Value.(stash.Stashed); done || e.Flags&mark.Again != 0 {
		return nil
	}
	switch e.Kind {
	case abi.KindTerminated:
		w.Watch.Unwatch(e.Sender)
		w.noteWatches(o)
	case abi.KindTimer:
		w.Timers.Begun(o, e)
		w.noteTimers(o)
	case abi.KindAskTimeout, abi.KindReply, abi.KindReplyError:
		return w.DropAsk(o, e.Correlation)
	}
	return nil
}

// Alarm is one that has rung in an earlier process.
type Alarm struct {
	Kind             abi.Kind
	Correlation      uint64
	Due              int64 // when it was due, ns since 1970; 0: that is not known
	Now              int64 // when it rang
	Payload, Headers []byte
}

// is reports whether it is the alarm that is due at a time. Another one may have been set in its place while it rang.
func (x *Alarm) is(due time.Time) bool {
	if x.Due == 0 {
		return x.Now >= due.UnixNano()
	}
	return x.Due == due.UnixNano()
}

// Ring has an alarm ring again, if it is still set.
func (w *Work) Ring(o Owner, x *Alarm) {
	switch x.Kind {
	case abi.KindTimer:
		if due, set := w.Timers.Due(x.Correlation); set && x.is(due) {
			w.Timers.Ring(o, x.Correlation)
		}
	case abi.KindReceiveTimeout:
		if w.Receive != nil && x.is(w.Receive.Due()) {
			w.Receive.Ring(o)
		}
	case abi.KindAskTimeout:
		if ask := w.Asks.Get(x.Correlation); ask != nil && x.is(ask.Due) {
			o.Insist(timedOut(x.Correlation, ask, x.Payload, x.Headers))
		}
	}
}

// News sets what an envelope tells of the end of an actor that is watched; path is what the actor's host says, empty if it says
// none. The mailbox's order puts it behind everything
// that the actor had sent.
func (w *Work) News(e *mailbox.Envelope, uid abi.Ref, path, reason string) {
	e.Kind, e.Sender = abi.KindTerminated, uid
	if path = cmp.Or(path, w.Watch.Path(uid)); path != "" {
		e.Value = EndedPath(path)
	}
	e.Payload = message.AppendText(e.Payload, reason)
}

// EndedPath is the path of the actor whose end an envelope reports.
type EndedPath string

// PathOfEnded is empty if it is not known.
func PathOfEnded(e *mailbox.Envelope) string {
	switch v := e.Value.(type) {
	case EndedPath:
		return string(v)
	case stash.Stashed:
		return v.Path
	}
	return ""
}
