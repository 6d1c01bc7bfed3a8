package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// What embedders use, each rule with its test.

// Of all who ask for a name at once one makes the actor, whatever stops meanwhile.
func TestGetOrSpawnUnderLoad(t *testing.T) {
	s := newSystem(t, NewConfig("load").WithWorkers(4))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var born, made atomic.Int64
	props := Native(func() Actor { born.Add(1); return &counter{} })
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 100 {
				name := fmt.Sprint("user", n%7)
				ref, fresh, err := s.GetOrSpawn(ctx, name, props)
				if err != nil {
					t.Error(err)
					return
				}
				if ref.Name() != name {
					t.Errorf("%v for %s", ref, name)
				}
				if fresh {
					made.Add(1)
				}
				if (i+n)%10 == 0 {
					s.Stop(ref)
				}
			}
		})
	}
	group.Wait()
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	// One that is stopped before it could start is never born.
	if b, m := born.Load(), made.Load(); m < 7 || b > m {
		t.Errorf("%d were made, %d were born", m, b)
	}
	if _, _, err := s.GetOrSpawn(ctx, "", props); err == nil {
		t.Error("no name")
	}
}

// GetOrSpawn waits for one that stops, as long as the context lasts.
func TestGetOrSpawnWaitsForTheName(t *testing.T) {
	l := newStage(t, nil)
	hold := l.spawn("a", parentOf(supervision.Default(), Child{"kid", newCounter()}))
	l.Stop(hold)
	for l.table.Get(hold.UID()).life.State().String() != "stopping" {
		l.Step()
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := l.GetOrSpawn(over, "a", newCounter()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var ref Ref
	var made bool
	if err := l.drive(func() (err error) {
		ref, made, err = l.GetOrSpawn(context.Background(), "a", newCounter())
		return err
	}); err != nil || !made || ref == hold {
		t.Error(ref, made, err)
	}
	if again, made, err := l.GetOrSpawn(context.Background(), "a", newCounter()); err != nil || made || again != ref {
		t.Error(again, made, err)
	}
}

// A name is not free while grandchildren of its actor still stop.
func TestANameIsTakenWhileGrandchildrenStop(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", parentOf(supervision.Default(), Child{"b", parentOf(supervision.Default(), Child{"c", newCounter()})}))
	c := must(l.Lookup("/user/a/b/c"))(t)
	l.Stop(a)
	for l.alive(a) {
		if _, err := l.Spawn("a", newCounter()); !errors.Is(err, ErrNameTaken) {
			t.Fatalf("%v, while %v lives: %v", err, c, l.alive(c))
		}
		if !l.Step() {
			t.Fatal("it does not stop")
		}
	}
	if _, err := l.Spawn("a", newCounter()); err != nil { // before its parent has heard of it
		t.Error(err)
	}
	l.run()
	if l.View().Tree().Children[1].State != "running" {
		t.Error(l.View().Tree())
	}
}

// Who hears of an end by an event can use the name at once.
func TestNamesAreFreeWhenTheEndIsTold(t *testing.T) {
	s := newSystem(t, NewConfig("names"))
	events := s.Subscribe(100, func(e *Event) bool { return e.Kind == EventStopped })
	defer events.Close()
	for range 300 {
		a, err := s.Spawn("a", newCounter())
		if err != nil {
			t.Fatal(err)
		}
		s.Stop(a)
		<-events.C()
	}
}

// StopNow ends a turn that would not end, and does not wait for the mailbox.
func TestStopNow(t *testing.T) {
	engine := newEngine(t)
	s := newSystem(t, NewConfig("now").WithStopGrace(time.Hour))
	image := load(t, engine, "testdata/hostile/loop.wasm")
	g := must(s.Spawn("g", Guest(image, "hostile").WithLimits(Limits{Fuel: 1 << 60})))(t)
	ended := must(s.Ended(g))(t)
	for range 3 {
		if err := s.Tell(g, 1); err != nil {
			t.Fatal(err)
		}
	}
	a := s.table.Get(g.UID())
	waitFor(t, "its turn", func() bool { return a.place.Running() && a.box.Len() == 2 })
	s.StopNow(g)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it runs")
	}
	s.StopNow(g) // it has gone
}

// The figures are true, by type and in all, of actors that have stopped, too.
func TestStatsByType(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		l := newStage(t, nil)
		before := l.View().Stats()
		n := l.spawn("n", newCounter())
		g := l.spawn("g", puppet(t))
		for range 2 {
			l.say(n, "crash")
			l.say(n, 1)
			l.say(g, script(trap()))
		}
		l.say(g, script())
		check := func(when string, living int) {
			st := l.View().Stats()
			if x, y := st.Types["native"], before.Types["native"]; x.Actors != y.Actors+living || x.Turns != y.Turns+4 || x.Crashes != 2 || x.Restarts != 2 || x.Fuel != 0 {
				t.Errorf("%s: %+v, before %+v", when, x, y)
			}
			// Three starts and a message are turns that have ended.
			if x := st.Types["puppet"]; x.Actors != living || x.Crashes != 2 || x.Restarts != 2 || x.Turns < 6 || x.Fuel == 0 {
				t.Errorf("%s: %+v", when, x)
			}
			if st.Crashes != 4 || st.Restarts != 4 || st.Turns != st.Types["native"].Turns+st.Types["puppet"].Turns || st.Fuel != st.Types["puppet"].Fuel {
				t.Errorf("%s: %+v", when, st)
			}
		}
		check("alive", 1)
		l.Stop(n)
		l.Stop(g)
		l.run()
		check("gone", 0)
		_ = l.Tell(n, 1)
		if st := l.View().Stats(); st.DeadLetters != 1 {
			t.Errorf("%d dead letters", st.DeadLetters)
		}
	})
}

