package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/trail"
	"github.com/wasmactors/wasmactors/internal/race"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// notes is a tracer that notes all spans. Its IDs are numbered through.
type notes struct {
	mu    sync.Mutex
	spans []*note
	roots func(*SpanStart) bool // nil: all roots are recorded
	last  uint64
}

type note struct {
	of     *notes
	start  SpanStart
	end    SpanEnd
	at     TraceContext
	ended  int
	parent *note // nil: it is elsewhere, or there is none
}

type noteKey struct{}

func (n *notes) Begin(s *SpanStart) Span {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.Parent.IsValid() && !s.Parent.Sampled() || !s.Parent.IsValid() && n.roots != nil && !n.roots(s) {
		return nil
	}
	n.last++
	x := &note{of: n, start: *s, at: TraceContext{TraceID: s.Parent.TraceID, Flags: 1, State: s.Parent.State}}
	binary.BigEndian.PutUint64(x.at.SpanID[:], n.last)
	if !s.Parent.IsValid() {
		binary.BigEndian.PutUint64(x.at.TraceID[:], n.last)
	}
	for _, o := range n.spans {
		if o.at.SpanID == s.Parent.SpanID {
			x.parent = o
		}
	}
	n.spans = append(n.spans, x)
	return x
}

func (n *notes) Knows(trace [16]byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.spans, func(x *note) bool { return x.at.TraceID == trace })
}

func (n *notes) Of(ctx context.Context) TraceContext {
	t, _ := ctx.Value(noteKey{}).(TraceContext)
	return t
}

func (n *notes) In(ctx context.Context, t TraceContext) context.Context {
	return context.WithValue(ctx, noteKey{}, t)
}

func (x *note) Context() TraceContext { return x.at }

func (x *note) End(e *SpanEnd) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	x.end = *e
	x.ended++
}

// String is the span with all above it: "ask a > turn a > turn b reply".
func (x *note) String() string {
	text := x.start.Kind.String() + " " + x.start.Ref.Name()
	if x.start.Kind == TurnSpan && x.start.Message != abi.KindMessage {
		text += " " + x.start.Message.String()
	}
	if x.end.Failure != nil {
		text += "!"
	}
	if x.start.Link.IsValid() {
		text += " (again)"
	}
	if x.parent != nil {
		return x.parent.String() + " > " + text
	}
	if x.start.Parent.IsValid() {
		return "... > " + text
	}
	return text
}

// take is the spans since the last time, and checks that each has ended once.
func (n *notes) take(t *testing.T) (out []string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.spans {
		if x.ended != 1 {
			t.Errorf("%v has ended %d times", x, x.ended)
		}
		out = append(out, x.String())
	}
	n.spans = nil
	return out
}

func tracedStage(t *testing.T) (*stage, *notes) {
	n := &notes{}
	l := newStage(t, func(c Config) Config { return c.WithTracer(n) })
	n.take(t)
	return l, n
}

// settle spawns actors and forgets the spans of their starts.
func (n *notes) settle(l *stage, name string, p Props) Ref {
	ref := l.spawn(name, p)
	n.take(l.t)
	return ref
}

// askIn asks and lets everything happen.
func (l *stage) askIn(ctx context.Context, to Ref, v any) (Message, error) {
	type answer struct {
		m   Message
		err error
	}
	c := make(chan answer)
	go func() {
		m, err := l.Ask(ctx, to, v)
		c <- answer{m, err}
	}()
	for {
		select {
		case a := <-c:
			return a.m, a.err
		default:
			l.RunUntilIdle(1000)
		}
	}
}

// An ask from outside is one trace with all that it causes, through guests that know
// nothing of it, to the last answer.
func TestATraceGoesFromTheAskToTheLastReply(t *testing.T) {
	l, n := tracedStage(t)
	back := n.settle(l, "back", puppet(t))
	middle := n.settle(l, "middle", puppet(t, on(abi.KindReply, toProbe("answered"))))
	front := n.settle(l, "front", Func(func(ctx *Context, m Message) error {
		return ctx.Tell(middle, script(now(abi.AppendAsk(nil, back.UID(), "", 7, uint64(time.Second), nil, script(rec(recReport, 0, nil))))))
	}))
	if err := l.Tell(front, 1); err != nil {
		t.Fatal(err)
	}
	l.run()
	want := []string{
		"send front", "send front > turn front", "send front > turn front > turn middle", "send front > turn front > turn middle > turn back",
		"send front > turn front > turn middle > turn back > turn middle reply", "send front > turn front > turn middle > turn back > turn middle reply > turn probe",
	}
	last := l.mail[len(l.mail)-1]
	if got := n.take(t); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if at := trail.Of(last.Headers); !at.Sampled() || at.TraceID[7] == 0 {
		t.Errorf("the probe got %v", at)
	}
}

