package work

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/asks"
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

type owner struct {
	clock   *clock.Virtual
	alarms  alarm.Board
	account account.Account
	limits  view.Limits
	number  uint64
	mail    []*mailbox.Envelope
	front   []*mailbox.Envelope
}

func newOwner(l view.Limits, held int64) *owner {
	o := &owner{clock: clock.NewVirtual(time.Unix(100, 0)), limits: l}
	o.account.Init(account.NewPool("the system", "system.", nil, 0, 0), held)
	return o
}

func (o *owner) Clock() clock.Clock                { return o.clock }
func (o *owner) Now() time.Time                    { return o.clock.Now() }
func (o *owner) TurnTime() time.Time               { return o.clock.Now() }
func (o *owner) Alarms() *alarm.Board              { return &o.alarms }
func (o *owner) Insist(e *mailbox.Envelope)        { o.mail = append(o.mail, e) }
func (o *owner) Account() *account.Account         { return &o.account }
func (o *owner) Limits() *view.Limits              { return &o.limits }
func (o *owner) Incarnation() uint64               { return o.number }
func (o *owner) PushFront(es ...*mailbox.Envelope) { o.front = append(o.front, es...) }

// takes is what the account must hold.
func takes(w *Work) map[account.Kind]int64 {
	return map[account.Kind]int64{
		account.Timers:  int64(w.Timers.Len())*TimerBytes + 2*int64(w.Timers.Bytes()),
		account.Asks:    int64(w.Asks.Len())*AskBytes + int64(w.Asks.Bytes()),
		account.Watches: int64(w.Watch.Len())*WatchBytes + int64(w.Watch.Bytes()),
		account.Stash:   w.Stash.Held() + int64(w.Stash.Bytes()) + int64(w.Stash.Len())*box.EnvelopeBytes,
	}
}

// Whatever an actor has under way, and however it ends, the account holds what there is; no limit is exceeded, and
// when all is over nothing is held and no alarm is set.
func TestTheAccountHoldsWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := view.Limits{Asks: 3, Timers: 3, Watches: 3, Stash: 3}
		o, w := newOwner(limits, rapid.SampledFrom([]int64{0, 2000}).Draw(t, "held")), &Work{}
		taken, aside := map[uint64]*asks.Ask{}, []*mailbox.Envelope{}
		key := rapid.Uint64Range(1, 5)
		payload := func() []byte { return make([]byte, rapid.IntRange(0, 400).Draw(t, "bytes")) }
		refused := func(err error) {
			if err != nil && !errors.Is(err, errs.ErrLimit) {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				_, err := w.AddAsk(o, key.Draw(t, "key"), 7, time.Second, payload())
				refused(err)
			},
			"drop": func(t *rapid.T) { w.DropAsk(o, key.Draw(t, "key")) },
			"take": func(t *rapid.T) {
				if k := key.Draw(t, "key"); taken[k] == nil {
					if ask := w.TakeAsk(o, k); ask != nil {
						taken[k] = ask
					}
				}
			},
			"put back": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if ask := taken[k]; ask != nil && w.Asks.Get(k) == nil && w.Asks.Len() < limits.Asks {
					w.PutBackAsk(o, k, ask)
					delete(taken, k)
				}
			},
			"timer": func(t *rapid.T) {
				refused(w.SetTimer(o, key.Draw(t, "key"), time.Second, time.Duration(rapid.IntRange(0, 1).Draw(t, "period"))*time.Second, payload(), nil))
			},
			"hold timer": func(t *rapid.T) {
				if w.HoldTimer(o, payload()) == nil {
					w.NoteTimers(o)
				}
			},
			"cancel": func(t *rapid.T) { w.CancelTimer(o, key.Draw(t, "key")) },
			"watch": func(t *rapid.T) {
				_, err := w.AddWatch(o, abi.Ref(key.Draw(t, "key")), string(payload()))
				refused(err)
			},
			"unwatch": func(t *rapid.T) { w.DropWatch(o, abi.Ref(key.Draw(t, "key"))) },
			"stash": func(t *rapid.T) {
				e := &mailbox.Envelope{Kind: abi.KindMessage, Payload: payload()}
				k, err := w.PutAside(o, "", e)
				if refused(err); err == nil {
					aside = append(aside, k)
				}
			},
			"revoke": func(t *rapid.T) {
				if n := len(aside) - 1; n >= 0 && w.Stash.Len() > 0 {
					w.DropAside(o, "", aside[n])
					aside = aside[:n]
				}
			},
			"unstash":    func(*rapid.T) { w.Unstash(o, o); aside = nil },
			"hold aside": func(t *rapid.T) { refused(w.HoldAside(o, rapid.Int64Range(0, 900).Draw(t, "aside"))) },
			"time": func(*rapid.T) {
				o.clock.Advance(time.Second)
				for _, e := range o.mail {
					if w.StillCounts(o, e, false) == Counts {
						w.Begun(o, e)
					}
				}
				o.mail = nil
			},
			"": func(t *rapid.T) {
				for k, n := range takes(w) {
					if got := o.account.Of(k); got != n {
						t.Fatalf("%v: the account holds %d, there are %d", k, got, n)
					}
				}
				if w.Asks.Len() > limits.Asks || w.Timers.Len() > limits.Timers || w.Watch.Len() > limits.Watches || w.Stash.Len() > limits.Stash {
					t.Fatal("more than a limit")
				}
			},
		})
		for _, ask := range taken {
			ask.End()
		}
		w.Cancel(o)
		w.Return(o, o)
		for _, ref := range w.Watch.Watched() {
			w.DropWatch(o, ref)
		}
		if n := o.account.Total(); n != 0 || o.alarms.Pending() != 0 || !w.Idle() {
			t.Fatalf("%d bytes and %d alarms are left", n, o.alarms.Pending())
		}
	})
}

