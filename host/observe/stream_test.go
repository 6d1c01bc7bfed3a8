package observe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// all takes what is there.
func all[T any](s *Stream[T]) (out []T) {
	for {
		select {
		case v, ok := <-s.C():
			if !ok {
				return out
			}
			out = append(out, v)
		default:
			return out
		}
	}
}

// await takes one.
func await[T any](t testing.TB, s *Stream[T]) (v T, ok bool) {
	t.Helper()
	select {
	case v, ok = <-s.C():
		return v, ok
	case <-time.After(10 * time.Second):
		t.Fatal("nothing comes")
		return v, false
	}
}

// brief is a record as the tests compare it.
func brief(r TraceRecord) string {
	s := r.Direction + " " + r.Kind + " " + r.Peer + " " + string(r.Payload)
	if r.Forward {
		s += " forwarded"
	}
	if r.Cut {
		s += " cut"
	}
	if r.Failed != "" {
		s += " failed: " + r.Failed
	}
	return s
}

func trace(t *testing.T, s *stage, path string, o TraceOptions) *Stream[TraceRecord] {
	t.Helper()
	x, err := s.Trace(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

func TestTraceOfAnActorInGo(t *testing.T) {
	s := newStage(t, nil)
	end := s.spawn("end", quietActor())
	s.below(restarting, host.Func(func(ctx *host.Context, m host.Message) error {
		var text string
		_ = m.Decode(&text)
		switch text {
		case "fail":
			_ = ctx.Tell(end, "never")
			return errBoom
		case "forward":
			return ctx.Forward(end)
		}
		return errors.Join(ctx.Tell(end, "on"), ctx.Reply("answer"))
	}))
	x := trace(t, s, subject, TraceOptions{Payload: 20})
	if err := s.TellFrom(end, s.at(subject), "hello"); err != nil {
		t.Fatal(err)
	}
	s.tell(subject, "fail")
	s.tell(subject, "forward")
	s.tell(subject, strings.Repeat("long", 10))
	s.tell("/user/end", "not traced")
	s.run()
	var got []string
	for _, r := range all(x) {
		got = append(got, brief(r))
		if r.Actor != subject || r.Time.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		`in message /user/end "hello"`, `out message /user/end "on"`, `out reply /user/end "answer"`,
		`in message  "fail" failed: guest_error: boom`,
		`in message  "forward"`, `out message /user/end "forward" forwarded`,
		`in message   cut`, `out message /user/end "on"`, `out reply  "answer"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	s.Stop(s.at(subject))
	s.run()
	if _, ok := await(t, x); ok || x.Reason() != "the actor has stopped" {
		t.Errorf("it has ended with %q", x.Reason())
	}
}

func TestTraceOfAGuest(t *testing.T) {
	s := newStage(t, nil)
	peer := s.spawn("peer", quietActor())
	s.below(restarting, host.Guest(echoImage(t, 10), "echo"))
	x := trace(t, s, subject, TraceOptions{Messages: 3})
	for _, text := range []string{"a", "b"} {
		if err := s.TellFrom(peer, s.at(subject), text); err != nil {
			t.Fatal(err)
		}
	}
	s.run()
	var got []string
	for _, r := range all(x) {
		got = append(got, brief(r))
	}
	if want := []string{`in message /user/peer "a"`, `out reply /user/peer "a"`, `in message /user/peer "b"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if x.Reason() != "as many messages as were asked for" {
		t.Errorf("%q", x.Reason())
	}
}

// A trace goes through restarts, says what a slow reader has lost, and costs nobody anything
// when it is closed.
func TestTraceIsBounded(t *testing.T) {
	s := newStage(t, nil)
	s.below(restarting, faulty())
	x := trace(t, s, subject, TraceOptions{Buffer: 2})
	for range 5 {
		s.tell(subject, "fail")
	}
	s.run()
	if got := all(x); len(got) != 2 || x.Dropped() != 3 || got[1].Incarnation != 1 {
		t.Errorf("%d, %d were dropped", len(got), x.Dropped())
	}
	var open []*Stream[TraceRecord]
	for range MaxTraces - 1 {
		open = append(open, trace(t, s, subject, TraceOptions{}))
	}
	if _, err := s.Trace(subject, TraceOptions{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	open[0].Close()
	trace(t, s, subject, TraceOptions{}).Close()
	for _, bad := range []TraceOptions{{Payload: -1}, {Payload: 1 << 20}, {Buffer: 1 << 20}, {Messages: -1}, {For: 2 * time.Hour}} {
		if _, err := s.Trace(subject, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := s.Trace("/user/nobody", TraceOptions{}); !errors.Is(err, ErrNoActor) {
		t.Error(err)
	}
	s.Observer.Close()
	if _, ok := await(t, open[1]); ok || open[1].Reason() == "" {
		t.Errorf("%q", open[1].Reason())
	}
	if _, err := s.Trace(subject, TraceOptions{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// The flow of few messages is exact, whoever sends them.
func TestFlowOfFewMessages(t *testing.T) {
	s := newStage(t, nil)
	s.below(restarting, host.Guest(echoImage(t, 10), "echo"))
	peer := s.spawn("peer", quietActor())
	s.run()
	end, err := s.sampleFlow()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flow(t.Context(), time.Second); !errors.Is(err, ErrBusy) {
		t.Errorf("two at a time: %v", err)
	}
	for range 10 {
		_ = s.TellFrom(peer, s.at(subject), "hello")
	}
	p, err := s.Request(s.at(subject), "ask")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Cancel()
	s.run()
	f := end()
	want := []Edge{
		{From: "/user/peer", To: subject, Kind: "message", Count: 10, Bytes: 60},
		{From: subject, To: "/user/peer", Kind: "reply", Count: 10, Bytes: 60},
		{From: subject, To: "/temp", Kind: "reply", Count: 1, Bytes: 4},
		{From: "/temp", To: subject, Kind: "message", Count: 1, Bytes: 4},
	}
	slices.SortFunc(want[2:], func(a, b Edge) int { return strings.Compare(a.From, b.From) })
	if !slices.Equal(f.Edges, want) || f.OneIn != 1 {
		t.Errorf("%+v, want %+v", f.Edges, want)
	}
	if f, err := s.Flow(t.Context(), time.Millisecond); err != nil || len(f.Edges) != 0 || f.DurationNS < 1e6 {
		t.Errorf("%v, %+v", err, f)
	}
	for _, d := range []time.Duration{0, -1, time.Hour} {
		if _, err := s.Flow(t.Context(), d); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// Of many messages some are looked at, and the sums are about right.
func TestFlowOfManyMessages(t *testing.T) {
	s := newStage(t, nil)
	for _, name := range []string{"a", "b"} {
		s.spawn(name, quietActor().WithLimits(host.Limits{Mailbox: 1000}))
	}
	s.run()
	end, err := s.sampleFlow()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 400
	a, b := s.at("/user/a"), s.at("/user/b")
	for range rounds {
		for range 100 {
			_ = s.Tell(a, 1)
			_ = s.Tell(b, 1)
			_ = s.Tell(b, 1)
			_ = s.Tell(b, 1)
		}
		s.run()
	}
	f := end()
	if f.OneIn < 8 || f.Sampled > 40*flowSamples || len(f.Edges) != 2 {
		t.Fatalf("%+v", f)
	}
	for i, want := range []float64{3 * 100 * rounds, 100 * rounds} {
		if got := float64(f.Edges[i].Count); got < 0.85*want || got > 1.15*want {
			t.Errorf("%v: about %v messages, were %v", f.Edges[i], got, want)
		}
	}
}

func TestEventsHaveAHistory(t *testing.T) {
	s := newStage(t, nil)
	s.run()
	s.below(restarting, faulty())
	s.tell(subject, "fail")
	s.run()
	s.eventually(func() bool { return s.events.last() >= 6 }) // those of /user and /system, too
	x, err := s.Events(EventQuery{After: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := all(x)
	var kinds []string
	for i, e := range got {
		kinds = append(kinds, e.Kind.String()+" "+e.Ref.Name())
		if i > 0 && e.Number != got[i-1].Number+1 {
			t.Error("a number is left out")
		}
	}
	if want := []string{"started top", "started subject", "failed subject", "restarted subject"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	if _, ok := await(t, x); ok {
		t.Error("it goes on without Follow")
	}
	b, err := json.Marshal(got[2])
	if err != nil || !strings.Contains(string(b), `"event":"failed"`) {
		t.Errorf("%s, %v", b, err)
	}
	x, _ = s.Events(EventQuery{After: got[1].Number, Kinds: []string{"failed", "restarted"}, Paths: []string{"/user/*/subject"}, Types: []string{"nat*"}})
	if n := len(all(x)); n != 2 {
		t.Errorf("%d", n)
	}
	for _, bad := range []EventQuery{{Kinds: []string{"birthday"}}, {Level: "loud"}, {Paths: []string{"x"}}, {Buffer: -1}, {Buffer: 1 << 20}} {
		if _, err := s.Events(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// eventually waits for what another goroutine does.
func (s *stage) eventually(so func() bool) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("it does not come")
		}
	}
}

func (e *events) last() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.number
}

// Following an actor ends with it, and says why.
func TestFollowingEndsWithTheActor(t *testing.T) {
	s := newStage(t, func(c host.Config) host.Config { return c.WithGuardian(supervision.Stopping()) })
	s.spawn("one", faulty())
	s.run()
	x, err := s.Events(EventQuery{Paths: []string{"/user/one"}, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s.tell("/user/one", "fail")
	s.run()
	var last Event
	for {
		e, ok := await(t, x)
		if !ok {
			break
		}
		last = e
	}
	if last.Kind != host.EventStopped || !strings.Contains(x.Reason(), "boom") {
		t.Errorf("%v, %q", last.Kind, x.Reason())
	}
}

// Who reads too slowly loses events and is told how many; nobody else does.
func TestSlowFollowersLoseEvents(t *testing.T) {
	s := newStage(t, nil)
	s.run()
	s.eventually(func() bool { return s.events.last() == 2 })
	slow, _ := s.Events(EventQuery{Follow: true, Buffer: 1, After: 2})
	fast, _ := s.Events(EventQuery{Follow: true, Buffer: 1000, After: 2})
	defer slow.Close()
	for range 50 {
		s.spawn("", quietActor())
	}
	s.run()
	s.eventually(func() bool { return s.events.last() == 52 && slow.Dropped() == 49 })
	if n := len(all(fast)); n != 50 || fast.Dropped() != 0 {
		t.Errorf("%d, %d", n, fast.Dropped())
	}
	fast.Close()
	fast.Close()
	_ = s.System.Close(context.Background())
	for {
		if _, ok := await(t, slow); !ok {
			break
		}
	}
	if !strings.Contains(slow.Reason(), "ended") {
		t.Errorf("%q", slow.Reason())
	}
}

// What events take is bounded whatever guests write.
func TestEventsAreBoundedInBytes(t *testing.T) {
	e := &events{most: 1000}
	for range 2000 {
		e.number++
		e.keep(Event{host.Event{Kind: host.EventLog, Text: strings.Repeat("x", 8<<10)}, e.number})
	}
	if n := len(e.kept) - e.head; e.bytes > MaxEventBytes || n > 1000 || n < 400 {
		t.Errorf("%d events of %d bytes", n, e.bytes)
	}
	if cap(e.kept) > 4096 {
		t.Errorf("room for %d", cap(e.kept))
	}
	if e.kept[len(e.kept)-1].Number != 2000 || e.kept[e.head].Number != 2000-uint64(len(e.kept)-e.head)+1 {
		t.Error("the wrong ones are kept")
	}
	e = &events{most: 10}
	for range 100 {
		e.number++
		e.keep(Event{host.Event{Kind: host.EventFailed, Failure: &abi.Failure{Stack: []string{"f"}}}, e.number})
	}
	if n := len(e.kept) - e.head; n != 10 {
		t.Errorf("%d", n)
	}
}
