package flow_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/host/testkit"
	"github.com/wasmactors/wasmactors/supervision"
)

// list is what a stream has given, for the test to read while the system rests.
type list[T any] struct {
	got  []T
	over bool
	err  error
}

func (l *list[T]) sink() flow.Sink[T] {
	return flow.Drain(func(*flow.Graph) (func(T) error, func(error)) {
		return func(v T) error { l.got = append(l.got, v); return nil }, func(err error) { l.over, l.err = true, err }
	})
}

func (l *list[T]) is(t *testing.T, want ...T) {
	t.Helper()
	if !reflect.DeepEqual(l.got, want) || !l.over || l.err != nil {
		t.Errorf("got %v, over: %v, %v; want %v", l.got, l.over, l.err, want)
	}
}

func double(n int) int { return 2 * n }

var ints = hostflow.CBOR[int]()

func TestStreamOfOneActor(t *testing.T) {
	k := testkit.New(t)
	l := &list[int]{}
	p := k.Probe("watcher")
	ref := k.Spawn("s", hostflow.Props(flow.To(flow.Map(flow.Range(1, 5000), double), l.sink())))
	p.Watch(ref)
	p.ExpectTerminated(ref)
	if len(l.got) != 5000 || l.got[4999] != 10000 {
		t.Errorf("%d elements", len(l.got))
	}
}

// N02, N18: three actors, each with a part of the stream.

func TestN18_Pipeline(t *testing.T) {
	k := testkit.New(t)
	end := k.Probe("end")
	a := k.Spawn("a", hostflow.Props(flow.Serve("numbers", flow.Range(1, 300), ints)))
	c := k.Spawn("c", hostflow.Props(flow.To(flow.FlatConcat(flow.Take(flow.Offers(1), 1), func(o flow.Offer) flow.Source[int] {
		return flow.TakeFrom(o.From, o.Name, ints, flow.Window{})
	}), hostflow.Tell[int](end.Ref(), "over"))))
	end.Watch(c)
	b := k.Spawn("b", hostflow.Props(flow.To(flow.Map(flow.TakeFrom(a.UID(), "numbers", ints, flow.Window{}), double), flow.GiveTo(c.UID(), "doubled", ints))))
	end.Watch(b)
	for n := 1; n <= 300; n++ {
		end.Expect(2 * n)
	}
	end.ReceiveN(3) // the end, and those of two actors
	if dead, n := k.System().DeadLetters(); n != 0 {
		t.Errorf("dead letters: %v", dead)
	}
}

func (l *list[T]) fails(t *testing.T, with string) {
	t.Helper()
	if !l.over || l.err == nil || !strings.Contains(l.err.Error(), with) {
		t.Errorf("over: %v, %v; want %q", l.over, l.err, with)
	}
}

// N18: an actor that answers when it has room sets the pace: any actor, a router whose routees share the elements, an inbox.
func TestN18_AskSetsThePace(t *testing.T) {
	k := testkit.New(t)
	slow := k.Probe("slow")
	l := &list[int]{}
	k.Spawn("s", hostflow.Props(flow.To(hostflow.Ask[int, int](flow.Range(1, 5), 2, slow.Ref(), time.Minute), l.sink())).WithLifetime(supervision.Temporary))
	slow.Expect(1)
	slow.Reply(10)
	slow.Expect(2)
	slow.Expect(3)
	slow.ExpectNone(time.Second) // two are under way
	slow.Reply(30)
	slow.ExpectNone(time.Second) // the second one comes first
	if l.over || len(l.got) != 1 {
		t.Errorf("%v, over: %v", l.got, l.over)
	}
	k.Advance(time.Minute)
	l.fails(t, "timeout")
	l = &list[int]{}
	k.Spawn("t", hostflow.Props(flow.To(hostflow.Ask[int, int](flow.Range(1, 5), 2, slow.Ref(), time.Minute), l.sink())).WithLifetime(supervision.Temporary))
	slow.Expect(1)
	slow.ReplyError("no room")
	k.Run()
	l.fails(t, "no room")
}

// N18.
func TestN18_RouterSpreadsElements(t *testing.T) {
	k := testkit.New(t)
	seen := map[string]int{}
	worker := host.Func(func(ctx *host.Context, m host.Message) error {
		var n int
		if err := m.Decode(&n); err != nil {
			return err
		}
		seen[ctx.Self().Path()]++
		return ctx.Reply(2 * n)
	})
	pool := k.Spawn("pool", router.Pool(3, worker, router.RoundRobin).Props())
	l := &list[int]{}
	k.Spawn("s", hostflow.Props(flow.To(hostflow.Ask[int, int](flow.Range(1, 30), 6, pool, time.Minute), l.sink())))
	if len(l.got) != 30 || l.got[29] != 60 || len(seen) != 3 {
		t.Errorf("%v by %v", l.got, seen)
	}
}

