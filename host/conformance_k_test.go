package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// Rows K06 to K14: the stream of events, logs, timers. K01 to K05 are in host/eventbus.

// K06: a system has one stream, of its own; who subscribes chooses, gets what it has chosen in order, and
// nothing more once it has left or the system has ended.
func TestK06_EventStream(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		other, _ := manual(t, nil)
		foreign := other.Subscribe(100, nil)
		letters := l.Subscribe(100, func(e *Event) bool { return e.Kind == EventDeadLetter })
		left := l.Subscribe(100, nil)
		left.Close()
		left.Close()
		a := l.spawn("a", s.props(t))
		l.say(a, s.crash)
		l.Stop(a)
		l.run()
		_ = l.Tell(a, "late")
		l.equal("events", l.events(EventStarted, EventFailed, EventRestarted, EventStopped, EventDeadLetter),
			[]string{"started a", "failed a", "restarted a", "stopped a", "dead_letter temp"})
		if e, ok := <-letters.C(); !ok || e.Kind != EventDeadLetter || len(letters.C()) != 0 {
			t.Errorf("%v, and %d more", e.Kind, len(letters.C()))
		}
		if _, open := <-left.C(); open {
			t.Error("it has left and gets events")
		}
		if len(foreign.C()) != 0 {
			t.Error("a system hears of another one")
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, open := <-letters.C(); open {
			t.Error("the system has ended and its stream has not")
		}
		if _, open := <-l.Subscribe(1, nil).C(); open {
			t.Error("a stream begins after the end of its system")
		}
	})
}

// logBook is a slog handler that keeps the lines.
type logBook struct {
	mu    sync.Mutex
	level slog.Level
	lines []slog.Record
	wait  chan struct{} // nil, or each line waits for it
}