// A log shows failures and dead letters as warnings, what guests log on their levels.
func TestWithLog(t *testing.T) {
	var text strings.Builder
	w := &lockedWriter{to: &text}
	s, _ := manual(t, func(c Config) Config {
		return c.WithLog(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})))
	})
	a := must(s.Spawn("a", newCounter()))(t)
	s.RunUntilIdle(100)
	_ = s.Tell(a, "crash")
	s.RunUntilIdle(100)
	s.Stop(a)
	s.RunUntilIdle(100)
	_ = s.Tell(a, 1)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	log := text.String()
	for _, want := range []string{"level=WARN msg=failed actor=/user/a type=native incarnation=0 failure=", "directive=restart", "level=INFO msg=restarted", "level=WARN msg=dead_letter", "msg=terminated"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, "msg=started") {
		t.Errorf("debugging on the level of information:\n%s", log)
	}
}

// A module's image is replaced under its actors: incarnations that have begun go on.
func TestReplace(t *testing.T) {
	engine := newEngine(t)
	simple, batching := load(t, engine, "testdata/puppet.wasm"), load(t, engine, "testdata/puppet_batching.wasm")
	l := newStage(t, nil)
	m := NewModule(simple)
	p := puppet(t)
	q := GuestOf(m, "puppet").WithArgs(p.args).WithCapabilities(p.caps)
	g := l.spawn("g", q)
	if err := m.Replace(batching); err != nil {
		t.Fatal(err)
	}
	image := func() any { return guestOf(l.table.Get(g.UID())).inst.Image }
	l.say(g, script(rec(recAdd, 2, nil)))
	if image() != any(simple) {
		t.Error("it changed under an incarnation")
	}
	l.say(g, script(trap()))
	if image() != any(batching) {
		t.Error("the next incarnation has the old one")
	}
	l.say(g, script(rec(recReport, 0, nil)))
	l.wants("reply 0")
	if err := m.Replace(load(t, engine, "testdata/echo.wasm")); !errors.Is(err, ErrBadProps) || !strings.Contains(err.Error(), `no actor type "puppet"`) {
		t.Error(err)
	}
	if m.Image() != batching {
		t.Error("a refused image is there")
	}
}

// stack is a mailbox that hands out the newest message first.
type stack struct {
	limits MailboxLimits
	mu     sync.Mutex
	mail   []*Envelope
	closed bool
}

func (s *stack) Push(e *Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrStopped
	case len(s.mail) >= s.limits.Messages:
		return fmt.Errorf("%w: the stack is full", ErrMailboxFull)
	}
	s.mail = append(s.mail, e)
	return nil
}

func (s *stack) Force(e *Envelope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.mail = append(s.mail, e)
	return true
}

func (s *stack) Peek() *Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mail) == 0 {
		return nil
	}
	return s.mail[len(s.mail)-1]
}

func (s *stack) Pop() *Envelope {
	e := s.Peek()
	if e != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mail = s.mail[:len(s.mail)-1]
	}
	return e
}