func TestAnAskIsASpanUntilItsAnswer(t *testing.T) {
	l, n := tracedStage(t)
	parent := TraceContext{TraceID: [16]byte{9}, SpanID: [8]byte{8}, Flags: 1, State: "vendor=x"}
	ctx := n.In(t.Context(), parent)
	a := n.settle(l, "a", Func(func(c *Context, m Message) error {
		if in := n.Of(c.Head().Trace(context.Background())); in.TraceID != parent.TraceID || in.State != "vendor=x" {
			t.Errorf("the turn is in %v", in)
		}
		return c.Reply("x")
	}))
	m, err := l.askIn(ctx, a, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := trail.Of(m.Headers); got.TraceID != parent.TraceID || got.State != "vendor=x" {
		t.Errorf("the answer is in %v", got)
	}
	if got := n.take(t); !slices.Equal(got, []string{"... > ask a", "... > ask a > turn a"}) {
		t.Errorf("%q", got)
	}
	if err := l.Tell(a, Traced(ctx, Marked{Value: 1, Marks: Suppressed})); err != nil {
		t.Fatal(err)
	}
	l.run()
	if got := n.take(t); !slices.Equal(got, []string{"... > send a", "... > send a > turn a"}) {
		t.Errorf("%q", got)
	}
}

// A turn that fails is the parent of the start that follows it, and the event has its place.
func TestACrashAndWhatFollowsAreOneTrace(t *testing.T) {
	for _, s := range sorts {
		t.Run(s.name, func(t *testing.T) {
			l, n := tracedStage(t)
			a := n.settle(l, "a", s.props(t))
			l.raw()
			if err := l.Tell(a, s.crash); err != nil {
				t.Fatal(err)
			}
			l.run()
			got := n.take(t)
			if !slices.Contains(got, "send a > turn a! > start a (again)") {
				t.Errorf("%q", got)
			}
			e := l.raw(EventFailed)[0]
			if e.Trace == nil || !e.Trace.Sampled() {
				t.Fatalf("the event is nowhere: %+v", e)
			}
			text, err := e.MarshalJSON()
			if err != nil || !bytes.Contains(text, []byte(`"trace_id":"`)) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// What a child does at its start is in the trace of the turn that has spawned it.
func TestAChildsStartIsInTheTraceOfItsSpawn(t *testing.T) {
	l, n := tracedStage(t)
	probe := l.probe
	child := Native(func() Actor { return &beginner{func(ctx *Context) error { return ctx.Tell(probe, "began") }} })
	a := n.settle(l, "a", Func(func(ctx *Context, m Message) error {
		_, err := ctx.Spawn("child", child)
		return err
	}))
	if err := l.Tell(a, 1); err != nil {
		t.Fatal(err)
	}
	l.run()
	if got := n.take(t); !slices.Contains(got, "send a > turn a > start child > turn probe") {
		t.Errorf("%q", got)
	}
}

type beginner struct{ f func(*Context) error }

func (s *beginner) Started(ctx *Context) error      { return s.f(ctx) }
func (s *beginner) Receive(*Context, Message) error { return nil }

func TestTimersAndTimeoutsInATrace(t *testing.T) {
	l, n := tracedStage(t)
	silent := n.settle(l, "silent", Func(func(*Context, Message) error { return nil }))
	a := n.settle(l, "a", puppet(t, on(abi.KindAskTimeout, toProbe("none"))))
	for _, c := range []struct {
		name    string
		command []byte
		pass    time.Duration
		want    string
	}{
		{"once", abi.AppendTimer(nil, 1, uint64(time.Second), 0, nullPayload), time.Second, "send a > turn a > turn a timer"},
		{"an ask", abi.AppendAsk(nil, silent.UID(), "", 7, uint64(time.Second), nil, nullPayload), time.Second, "send a > turn a > turn a ask_timeout"},
		{"periodic", abi.AppendTimer(nil, 2, uint64(time.Second), uint64(time.Hour), nullPayload), time.Second, "turn a timer"},
	} {
		if err := l.Tell(a, script(now(c.command))); err != nil {
			t.Fatal(err)
		}
		l.run()
		l.pass(c.pass)
		if got := n.take(t); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A service answers later, and its answer is in the trace of the question.
func TestAnAnswerThatComesLaterIsInTheTrace(t *testing.T) {
	l, n := tracedStage(t)
	replies := make(chan *Reply, 1)
	a := n.settle(l, "a", Func(func(ctx *Context, m Message) error {
		r, err := ctx.Later()
		replies <- r
		return err
	}))
	p := must(l.Request(a, 1))(t)
	l.run()
	r := <-replies
	if in := n.Of(r.Trace(context.Background())); !in.Sampled() {
		t.Errorf("the handle is in %v", in)
	}
	if err := r.Send("x"); err != nil {
		t.Fatal(err)
	}
	if at := trail.Of((<-p.Answer()).Headers); !at.Sampled() {
		t.Errorf("the answer is in %v", at)
	}
}

// What is not recorded is decided at the root: nothing below has a span, or headers.
func TestWhatIsNotRecordedCostsNoHeaders(t *testing.T) {
	l, n := tracedStage(t)
	n.roots = func(*SpanStart) bool { return false }
	a := n.settle(l, "a", puppet(t))
	if err := l.Tell(a, script(now(toProbe("x")))); err != nil {
		t.Fatal(err)
	}
	l.run()
	if h := l.mail[0].Headers; len(h) != 0 || len(n.take(t)) != 0 {
		t.Errorf("headers %x", h)
	}
	// Somebody else's trace that is not recorded is passed on, in whole batches.
	foreign := TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{2}, State: "a=b"}
	ctx := n.In(t.Context(), foreign)
	for range 3 {
		if err := l.Tell(a, Traced(ctx, script(now(toProbe("x"))))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Tell(a, script(now(toProbe("y")))); err != nil {
		t.Fatal(err)
	}
	l.run()
	for _, m := range l.mail[1:4] {
		if got := trail.Of(m.Headers); got != foreign {
			t.Errorf("%v has become %v", foreign, got)
		}
	}
	if h := l.mail[4].Headers; len(h) != 0 {
		t.Errorf("another's trace: %x", h)
	}
}

// Headers of a trace that a guest writes itself are dropped, unless they name a trace that
// is under way; its other headers are kept.
func TestAGuestCannotForgeATrace(t *testing.T) {
	known := func(n *notes) TraceContext {
		return n.Begin(&SpanStart{Kind: SendSpan}).Context()
	}
	forged := TraceContext{TraceID: [16]byte{0xff}, SpanID: [8]byte{1}, Flags: 1}
	for _, c := range []struct {
		name  string
		own   func(*notes) []byte // the value of traceparent
		other int                 // further headers
		kept  bool                // the trace is that of own
		none  bool                // the message is in no trace
	}{
		{"forged", func(*notes) []byte { return forged.AppendTraceParent(nil) }, 1, false, false},
		{"under way", func(n *notes) []byte { t := known(n); t.SpanID[0] = 9; return t.AppendTraceParent(nil) }, 1, true, false},
		{"huge", func(*notes) []byte { return bytes.Repeat([]byte{'0'}, abi.MaxHeaderValue) }, 1, false, false},
		{"empty", func(*notes) []byte { return nil }, 0, false, false},
		{"no room", func(*notes) []byte { return forged.AppendTraceParent(nil) }, abi.MaxHeaders - 1, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, inTrace := range []bool{true, false} {
				l, n := tracedStage(t)
				a := n.settle(l, "a", puppet(t))
				own := c.own(n)
				headers := abi.AppendHeader(nil, HeaderTraceParent, string(own))
				for i := range c.other {
					headers = abi.AppendHeader(headers, "other-"+string(rune('a'+i)), strings.Repeat("v", i))
				}
				n.roots = func(*SpanStart) bool { return inTrace }
				if err := l.Tell(a, script(now(abi.AppendSend(nil, l.probe.UID(), "", 0, 0, headers, nullPayload)))); err != nil {
					t.Fatal(err)
				}
				l.run()
				if len(l.mail) != 1 {
					t.Fatalf("%q, %v", l.got, l.letters())
				}
				got := l.mail[0].Headers
				for i := range c.other {
					if v, ok := abi.FindHeader(got, "other-"+string(rune('a'+i))); !ok || string(v) != strings.Repeat("v", i) {
						t.Errorf("header %d is %q", i, v)
					}
				}
				at := trail.Of(got)
				switch {
				case c.kept && !bytes.Equal(at.AppendTraceParent(nil), own):
					t.Errorf("%v has become %v", string(own), at)
				case !c.kept && at.TraceID == forged.TraceID:
					t.Error("the forged trace was believed")
				case !c.kept && at.IsValid() != (inTrace && !c.none):
					t.Errorf("in a trace: %v", at)
				}
			}
		})
	}
}

// A message that fits an inbox without its trace fits.
func TestATraceDoesNotMakeAMessageTooLarge(t *testing.T) {
	l, n := tracedStage(t)
	a := n.settle(l, "a", echo(t, newEngine(t)))
	size := int(l.table.Get(a.UID()).props.limits.Message)
	for _, more := range []int{-100, -3, -2, 0} { // the head of the byte string
		b := bytes.Repeat([]byte{'x'}, size+more-3)
		err := l.Tell(a, Raw(append([]byte{0x59, byte(len(b) >> 8), byte(len(b))}, b...)))
		if err != nil {
			t.Errorf("%d bytes: %v", len(b)+3, err)
		}
		l.run()
	}
	if got := n.take(t); len(got) != 5 { // the last three without a turn in the trace
		t.Errorf("%q", got)
	}
}

// One message within a trace costs nothing more of the heap than its spans.
func TestTracedTurnsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	for _, c := range []struct {
		name   string
		tracer Tracer
		flags  byte
	}{{"recorded", blank{true}, 1}, {"not recorded", blank{}, 0}} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t)
			s, _ := manual(t, func(cfg Config) Config { return cfg.WithTracer(c.tracer) })
			guest := must(s.Spawn("guest", echo(t, e)))(t)
			var ping any = Raw{5}
			traced, turns := 0, 0
			native := must(s.Spawn("native", Func(func(ctx *Context, m Message) error {
				if turns++; trail.Has(m.Headers) {
					traced++
				}
				return ctx.Tell(guest, ping)
			})))(t)
			s.RunUntilIdle(1000)
			ctx := context.WithValue(t.Context(), noteKey{}, TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Flags: c.flags})
			for range 8 { // batches
				if err := s.TellFrom(native, guest, Traced(ctx, 5)); err != nil {
					t.Fatal(err)
				}
			}
			for range 1000 {
				s.Step()
			}
			before := turns
			if n := testing.AllocsPerRun(10_000, func() { s.Step() }); n != 0 {
				t.Errorf("%v allocations a message", n)
			}
			if turns-before < 5_000 || traced != turns {
				t.Errorf("%d turns, of %d %d in the trace", turns-before, turns, traced)
			}
		})
	}
}

// blank is a tracer whose spans are all one, or none.
type blank struct{ record bool }

func (b blank) Begin(s *SpanStart) Span {
	if b.record {
		return blankSpan{}
	}
	return nil
}
func (blank) Knows([16]byte) bool { return false }
func (blank) Of(ctx context.Context) TraceContext {
	t, _ := ctx.Value(noteKey{}).(TraceContext)
	return t
}
func (blank) In(ctx context.Context, _ TraceContext) context.Context { return ctx }

type blankSpan struct{}

func (blankSpan) Context() TraceContext {
	return TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Flags: 1}
}
func (blankSpan) End(*SpanEnd) {}