func (r *logBook) Enabled(_ context.Context, l slog.Level) bool { return l >= r.level }
func (r *logBook) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r *logBook) WithGroup(string) slog.Handler                { return r }
func (r *logBook) Handle(_ context.Context, line slog.Record) error {
	if r.wait != nil {
		<-r.wait
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

// texts are the messages, with the attributes that are named.
func (r *logBook) texts(attrs ...string) (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		text := line.Message
		line.Attrs(func(a slog.Attr) bool {
			if slices.Contains(attrs, a.Key) {
				text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
			}
			return true
		})
		out = append(out, text)
	}
	return out
}

// withLogBook runs what happens in a system with a log, and ends the system.
func withLogBook(t *testing.T, r *logBook, change func(Config) Config, what func(s *System, clock *VirtualClock)) {
	t.Helper()
	s, clock := manual(t, func(c Config) Config {
		if change != nil {
			c = change(c)
		}
		return c.WithLog(slog.New(r))
	})
	what(s, clock)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// K08: a log that is slow holds nobody up; its lines keep their order, what is below its level does not
// get there, and the end of the system waits until all is written.
func TestK08_LogsAreAsynchronous(t *testing.T) {
	r := &logBook{level: slog.LevelWarn, wait: make(chan struct{})}
	withLogBook(t, r, func(c Config) Config { return c.WithLoggedDeadLetters(AllDeadLetters) }, func(s *System, _ *VirtualClock) {
		a := must(s.Spawn("a", newCounter()))(t)
		s.Stop(a)
		s.RunUntilIdle(100)
		for i := range 50 { // while not one line can be written
			_ = s.Tell(a, i)
		}
		if n := len(r.texts()); n != 0 {
			t.Errorf("%d lines", n)
		}
		close(r.wait)
	})
	var want []string
	for range 50 {
		want = append(want, "dead_letter")
	}
	if got := r.texts(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	sizes := []int{}
	for _, line := range r.lines {
		line.Attrs(func(a slog.Attr) bool {
			if a.Key == "bytes" {
				sizes = append(sizes, int(a.Value.Int64()))
			}
			return true
		})
	}
	if !slices.IsSorted(sizes) || sizes[0] != 1 || sizes[49] != 2 { // 0 to 23 take a byte, others two
		t.Errorf("not in their order: %v", sizes)
	}
}

// K09: the first n dead letters are logged, then a line says that there are no more; none and all by choice, and
// those of the end by choice. Those that are suppressed do not count.
func TestK09_LogOfDeadLetters(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(Config) Config
		letters, lines int // while it runs and at its end; lines that say that there are no more
		atEnd          int
	}{
		"usual":              {func(c Config) Config { return c }, 10, 1, 0},
		"3":                  {func(c Config) Config { return c.WithLoggedDeadLetters(3) }, 3, 1, 0},
		"off":                {func(c Config) Config { return c.WithLoggedDeadLetters(0) }, 0, 0, 0},
		"on":                 {func(c Config) Config { return c.WithLoggedDeadLetters(AllDeadLetters) }, 20, 0, 5},
		"as many":            {func(c Config) Config { return c.WithLoggedDeadLetters(25) }, 20, 0, 5},
		"not at the end":     {func(c Config) Config { return c.WithLoggedDeadLetters(AllDeadLetters).WithoutLettersOfTheEnd() }, 20, 0, 0},
		"nothing of the end": {func(c Config) Config { return c.WithLoggedDeadLetters(21).WithoutLettersOfTheEnd() }, 20, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &logBook{level: slog.LevelInfo}
			withLogBook(t, r, c.change, func(s *System, _ *VirtualClock) {
				gone, waits := must(s.Spawn("gone", newCounter()))(t), must(s.Spawn("waits", newCounter()))(t)
				s.Stop(gone)
				s.RunUntilIdle(100)
				for i := range 20 {
					_ = s.Tell(gone, Marked{Value: i, Marks: Suppressed})
					_ = s.Tell(gone, i)
				}
				if err := s.Operate().Pause(waits, false); err != nil {
					t.Fatal(err)
				}
				for i := range 5 { // dead letters when the system ends
					_ = s.Tell(waits, i)
				}
			})
			during, after, over := 0, 0, 0
			for _, text := range r.texts("to") {
				switch {
				case strings.HasPrefix(text, "no more dead letters are logged"):
					over++
				case strings.Contains(text, "/user/waits"):
					after++
				case strings.HasPrefix(text, "dead_letter"):
					during++
				}
			}
			if during != c.letters || over != c.lines || after != c.atEnd {
				t.Errorf("%d letters, %d at the end, %d lines that there are no more\n%q", during, after, over, r.texts("to"))
			}
		})
	}
}

// K10: a line says of which actor and system it is, and when it happened, not when it was written.
func TestK10_LogAttributes(t *testing.T) {
	r := &logBook{level: slog.LevelInfo, wait: make(chan struct{})}
	var began time.Time
	withLogBook(t, r, nil, func(s *System, clock *VirtualClock) {
		began = clock.Now()
		a := must(s.Spawn("a", newCounter()))(t)
		s.RunUntilIdle(100)
		clock.Advance(time.Minute)
		_ = s.Tell(a, "crash")
		s.RunUntilIdle(100)
		clock.Advance(time.Hour)
		_ = s.TellFrom(a, newRef(a.UID()+1<<11, ""), 1)
		close(r.wait)
	})
	want := []string{
		"failed actor=/user/a type=native incarnation=0 directive=restart system=test",
		"restarted actor=/user/a type=native incarnation=1 system=test",
		"dead_letter actor=/temp type= incarnation=0 from=/user/a reason=unknown actor system=test",
		"terminated actor= type= incarnation=0 system=test",
	}
	if got := r.texts("actor", "type", "incarnation", "directive", "from", "reason", "system"); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if at := r.lines[0].Time.Sub(began); at != time.Minute {
		t.Errorf("it happened after %v", at)
	}
}

// K11: any handler of log/slog is a back end.
func TestK11_BackEnds(t *testing.T) {
	var text strings.Builder
	w := &lockedWriter{to: &text}
	for name, h := range map[string]slog.Handler{"json": slog.NewJSONHandler(w, nil), "text": slog.NewTextHandler(w, nil), "none": slog.NewTextHandler(io.Discard, nil)} {
		text.Reset()
		s, _ := manual(t, func(c Config) Config { return c.WithLog(slog.New(h).With("mine", "x")) })
		_ = s.Tell(newRef(1<<12, ""), 1)
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(text.String(), "\n")
		var line map[string]any
		switch {
		case name == "json" && (json.Unmarshal([]byte(first), &line) != nil || line["msg"] != "dead_letter" || line["mine"] != "x" || line["system"] != "test"),
			name == "text" && !strings.Contains(first, "msg=dead_letter mine=x"), name == "none" && first != "":
			t.Errorf("%s: %s", name, first)
		}
	}
}

// A guest's message with the header that it may get lost is not a dead letter, unless it is one that it may not
// send: that is told, whatever the header says.
func TestHeaderOfSuppression(t *testing.T) {
	l := newStage(t, nil)
	gone := l.spawn("gone", newCounter())
	l.Stop(gone)
	l.run()
	headers := abi.AppendHeader(nil, abi.HeaderSuppressed, "1")
	g := l.spawn("g", puppet(t))
	l.say(g, script(now(
		abi.AppendSend(nil, gone.UID(), "", 0, 0, headers, encoded(1)),
		abi.AppendSend(nil, gone.UID(), "", 0, 0, nil, encoded(2)),
		abi.AppendSend(nil, 0, "/user/nobody", 0, 0, headers, encoded(3)),
	)))
	poor := l.spawn("poor", puppet(t).WithCapabilities(Capabilities{}))
	l.say(poor, script(now(abi.AppendSend(nil, 0, "/user/probe", 0, 0, headers, encoded(4)))))
	l.equal("dead letters", l.letters(), []string{"unknown actor: 2", "denied by capability: 4"})
	var all []string
	for _, e := range l.raw(EventDeadLetter, EventSuppressed) {
		all = append(all, fmt.Sprint(e.Kind, " ", e.Dead.Payload, " ", e.Dead.From))
	}
	l.equal("events", all, []string{"suppressed_dead_letter [1] /user/g", "dead_letter [2] /user/g", "suppressed_dead_letter [3] /user/g", "dead_letter [4] /user/poor"})
}

// A dead letter and a message that was not handled name the path of who has sent them, though it has stopped.
func TestSendersThatHaveStopped(t *testing.T) {
	l := newStage(t, nil)
	a := l.spawn("a", newCounter())
	b := l.spawn("b", Func(func(*Context, Message) error { return ErrUnhandled }))
	if err := l.Operate().Pause(b, false); err != nil {
		t.Fatal(err)
	}
	_ = l.TellFrom(a, b, 1)
	_ = l.TellFrom(a, b, 2)
	l.Stop(a)
	l.run()
	if err := l.Operate().Unpause(b, false); err != nil {
		t.Fatal(err)
	}
	l.Step()
	l.Stop(b)
	l.run()
	for _, e := range l.raw(EventDeadLetter, EventUnhandled) {
		if e.Dead.From != "/user/a" {
			t.Errorf("%v from %q", e.Kind, e.Dead.From)
		}
	}
}

// K12: what is put off comes when it is due or later, never early, once or at a period; the end of the system drops
// what is left, and nothing can be put off afterwards.
func TestK12_Scheduler(t *testing.T) {
	both(t, nil, func(l *stage, s sort) {
		const delay, period = time.Second, 300 * time.Millisecond
		var a Ref
		if s.name == "guest" {
			a = l.spawn("a", puppet(t, on(abi.KindTimer, toProbe("rings")), on(abi.KindStart,
				abi.AppendTimer(nil, 1, uint64(delay), 0, encoded(1)), abi.AppendTimer(nil, 2, uint64(delay), uint64(period), encoded(2)))))
		} else {
			a = l.spawn("a", Native(func() Actor { return &schedules{delay, period} }))
		}
		l.pass(delay - 1)
		l.wants()
		l.pass(1)
		l.wants("message rings", "message rings")
		l.pass(period - 1)
		l.wants()
		l.pass(1)
		l.wants("message rings")
		if n := l.clock.Pending(); n == 0 {
			t.Error("no period is under way")
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		l.clock.Advance(time.Hour)
		l.wants()
		if n := l.clock.Pending(); n != 0 {
			t.Errorf("%d timers are left", n)
		}
		if err := l.Tell(a, 1); err == nil {
			t.Error("the system has ended and takes messages")
		}
		if _, err := l.Spawn("b", newCounter()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// schedules sets two timers.
type schedules struct{ delay, period time.Duration }

func (a *schedules) Started(ctx *Context) error {
	if err := ctx.After(1, a.delay, 0, 1); err != nil {
		return err
	}
	return ctx.After(2, a.delay, a.period, 2)
}

func (a *schedules) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindTimer {
		return tellProbe(ctx, "rings")
	}
	return nil
}

// K12: on the machine's clock, too, nothing comes early.
func TestK12_NeverEarly(t *testing.T) {
	var early atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Add(1)
		d := time.Duration(i) * 100 * time.Microsecond
		began := time.Now()
		clock.Real().AfterFunc(d, func() {
			defer all.Done()
			if time.Since(began) < d {
				early.Add(1)
			}
		})
	}
	all.Wait()
	if n := early.Load(); n != 0 {
		t.Errorf("%d came early", n)
	}
}

// K13: of those who cancel at the same time one succeeds, and none if it has begun; what has begun goes on.
// A timer of an actor that was cancelled is not delivered, though it waits in the mailbox already.
func TestK13_Cancel(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(0, 0))
	for name, c := range map[string]clock.Clock{"virtual": virtual, "real": clock.Real()} {
		for range 200 {
			var ran, cancelled atomic.Int32
			done := make(chan struct{})
			timer := c.AfterFunc(50*time.Microsecond, func() { ran.Add(1); close(done) })
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if timer.Stop() {
						cancelled.Add(1)
					}
				})
			}
			if name == "virtual" {
				wg.Go(func() { virtual.Advance(time.Millisecond) })
			}
			wg.Wait()
			if cancelled.Load() == 0 {
				<-done
			}
			if ran.Load()+cancelled.Load() != 1 {
				t.Fatalf("%s: it has run %d times and was cancelled %d times", name, ran.Load(), cancelled.Load())
			}
		}
	}
	both(t, nil, func(l *stage, s sort) {
		if s.name == "guest" {
			g := l.spawn("g", puppet(t, on(abi.KindTimer, toProbe("rings")), on(abi.KindStart, abi.AppendTimer(nil, 1, 1000, 0, nil))))
			_ = l.Tell(g, script(now(abi.AppendCancel(nil, 1))))
			l.clock.Advance(1000) // its message waits behind the one that cancels it
			l.run()
			l.wants()
			return
		}
		a := l.spawn("a", Native(func() Actor { return &cancels{} }))
		_ = l.Tell(a, 1)
		l.clock.Advance(1000)
		l.run()
		l.wants()
	})
}