func (s *stack) PushFront(es ...*Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(es) {
		s.mail = append(s.mail, e)
	}
}

func (s *stack) Close(drain func(*Envelope)) {
	s.mu.Lock()
	s.closed = true
	mail := s.mail
	s.mail = nil
	s.mu.Unlock()
	for _, e := range mail {
		drain(e)
	}
}

func (s *stack) Len() int     { s.mu.Lock(); defer s.mu.Unlock(); return len(s.mail) }
func (s *stack) Bytes() int64 { return int64(s.Len()) }
func (s *stack) Empty() bool  { return s.Len() == 0 }

// An actor may have another mailbox, which decides about the order; everything else stays.
func TestWithMailbox(t *testing.T) {
	everyManner(t, func(t *testing.T) {
		both(t, nil, func(l *stage, s sort) {
			var box *stack
			made := 0
			a := l.spawn("a", s.props(l.t).WithLimits(Limits{Mailbox: 3}).WithMailbox(func(m MailboxLimits) Mailbox {
				made++
				box = &stack{limits: m}
				return box
			}))
			if made != 1 || box.limits.Messages != 3 {
				l.t.Fatalf("made %d times, %+v", made, box.limits)
			}
			l.got = nil
			l.post(a, s.report)
			l.post(a, s.add(1))
			l.post(a, s.add(2))
			if err := l.Tell(a, s.add(4)); !errors.Is(err, ErrMailboxFull) {
				l.t.Error(err)
			}
			l.run()
			l.wants("reply 3") // the newest first
			l.say(a, s.crash)
			l.got = nil
			l.say(a, s.report)
			l.wants("reply 0")
			l.post(a, s.add(1))
			l.Stop(a)
			l.run()
			if letters, n := l.DeadLetters(); n != 2 || letters[1].Reason != DeadStopped {
				l.t.Errorf("%v", l.letters())
			}
		})
	})
}

// tape is a behaviour of one's own: it notes what it is asked, and fails at "crash".
type tape struct {
	did  []string
	back bool
}

func (b *tape) Start(_ *Context, cause *abi.Failure) *abi.Failure {
	b.did = append(b.did, fmt.Sprint("start ", cause != nil))
	return nil
}

func (b *tape) Handle(ctx *Context, n int) *abi.Failure {
	for range n {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		var text string
		if err := m.Decode(&text); err != nil || text == "crash" {
			return &abi.Failure{Kind: abi.FailureGuestError, Reason: "told to"}
		}
		b.did = append(b.did, text)
		_ = ctx.Reply("re " + text)
	}
	return nil
}

func (b *tape) Decide(*Context, Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return supervision.Stop, nil
}
func (b *tape) CannotRewind() string {
	if b.back {
		return ""
	}
	return "it is a tape"
}
func (b *tape) Rewind(*Context) bool { b.did = append(b.did, "rewind"); return true }
func (b *tape) End(_ *Context, e End) {
	b.did = append(b.did, fmt.Sprintf("end %v %v %v %v", e.Last, e.Begun, e.Cause != nil, e.Delayed))
}

// A behaviour of one's own is started, handles, decides, goes back and ends.
func TestBehave(t *testing.T) {
	b := &tape{}
	made := 0
	props := Behave("tape", func() Behaviour { made++; return b })
	l := newStage(t, func(c Config) Config { return c.WithGuardian(otherwise(supervision.Resume)) })
	a := l.spawn("a", props.WithSupervision(otherwise(supervision.Ask)).WithChildren(Child{"kid", newCounter()}))
	l.post(a, "one")
	l.post(a, "two")
	l.run()
	l.wants("reply re one", "reply re two")
	l.say(a, "crash") // a resume is not possible
	b.back = true
	l.say(a, "crash")
	l.say(a, "three")
	l.say(must(l.Lookup("/user/a/kid"))(t), "crash")
	if _, err := l.Lookup("/user/a/kid"); err == nil {
		t.Error("it was not asked about its child")
	}
	l.Stop(a)
	l.run()
	want := []string{"start false", "one", "two", "end false true true false", "start true", "rewind", "three", "end true true false false"}
	if !slices.Equal(b.did, want) || made != 1 || l.View().Stats().Types["tape"].Crashes != 2 {
		t.Errorf("%q, made %d times, %+v", b.did, made, l.View().Stats().Types["tape"])
	}
}
