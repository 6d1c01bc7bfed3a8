package saved

import (
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/lookouts"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// SetWork notes what an actor has under way.
func (s *State) SetWork(w *work.Work) {
	if w.Receive != nil {
		s.Receive = int64(w.Receive.After())
	}
	for _, t := range w.Timers.Save() {
		s.Timers = append(s.Timers, Timer{Key: t.Key, Due: t.Due.UnixNano(), Period: int64(t.Period), Payload: t.Payload, Headers: t.Headers, Pace: uint8(t.Pace)})
	}
	for _, c := range w.Asks.Correlations() {
		ask := w.Asks.Get(c)
		s.Asks = append(s.Asks, Ask{Correlation: c, Target: ask.Target, Answerers: ask.Answerers.All(), Due: ask.Due.UnixNano(), Trace: ask.Trace, Observers: ask.Observers()})
	}
	s.Asked = w.Asks.Asked()
	for _, r := range w.Asks.Open() {
		s.Requests = append(s.Requests, Request{Correlation: r.Correlation(), To: r.To, Number: r.Number, Key: r.Key[:], Headers: r.Headers, Payload: r.Payload})
	}
	for _, ref := range w.Watch.Watched() {
		s.Watches = append(s.Watches, Watch{Ref: ref, Path: w.Watch.Path(ref)})
	}
	w.Stash.Each(func(e *mailbox.Envelope) { s.Stash = append(s.Stash, MailOf(e)) })
}

// Exceeds is why an actor with these limits cannot have what s has under way.
func (s *State) Exceeds(l *view.Limits) error {
	if len(s.Timers) > l.Timers || len(s.Asks) > l.Asks || len(s.Watches) > l.Watches || len(s.Stash) > l.Stash || len(s.Lookouts) > lookouts.Most {
		return fmt.Errorf("%w: more timers, asks, watches or stashed messages than its limits allow now", ErrState)
	}
	return nil
}

// Work has the actor go on with timers, asks and the stash, and calls watch for each that it watches.
func (s *State) Work(w *work.Work, o work.Owner, watch func(*Watch) error) error {
	var set []timers.State
	for _, t := range s.Timers {
		set = append(set, timers.State{Key: t.Key, Due: time.Unix(0, t.Due), Period: time.Duration(t.Period), Pace: timers.Pace(t.Pace), Waits: t.Waits, Payload: t.Payload, Headers: t.Headers})
	}
	w.LoadTimers(o, set)
	for i := range s.Asks {
		k := &s.Asks[i]
		ask := &asks.Ask{Target: k.Target, Due: time.Unix(0, k.Due), Trace: k.Trace}
		for _, ref := range k.Answerers {
			ask.Add(ref)
		}
		w.LoadAsk(o, k.Correlation, ask, k.Waits)
		for _, ref := range k.Observers {
			w.Asks.Observe(k.Correlation, ref)
		}
	}
	w.Asks.SetAsked(s.Asked)
	for i := range s.Requests {
		r := &s.Requests[i]
		if err := w.KeepRequest(o, r.Correlation, &asks.Request{To: r.To, Number: r.Number, Key: [mailbox.EffectKey]byte(r.Key), Headers: r.Headers, Payload: r.Payload}); err != nil {
			return err
		}
	}
	for i := range s.Watches {
		if err := watch(&s.Watches[i]); err != nil {
			return err
		}
	}
	for i := range s.Stash {
		w.Keep(o, "", s.Stash[i].Envelope())
	}
	return nil
}

// Waiting are the alarms of an actor whose envelopes wait already.
type Waiting struct {
	work         *work.Work
	owner        work.Owner
	timers, asks map[uint64]bool
	receive      bool
}

// NewWaiting are none yet.
func NewWaiting(w *work.Work, o work.Owner) *Waiting {
	return &Waiting{work: w, owner: o, timers: map[uint64]bool{}, asks: map[uint64]bool{}}
}

// Mail is MailOf with the mark of an alarm that is there; news: system messages wait.
func (w *Waiting) Mail(e *mailbox.Envelope, news bool) Mail {
	m := MailOf(e)
	if m.Mark != Unmarked || e.Value == nil {
		return m
	}
	switch {
	case e.Kind == abi.KindTimer && w.work.Timers.Current(e):
		m.Mark, w.timers[e.Correlation] = Current, true
	case e.Kind == abi.KindReceiveTimeout && w.work.Receive.Current(e):
		m.Mark, w.receive = Current, true
	case e.Kind == abi.KindAskTimeout && w.work.StillCounts(w.owner, e, news) == work.Counts:
		m.Mark, w.asks[e.Correlation] = Current, true
	}
	return m
}

// Note notes them in the state of the actor, which is whole.
func (w *Waiting) Note(s *State) {
	if w.work.Receive != nil {
		s.Whole.Due, s.Whole.Waits = w.work.Receive.Due().UnixNano(), w.receive
	}
	for i := range s.Timers {
		s.Timers[i].Waits = w.timers[s.Timers[i].Key]
	}
	for i := range s.Asks {
		s.Asks[i].Waits = w.asks[s.Asks[i].Correlation]
	}
}

// Marked is Envelope with what an alarm of the actor knows it by.
func (m *Mail) Marked(w *work.Work) *mailbox.Envelope {
	e := m.Envelope()
	if m.Mark != Current {
		return e
	}
	switch m.Kind {
	case abi.KindTimer:
		e.Value = w.Timers.Mark(m.Correlation)
	case abi.KindReceiveTimeout:
		if w.Receive != nil {
			e.Value = w.Receive.Mark()
		}
	case abi.KindAskTimeout:
		if ask := w.Asks.Get(m.Correlation); ask != nil {
			e.Value = ask
		}
	}
	return e
}