// cancels sets a timer and cancels it with the first message.
type cancels struct{}

func (*cancels) Started(ctx *Context) error { return ctx.After(1, 1000, 0, nil) }

func (*cancels) Receive(ctx *Context, m Message) error {
	if m.Kind == abi.KindTimer {
		return tellProbe(ctx, "rings")
	}
	ctx.Cancel(1)
	return nil
}

// K14: durations are Go's, and deadlines those of contexts: what is past is at once, and a receive timeout of 0
// is none. An ask without a deadline has the system's, see TestAsksDoNotWaitForEver.
func TestK14_Durations(t *testing.T) {
	l := newStage(t, nil)
	silent := l.spawn("silent", Func(func(ctx *Context, m Message) error {
		switch m.Kind {
		case abi.KindTimer, abi.KindReceiveTimeout:
			return tellProbe(ctx, m.Kind.String())
		}
		var d time.Duration
		if m.Decode(&d) == nil {
			ctx.SetReceiveTimeout(d)
			return ctx.After(1, -d, 0, nil)
		}
		return nil
	}))
	l.say(silent, time.Second)
	l.pass(0)
	l.wants("message timer")
	l.pass(time.Second)
	l.wants("message receive_timeout")
	l.say(silent, time.Duration(0))
	l.pass(time.Hour)
	l.wants("message timer")

	// A question has the deadline of its context, also one that is later than the system's.
	asked := l.spawn("asked", Func(func(ctx *Context, m Message) error {
		at, ok := ctx.Head().Deadline()
		left := at.Sub(ctx.Now())
		return tellProbe(ctx, fmt.Sprint(ok, left > 9*time.Hour && left <= 10*time.Hour))
	}))
	told, cancel := context.WithDeadline(context.Background(), time.Now().Add(10*time.Hour))
	if _, err := l.outside.Request(asked, must(message.Envelope("q"))(t), l.outside.Patience(told)); err != nil {
		t.Error(err)
	}
	l.run()
	l.wants("message true true")
	cancel()

	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := l.Ask(ctx, silent, "question"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