// What is remembered of failed turns and spawns goes with the actors.
func TestOriginsAreForgotten(t *testing.T) {
	l, n := tracedStage(t)
	strategy := supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Hour), backoff.NoJitter())})
	a := n.settle(l, "a", Func(func(ctx *Context, m Message) error {
		_, err := ctx.Spawn("", newCounter())
		return err
	}).WithSupervision(strategy))
	for range 10 {
		if err := l.Tell(a, 1); err != nil {
			t.Fatal(err)
		}
	}
	l.run()
	for _, k := range l.table.Get(a.UID()).kids() {
		if err := l.Tell(k.ref(), "crash"); err != nil {
			t.Fatal(err)
		}
	}
	l.run()
	if n := l.tracing.Origins.Len(); n != 10 {
		t.Errorf("%d are remembered during the delay", n)
	}
	l.Stop(a)
	l.run()
	if n := l.tracing.Origins.Len(); n != 0 {
		t.Errorf("%d are remembered", n)
	}
	for i := range uint64(2 * trail.MaxOrigins) {
		l.tracing.Origins.Put(abi.Ref(i+1), trail.Origin{})
	}
	if n := l.tracing.Origins.Len(); n != trail.MaxOrigins {
		t.Errorf("%d are remembered", n)
	}
}

