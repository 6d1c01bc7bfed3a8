package host

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// lab is a manual system on a virtual clock, with its events: what the conformance
// tests work with.
type lab struct {
	*System
	t      testing.TB
	clock  *VirtualClock
	events *Subscription
}

func newLab(t testing.TB, guardian supervision.Strategy) *lab {
	t.Helper()
	s, clock := manual(t, func(c Config) Config { return c.WithGuardian(guardian) })
	return &lab{s, t, clock, s.Subscribe(eventRoom, nil)}
}

// eventRoom is for how many events a test's subscription has room. Making the room, at 208 bytes for each, takes longer than most tests.
const eventRoom = 2000

// complete fails a test whose subscription has lost events.
func complete(t testing.TB, events *Subscription) {
	t.Helper()
	if n := events.Dropped(); n > 0 {
		t.Errorf("%d events have found no room", n)
	}
}

// spawn starts a top-level actor and lets it begin.
func (l *lab) spawn(name string, p Props) Ref {
	l.t.Helper()
	ref := must(l.Spawn(name, p))(l.t)
	l.run()
	return ref
}

func (l *lab) run() {
	l.t.Helper()
	if l.RunUntilIdle(1_000_000) == 1_000_000 {
		l.t.Fatal("it never comes to rest")
	}
	nod(l.clock, func() { l.RunUntilIdle(1_000_000) })
}

// tell sends messages and lets them take effect.
func (l *lab) tell(to Ref, vs ...any) {
	l.t.Helper()
	for _, v := range vs {
		if err := l.Tell(to, v); err != nil {
			l.t.Fatalf("%v: %v", v, err)
		}
	}
	l.run()
}

// pass moves the clock.
func (l *lab) pass(d time.Duration) {
	l.t.Helper()
	l.clock.Advance(d)
	l.run()
}

// at finds an actor by its path below /user.
func (l *lab) at(path string) Ref {
	l.t.Helper()
	return must(l.Lookup("/user/" + path))(l.t)
}

// ask returns the answer, which must come without the clock moving.
func (l *lab) ask(to Ref, v any) Message {
	l.t.Helper()
	p := must(l.Request(to, v))(l.t)
	l.run()
	select {
	case m := <-p.Answer():
		return m
	default:
		p.Cancel()
		l.t.Fatalf("%v does not answer %v:\n%v", to, v, l.View().Tree())
		return Message{}
	}
}

// get is what a counter holds.
func (l *lab) get(to Ref) (n int) {
	l.t.Helper()
	m := l.ask(to, "get")
	if err := m.Decode(&n); err != nil || m.Err() != nil {
		l.t.Fatalf("%v, %v", err, m.Err())
	}
	return n
}

// state is an actor's state, "gone" if there is none.
func (l *lab) state(path string) string {
	ref, err := l.Lookup("/user/" + path)
	if err != nil {
		return "gone"
	}
	return l.table.Get(ref.UID()).life.State().String()
}

// next is the next event of a kind; it must be there.
func (l *lab) next(k EventKind) Event {
	l.t.Helper()
	complete(l.t, l.events)
	for {
		select {
		case e := <-l.events.C():
			if e.Kind == k {
				return e
			}
		default:
			l.t.Fatalf("no %v", k)
		}
	}
}

// seen are the events that have come, of some kinds.
func (l *lab) seen(kinds ...EventKind) (es []Event) {
	l.t.Helper()
	complete(l.t, l.events)
	for {
		select {
		case e := <-l.events.C():
			for _, k := range kinds {
				if e.Kind == k {
					es = append(es, e)
				}
			}
		default:
			return es
		}
	}
}

// letters are the reasons of the dead letters so far, oldest first.
func (l *lab) letters() (reasons []DeadReason) {
	letters, _ := l.DeadLetters()
	for _, d := range letters {
		reasons = append(reasons, d.Reason)
	}
	return reasons
}

// otherwise is a strategy that decides everything alike.
func otherwise(d supervision.Directive) supervision.Strategy {
	return supervision.Default().WithOtherwise(d)
}

// delayed restarts after 200 ms, 400 ms, ... to 10 s, without jitter.
func delayed(t testing.TB, b supervision.Backoff) supervision.Strategy {
	t.Helper()
	p, err := backoff.Spec{Min: 200 * time.Millisecond, Max: 10 * time.Second, Jitter: "none"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	b.Policy = p
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	return supervision.Default().WithBackoff(b)
}

// idle is an actor that does nothing, with children.
func parentOf(s supervision.Strategy, children ...Child) Props {
	return Func(func(*Context, Message) error { return nil }).WithSupervision(s).WithChildren(children...)
}

// familyCode is the module of familyImage.
var familyCode []byte

// familyImage is the guest of testdata/family, built and frozen once a test run.
var familyImage = sync.OnceValues(func() (*sandbox.Image, error) {
	code, err := guesttest.Build(filepath.Join("testdata", "family"))
	if err != nil {
		return nil, err
	}
	familyCode = code
	// It is kept for the next run, beside what servicetest keeps: to compile it takes half a minute under the race detector.
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	engine, err := sandbox.New(context.Background(), sandbox.NewConfig().WithCacheDir(filepath.Join(base, "wasmactors-tests", "images")))
	if err != nil {
		return nil, err
	}
	return engine.Load(context.Background(), code, sandbox.ImageConfig{Name: "family"})
})

// guest is an actor of testdata/family: "worker" or "boss".
func familyGuest(t testing.TB, typ string) Props {
	t.Helper()
	image, err := familyImage()
	if err != nil {
		t.Fatal(err)
	}
	return Guest(image, typ).WithCapabilities(Capabilities{Send: []string{"/user/sink"}, Spawn: []string{"*"}})
}

// sinkhole collects the texts that it is sent, at /user/sink.
func (l *lab) sinkhole() *[]string {
	var got []string
	l.spawn("sink", Func(func(_ *Context, m Message) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		got = append(got, text)
		return nil
	}))
	return &got
}

// fails makes an actor fail while nobody else runs, so that several can at once.
func (l *lab) fails(path string) {
	l.t.Helper()
	l.table.Get(l.at(path).UID()).fail(nil, failure(abi.FailureTrap), life.ByItself)
}

func failure(kind abi.FailureKind) *abi.Failure { return &abi.Failure{Kind: kind, Reason: "told to"} }