// N18: anyone can send to an inbox; one that asks is answered when its element was taken.
func TestN18_Inbox(t *testing.T) {
	k := testkit.New(t)
	l, p := &list[int]{}, k.Probe("sender")
	gate := k.Probe("gate")
	s := k.Spawn("s", hostflow.Props(flow.To(hostflow.Ask[int, int](flow.Inbox(2, flow.DropNewest, ints), 1, gate.Ref(), time.Minute), l.sink())))
	p.Watch(s)
	p.Tell(s, 1)
	gate.Expect(1)
	p.Tell(s, 2)
	p.Ask(s, 3)
	p.Ask(s, 4) // there is no room for it
	if m := p.Expect(testkit.Any()); m.Err() == nil {
		t.Errorf("%v", m)
	}
	p.ExpectNone(time.Second)
	gate.Reply(1)
	gate.Expect(2)
	gate.Reply(2)
	gate.Expect(3)
	if m := p.Expect(testkit.Any()); m.Err() != nil { // it was taken
		t.Errorf("%v", m)
	}
	p.Tell(s, host.Raw(flow.EndOf("")))
	gate.Reply(3)
	p.ExpectTerminated(s)
	l.is(t, 1, 2, 3)
}

// N05, and the end of an actor in the middle: its failure ends the stream on both sides.
func TestN05_CrashInTheMiddle(t *testing.T) {
	k := testkit.New(t)
	var upstream error
	a := k.Spawn("a", hostflow.Props(flow.Serve("x", flow.Watch(flow.Range(1, 1<<40), nil, func(err error) { upstream = err }), ints)))
	boom := flow.Try(flow.TakeFrom(a.UID(), "x", ints, flow.Window{}), func(n int) (int, error) {
		if n == 50 {
			panic("boom")
		}
		return n, nil
	})
	b := k.Spawn("b", hostflow.Props(flow.Serve("y", boom, ints)).WithLifetime(supervision.Temporary))
	l := &list[int]{}
	k.Spawn("c", hostflow.Props(flow.To(flow.TakeFrom(b.UID(), "y", ints, flow.Window{}), l.sink())).WithLifetime(supervision.Temporary))
	l.fails(t, "boom")
	if upstream != flow.ErrCancelled {
		t.Errorf("the source has ended with %v", upstream)
	}
	for i, n := range l.got {
		if n != i+1 {
			t.Fatalf("%v", l.got)
		}
	}
}

// An actor in the middle that is restarted: its taker takes again, and the source gives again.
func TestRestartInTheMiddle(t *testing.T) {
	k := testkit.New(t)
	a := k.Spawn("a", hostflow.Props(flow.Serve("x", flow.Range(1, 60), ints)))
	crashes := 1
	boom := flow.Map(flow.TakeFrom(a.UID(), "x", ints, flow.Window{}), func(n int) int {
		if n == 50 && crashes > 0 {
			crashes--
			panic("boom")
		}
		return n
	})
	b := k.Spawn("b", hostflow.Props(flow.Serve("y", boom, ints)))
	l := &list[int]{}
	k.Spawn("c", hostflow.Props(flow.To(flow.Again(flow.TakeFrom(b.UID(), "y", ints, flow.Window{}), 1), l.sink())))
	k.Advance(time.Minute)
	if !l.over || l.err != nil || len(l.got) < 100 || l.got[len(l.got)-1] != 60 || l.got[len(l.got)-60] != 1 {
		t.Errorf("%v, over: %v, %v", l.got, l.over, l.err)
	}
}

// A stream that fails is a failure of its actor, with the reason, behind what it has sent.
func TestFailureOfAStream(t *testing.T) {
	k := testkit.New(t)
	end := k.Probe("end")
	s := k.Spawn("s", hostflow.Props(flow.To(flow.Concat(flow.From(1), flow.Failed[int](errors.New("broken"))), hostflow.Tell[int](end.Ref(), nil))).
		WithLifetime(supervision.Temporary))
	end.Watch(s)
	end.Expect(1)
	if reason, failed := end.Expect(testkit.Any()).Failure(); !failed || reason != "broken" {
		t.Errorf("%q", reason)
	}
	if reason := end.ExpectTerminated(s); !strings.Contains(reason, "broken") {
		t.Errorf("%q", reason)
	}
}

// Only the parent, and Go code that has the system, turn a stream's switch.
func TestN16_SwitchOfAnActor(t *testing.T) {
	k := testkit.New(t)
	for _, abort := range []bool{false, true} {
		l, thief := &list[int]{}, k.Probe("")
		s := k.Spawn("", hostflow.Props(flow.To(flow.Killable(flow.Tick(time.Second, time.Second, 1), nil), l.sink())).WithLifetime(supervision.Temporary))
		thief.Watch(s)
		thief.Tell(s, host.Raw(flow.StopOf("no")))
		k.Advance(3 * time.Second)
		if l.over || len(l.got) != 3 {
			t.Fatalf("%v, over: %v", l.got, l.over)
		}
		if abort {
			if err := hostflow.Abort(k.System(), s, "enough"); err != nil {
				t.Fatal(err)
			}
		} else if err := hostflow.Shutdown(k.System(), s); err != nil {
			t.Fatal(err)
		}
		thief.ExpectTerminated(s)
		if abort {
			l.fails(t, "enough")
		} else {
			l.is(t, 1, 1, 1)
		}
		if n := len(thief.Waiting()); n != 0 {
			t.Errorf("%d messages", n)
		}
	}
}

