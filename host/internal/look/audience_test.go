package look

import (
	"reflect"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// shop is an actor in its n-th incarnation.
type shop struct{ n uint64 }

var at = time.Unix(7, 0)

func (s shop) Subject() span.Begun {
	return span.Begun{At: at, Ref: ref.Of(5, "wasm://app/user/shop"), Type: "shop", Incarnation: s.n}
}

// alone is a directory in which only the shop lives.
type alone struct{}

func (alone) RefOf(uid abi.Ref) ref.Ref {
	if uid == 5 {
		return shop{}.Subject().Ref
	}
	return ref.Of(uid, "wasm://app/temp")
}

func (alone) Lives(uid abi.Ref) bool { return uid == 5 }

func newAudience(traced bool) (*Audience, *Word) {
	a, w := &Audience{}, &Word{}
	a.Open(alone{}, func() time.Time { return at }, traced, w)
	a.Letters.Init(10, 1<<10)
	return a, w
}

func sent(text, headers string) *mailbox.Envelope {
	e := mailbox.New()
	e.Kind, e.Sender, e.SenderPath = abi.KindMessage, 9, "wasm://app/user/buyer"
	e.SetPayload([]byte(text))
	if headers != "" {
		e.SetHeaders(abi.AppendHeader(nil, span.HeaderParent, headers))
	}
	return e
}

// What the engine tells becomes events, and nothing where nobody hears of them.
func TestAudienceTellsOfWhatHappens(t *testing.T) {
	failure := &abi.Failure{Kind: abi.FailureTrap, Reason: "the password is swordfish"}
	shown := &abi.Failure{Kind: abi.FailureTrap, Reason: "the password is *********", Stack: []string{}}
	mail := &event.CrashedMail{Kind: abi.KindMessage, Trace: &span.Context{State: "s"}}
	about := func(k event.Kind, n uint64) event.Event {
		return event.Event{Kind: k, Time: at, Ref: shop{}.Subject().Ref, Type: "shop", Incarnation: n}
	}
	with := func(e event.Event, f func(*event.Event)) event.Event { f(&e); return e }
	for _, c := range []struct {
		name string
		tell func(Observer)
		want event.Event
	}{
		{"started", func(o Observer) { o.Started(shop{}, nil) }, about(event.Started, 0)},
		{"restarted", func(o Observer) { o.Started(shop{2}, failure) }, with(about(event.Restarted, 2), func(e *event.Event) { e.Failure = shown })},
		{"resumed", func(o Observer) { o.Resumed(shop{1}) }, about(event.Resumed, 1)},
		{"paused", func(o Observer) { o.Paused(shop{1}, true) }, about(event.Paused, 1)},
		{"unpaused", func(o Observer) { o.Paused(shop{1}, false) }, about(event.Unpaused, 1)},
		{"stopped", func(o Observer) { o.Stopped(shop{1}, "swordfish", failure) }, with(about(event.Stopped, 1), func(e *event.Event) { e.Note, e.Failure = "*********", shown })},
		{"failed", func(o Observer) {
			o.Decided(shop{1}, &Decision{ID: "id", At: at.Add(1), Failure: failure, Directive: supervision.Restart, Delay: 3, Failures: 4, Note: "n", Mail: mail, Silent: true})
		}, with(about(event.Failed, 1), func(e *event.Event) {
			e.ID, e.Time, e.Failure, e.Directive, e.Delay, e.Failures, e.Note, e.Mail, e.Silent, e.Trace = "id", at.Add(1), shown, supervision.Restart, 3, 4, "n", mail, true, mail.Trace
		})},
		{"escalated", func(o Observer) { o.Decided(shop{1}, &Decision{At: at, Escalated: true}) }, about(event.Escalated, 1)},
		{"terminated", func(o Observer) { o.Terminated(at) }, event.Event{Kind: event.Terminated, Time: at}},
		{"unhandled", func(o Observer) { o.Unhandled(shop{1}, sent("hi", "")) }, with(about(event.Unhandled, 1), func(e *event.Event) {
			e.Dead = &event.DeadLetter{Kind: abi.KindMessage, Sender: 9, Recipient: 5, Path: "wasm://app/user/shop", From: "/user/buyer", Payload: []byte("hi"), Size: 2}
		})},
		{"refused", func(o Observer) { o.Refused(shop{1}, &event.Refusal{What: "spawn", Reason: "swordfish"}) }, with(about(event.Refused, 1), func(e *event.Event) {
			e.Refused = &event.Refusal{What: "spawn", Reason: "*********"}
		})},
		{"said", func(o Observer) { o.Said(shop{1}, abi.LogWarn, "swordfish", mail.Trace) }, with(about(event.Log, 1), func(e *event.Event) {
			e.Level, e.Text, e.Trace = abi.LogWarn, "*********", mail.Trace
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _ := newAudience(true)
			c.tell(a) // nobody hears of it
			if !a.Quiet() {
				t.Error("nobody listens, and it is not quiet")
			}
			if err := a.Secrets.Add([]byte("swordfish")); err != nil {
				t.Fatal(err)
			}
			sub := a.Add(2, nil)
			c.tell(a)
			if a.Quiet() || len(sub.C()) != 1 {
				t.Fatalf("there are %d events", len(sub.C()))
			}
			if got := <-sub.C(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v\ninstead of\n%+v", got, c.want)
			}
		})
	}
}

func TestAudienceKeepsLettersThoughNobodyHears(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, traced := range []bool{false, true} {
		a, _ := newAudience(traced)
		a.Undelivered(event.DeadStopped, "limits.x", 5, "wasm://app/user/shop", sent("hi", trace))
		hidden := sent("again", "")
		hidden.Flags |= mark.Suppressed
		a.Undelivered(event.DeadStopped, "", 5, "", hidden)
		letters, n := a.Letters.All()
		if n != 1 || letters[0].Key != "limits.x" || letters[0].From != "/user/buyer" || !letters[0].Time.Equal(at) {
			t.Fatalf("%d letters are kept: %+v", n, letters)
		}
		sub := a.Add(3, nil)
		a.Undelivered(event.DeadNobody, "", 8, "wasm://app/user/gone", sent("hi", trace))
		a.Undelivered(event.DeadStopped, "", 5, "", hidden)
		e, suppressed := <-sub.C(), <-sub.C()
		if e.Kind != event.Undelivered || e.Ref != (alone{}).RefOf(8) || e.Dead.Path != "wasm://app/user/gone" || e.Dead.ID != 2 || (e.Trace != nil) != traced {
			t.Errorf("traced %v: %+v", traced, e)
		}
		if suppressed.Kind != event.Suppressed || a.Letters.N() != 2 {
			t.Errorf("%+v; %d letters", suppressed, a.Letters.N())
		}
	}
}

// The word says whether anybody looks: for as long as somebody does, and no longer.
func TestWordOfAnAudience(t *testing.T) {
	a, w := newAudience(false)
	w.Store(ForRecorder)
	var seen []string
	taps := &Taps{}
	tap := func(name string) func() {
		return a.Tap(taps, NewTap(10, func(m *Tapped) {
			if m.Failure != nil {
				name += " failed"
			}
			seen = append(seen, name)
		}, nil))
	}
	first, second := tap("first"), tap("second")
	if w.Load() != ForRecorder|ForTaps {
		t.Errorf("%b", w.Load())
	}
	turns := &Turns{Actor: shop{}.Subject().Ref, Mail: []*mailbox.Envelope{sent("hi", "")}}
	skip := uint64(0)
	a.Turns(taps, &skip, turns)
	first()
	first()
	a.TurnFailed(taps, shop{}, turns.Mail[0], &abi.Failure{Kind: abi.FailureTrap})
	if w.Load()&ForTaps == 0 {
		t.Error("one tap is left, and the word says that there is none")
	}
	second()
	a.Turns(taps, &skip, turns)
	a.TurnFailed(taps, shop{}, turns.Mail[0], &abi.Failure{})
	if want := []string{"first", "second", "second failed"}; !reflect.DeepEqual(seen, want) || w.Load() != ForRecorder {
		t.Errorf("%v, %b", seen, w.Load())
	}

	flowed := 0
	stop, ok := a.Sample(NewSampler(100, func(*Flowed) { flowed++ }))
	if _, again := a.Sample(NewSampler(100, func(*Flowed) {})); !ok || again || w.Load() != ForRecorder|ForFlow {
		t.Errorf("%v, %v, %b", ok, again, w.Load())
	}
	a.Turns(taps, &skip, turns)
	stop()
	a.Turns(taps, &skip, turns)
	if flowed != 1 || w.Load() != ForRecorder {
		t.Errorf("%d were sampled, %b", flowed, w.Load())
	}
}