func TestParseTraceParent(t *testing.T) {
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, c := range []struct {
		text string
		want string // "": it is none
	}{
		{"00-" + id + "-" + span + "-01", "00-" + id + "-" + span + "-01"},
		{"00-" + id + "-" + span + "-00", "00-" + id + "-" + span + "-00"},
		{"00-" + id + "-" + span + "-ff", "00-" + id + "-" + span + "-03"},      // unknown flags are not passed on
		{"cc-" + id + "-" + span + "-01-more", "00-" + id + "-" + span + "-01"}, // of a later version
		{"cc-" + id + "-" + span + "-01.more", ""},
		{"00-" + id + "-" + span + "-01-more", ""},
		{"ff-" + id + "-" + span + "-01", ""},
		{"00-" + strings.ToUpper(id) + "-" + span + "-01", ""},
		{"00-" + strings.Repeat("0", 32) + "-" + span + "-01", ""},
		{"00-" + id + "-" + strings.Repeat("0", 16) + "-01", ""},
		{"00_" + id + "-" + span + "-01", ""},
		{"00-" + id + "-" + span, ""},
		{"", ""},
	} {
		got, ok := ParseTraceParent([]byte(c.text))
		if ok != (c.want != "") || got.String() != c.want {
			t.Errorf("%q: %v, %v", c.text, got, ok)
		}
	}
}