func TestWhatStillCounts(t *testing.T) {
	o, w := newOwner(view.Limits{Asks: 9, Timers: 9, Watches: 9, Stash: 9}, 0), &Work{}
	_, err := w.AddAsk(o, 1, 7, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Asks.Get(1).Delegate(7, 8)
	if _, err := w.AddWatch(o, 5, "wasm://s/user/a"); err != nil {
		t.Fatal(err)
	}
	if err := w.SetTimer(o, 3, time.Millisecond, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	w.SetReceiveTimeout(o, 2*time.Millisecond)
	o.clock.Advance(2 * time.Second)
	kinds := []abi.Kind{}
	for _, e := range o.mail {
		kinds = append(kinds, e.Kind)
	}
	if want := []abi.Kind{abi.KindTimer, abi.KindReceiveTimeout, abi.KindAskTimeout}; !slices.Equal(kinds, want) {
		t.Fatalf("%v has come, not %v", kinds, want)
	}
	timer, receive, timeout := o.mail[0], o.mail[1], o.mail[2]
	news := &mailbox.Envelope{}
	w.News(news, 5, "", "stopped")
	if PathOfEnded(news) != "wasm://s/user/a" || news.Sender != 5 || news.Kind != abi.KindTerminated {
		t.Fatalf("%+v", news)
	}
	answer := func(by abi.Ref, correlation uint64, flags uint16) *mailbox.Envelope {
		return &mailbox.Envelope{Kind: abi.KindReply, Sender: by, Correlation: correlation, Flags: flags}
	}
	var stashed *mailbox.Envelope
	if stashed, err = w.PutAside(o, "", timer); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		e       *mailbox.Envelope
		waiting bool
		want    Validity
	}{
		"a timer":                       {timer, false, Counts},
		"a timer of another":            {&mailbox.Envelope{Kind: abi.KindTimer, Correlation: 3}, false, Over},
		"a receive timeout":             {receive, false, Counts},
		"a timeout":                     {timeout, false, Counts},
		"a timeout of another ask":      {&mailbox.Envelope{Kind: abi.KindAskTimeout, Correlation: 1, Value: &asks.Ask{}}, false, Over},
		"news":                          {news, false, Counts},
		"news of somebody else":         {&mailbox.Envelope{Kind: abi.KindTerminated, Sender: 6}, false, Over},
		"an answer":                     {answer(7, 1, 0), false, Counts},
		"of whom it was forwarded to":   {answer(8, 1, 0), false, Counts},
		"of the host":                   {answer(9, 1, mark.Ours), false, Counts},
		"of somebody else":              {answer(9, 1, 0), false, Forged},
		"the same, while signals wait":  {answer(9, 1, 0), true, CountsLater},
		"of an ask that is over":        {answer(7, 2, 0), true, Late},
		"of none":                       {answer(7, 0, 0), false, Counts},
		"delivered again":               {answer(7, 2, mark.Again), false, Counts},
		"a stashed timer":               {stashed, false, Counts},
		"a kind that always counts":     {&mailbox.Envelope{Kind: abi.KindStart}, false, Counts},
		"a stashed one that has lasted": {&mailbox.Envelope{Kind: abi.KindTerminated, Value: lasting}, false, Counts},
	} {
		if got := w.StillCounts(o, c.e, c.waiting); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if w.Asked(1, 8) == nil || w.Asked(1, 9) != nil || w.Asked(2, 7) != nil || w.Asked(1, 0) == nil {
		t.Error("who was asked")
	}
	o.number++
	if got := w.StillCounts(o, stashed, false); got != Over {
		t.Errorf("a timer that was stashed in the incarnation before: %d", got)
	}
	w.Begun(o, timer)
	if got := w.StillCounts(o, timer, false); got != Over {
		t.Errorf("a timer whose turn has begun: %d", got)
	}
	w.CancelTimer(o, 3)
	w.StartTimer(o, o.Now(), 3, 0, 0, timers.FixedDelay, nil, nil)
	w.Ring(o, &Alarm{Kind: abi.KindTimer, Correlation: 3, Due: o.Now().UnixNano()})
	if len(o.mail) != 4 || w.StillCounts(o, o.mail[3], false) != Counts {
		t.Error("a timer that was rung")
	}
	w.DropAsk(o, 1)
	if got := w.StillCounts(o, timeout, false); got != Over {
		t.Errorf("the timeout of an ask that is over: %d", got)
	}
}

var lasting = stash.Stashed{Lasting: true, Incarnation: 99}