// N02: a stream without an end leaves turns to others, and stops when it is told to.
func TestN02_EndlessStreams(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close(context.Background()) }()
	endless, err := sys.Spawn("endless", hostflow.Props(flow.To(flow.Killable(flow.Repeat(1), nil), flow.Ignore[int]())))
	if err != nil {
		t.Fatal(err)
	}
	ended, err := sys.Ended(endless)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	if err := hostflow.Run(context.Background(), sys, "", flow.To(flow.Range(1, 20_000), flow.ForEach(func(n int) error { sum += n; return nil }))); err != nil || sum != 20_000*20_001/2 {
		t.Error(sum, err)
	}
	if err := hostflow.Shutdown(sys, endless); err != nil {
		t.Fatal(err)
	}
	<-ended
	bad := errors.New("bad")
	if err := hostflow.Run(context.Background(), sys, "", flow.To(flow.Failed[int](bad), flow.Ignore[int]())); err != bad {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(bad)
	if err := hostflow.Run(ctx, sys, "", flow.To(flow.Never[int](), flow.Ignore[int]())); err != bad {
		t.Error(err)
	}
}

// N04: Async puts a boundary between two actors; the child goes with the stream, and its crash is a failure.
func TestN04_Async(t *testing.T) {
	k := testkit.New(t)
	l := &list[int]{}
	src := flow.Map(hostflow.Async(flow.Range(1, 100), ints, flow.Window{}), double)
	s := k.Spawn("s", hostflow.Props(flow.To(src, l.sink())))
	if len(l.got) != 100 || !l.over || l.err != nil {
		t.Errorf("%d elements, over: %v, %v", len(l.got), l.over, l.err)
	}
	if _, err := k.System().Lookup(s.Path()); err == nil {
		t.Error("it has not stopped")
	}
	l = &list[int]{}
	src = hostflow.Async(flow.Map(flow.Range(1, 100), func(n int) int { return 1 / (n - 50) }), ints, flow.Window{})
	k.Spawn("crashes", hostflow.Props(flow.To(src, l.sink())).WithLifetime(supervision.Temporary))
	l.fails(t, "divide by zero")
	l = &list[int]{}
	first := flow.Take(hostflow.Async(flow.Repeat(1), ints, flow.Window{}), 5) // an endless source, of which little is wanted
	k.Spawn("first", hostflow.Props(flow.To(flow.Concat(first, flow.Never[int]()), l.sink())))
	if at := k.System().Select("/user/first/*"); len(l.got) != 5 || len(at) != 0 {
		t.Errorf("%v, %v", l.got, at)
	}
}

// N11: work outside of turns keeps the order; its panics are failures.
func TestN11_Work(t *testing.T) {
	k := testkit.New(t, testkit.RealTime())
	var mu sync.Mutex
	running, most := 0, 0
	gate := make(chan struct{})
	work := func(_ context.Context, n int) (string, error) {
		mu.Lock()
		running++
		most = max(most, running)
		if running == 3 {
			close(gate)
		}
		mu.Unlock()
		<-gate
		if n == 9 {
			panic("nine")
		}
		mu.Lock()
		defer mu.Unlock()
		running -= 10
		return fmt.Sprint(n), nil
	}
	got := make(chan []string, 1)
	err := hostflow.Run(context.Background(), k.System(), "", flow.To(hostflow.Work(flow.Range(1, 8), 3, time.Minute, work), flow.Seq(10, func(all []string, err error) { got <- all })))
	if all := <-got; err != nil || strings.Join(all, "") != "12345678" || most != 3 {
		t.Error(all, err, most)
	}
	err = hostflow.Run(context.Background(), k.System(), "", flow.To(hostflow.Work(flow.From(9), 3, time.Minute, work), flow.Ignore[string]()))
	if err == nil || !strings.Contains(err.Error(), "nine") {
		t.Error(err)
	}
}

func TestNotRunByThisPackage(t *testing.T) {
	for _, s := range []flow.Stream{
		flow.To(flow.From(1), hostflow.Do(func(*host.Context, int) error { return nil })),
		flow.To(flow.From(1), hostflow.Tell[int](host.Ref{}, nil)),
		flow.To(hostflow.Ask[int, int](flow.From(1), 1, host.Ref{}, time.Second), flow.Ignore[int]()),
		flow.To(hostflow.Work(flow.From(1), 1, time.Second, func(context.Context, int) (int, error) { return 0, nil }), flow.Ignore[int]()),
		flow.To(hostflow.Async(flow.From(1), ints, flow.Window{}), flow.Ignore[int]()),
	} {
		g := s.Start(nil, time.Time{})
		g.Run(time.Time{}, 100)
		if over, err := g.Over(); !over || err == nil {
			t.Error(over, err)
		}
	}
}