func FuzzParseTraceParent(f *testing.F) {
	f.Add([]byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	f.Add([]byte("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, ok := ParseTraceParent(text)
		if ok != c.IsValid() {
			t.Fatalf("%v, %v", c, ok)
		}
		if !ok {
			return
		}
		again, ok := ParseTraceParent(c.AppendTraceParent(nil))
		if !ok || again != c {
			t.Fatalf("%v has become %v", c, again)
		}
	})
}

// Marking headers keeps all that are not a trace's, in their order, and adds one trace that
// can be read back, or none.
func TestMarkedHeaders(t *testing.T) {
	key := rapid.SampledFrom([]string{HeaderTraceParent, HeaderTraceState, "a", "wasmactors.id", "trace", "traceparent2"})
	rapid.Check(t, func(t *rapid.T) {
		var headers []byte
		var want []string
		for _, k := range rapid.SliceOfNDistinct(key, 0, 6, rapid.ID).Draw(t, "keys") {
			v := rapid.StringN(0, 60, 100).Draw(t, "value")
			headers = abi.AppendHeader(headers, k, v)
			if k != HeaderTraceParent && k != HeaderTraceState {
				want = append(want, k+"="+v)
			}
		}
		for i := range rapid.IntRange(0, abi.MaxHeaders-6).Draw(t, "more") {
			headers = abi.AppendHeader(headers, "x"+string(rune('a'+i)), "")
			want = append(want, "x"+string(rune('a'+i))+"=")
		}
		at := TraceContext{}
		var head []byte
		if rapid.Bool().Draw(t, "traced") {
			at = TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1, State: rapid.SampledFrom([]string{"", "a=b"}).Draw(t, "state")}
			head = trail.Append(nil, &at)
		}
		out := trail.Mark(nil, head, headers)
		var got []string
		entries := 0
		for rest := out; ; {
			k, v, next, ok := abi.NextHeader(rest)
			if !ok {
				if len(rest) > 0 && entries > 0 {
					t.Fatalf("%x is left", rest)
				}
				break
			}
			if entries++; !trail.IsTraceKey(k) {
				got = append(got, string(k)+"="+string(v))
			}
			rest = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if entries > 0 && (int(out[0]) != 0xa0|entries || entries > abi.MaxHeaders) {
			t.Fatalf("%d entries, said to be %x", entries, out[0])
		}
		back := trail.Of(out)
		room := trail.TraceHeaders - len(want)
		switch {
		case head == nil || room < 1:
			at = TraceContext{}
		case room < 2:
			at.State = ""
		}
		if back != at {
			t.Fatalf("%v, want %v", back, at)
		}
		if len(out) > 0 {
			var env abi.Envelope
			if _, err := abi.DecodeEnvelope(&env, abi.AppendEnvelope(nil, &abi.Envelope{Headers: out, Payload: nullPayload})); err != nil {
				t.Fatal(err)
			}
		}
	})
}
