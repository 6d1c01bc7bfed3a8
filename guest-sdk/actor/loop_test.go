//go:build !wasip1

package actor

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

var ctx = &mem.ctx

// fake is a host in memory: it counts envelopes as the injected next does, and
// keeps what was flushed.
type fake struct {
	count, begun int
	flushed      []byte
	logged       []string
	panicked     string
}

func (f *fake) Next(int) bool {
	if f.begun == f.count {
		return false
	}
	f.begun++
	return true
}

func (f *fake) Flush(b []byte)           { f.flushed = append(f.flushed, b...) }
func (f *fake) Log(_ int, text []byte)   { f.logged = append(f.logged, string(text)) }
func (f *fake) Panic(text []byte)        { f.panicked = string(text) }
func (f *fake) enter(n int, size uint32) { f.count, f.begun, f.flushed = n, 0, nil; turn(size) }

// run hands envelopes to the actor in one entry and returns its commands.
func (f *fake) run(t testing.TB, envelopes ...abi.Envelope) []abi.Command {
	t.Helper()
	size := 0
	for i := range envelopes {
		n, ok := abi.PutEnvelope(inbox[size:], &envelopes[i])
		if !ok {
			t.Fatal("the inbox is full")
		}
		size += n
	}
	f.enter(len(envelopes), uint32(size))
	var cmds []abi.Command
	for data := append(append([]byte(nil), f.flushed...), outbox[:ctx.written]...); len(data) > 0; {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, data)
		if err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, c)
		data = data[n:]
	}
	return cmds
}

type probe struct {
	started, stopped bool
	timedOut         int
}

func (p *probe) Started(*Context) error { p.started = true; return nil }
func (p *probe) Stopped(*Context)       { p.stopped = true }

func (p *probe) Receive(ctx *Context, msg *Message) error {
	switch {
	case msg.Is("echo"):
		return ctx.Reply(Text("echo"))
	case msg.Is("error"):
		return errors.New("no")
	case msg.Is("panic"):
		panic("oh")
	case msg.Is("stop"):
		ctx.StopSelf()
	case msg.Is("big"):
		for range 3 {
			ctx.Tell(9, Bytes(make([]byte, 40_000)))
		}
	case msg.Is("spawn"):
		ctx.Tell(ctx.Spawn("probe", "", nil), Int(1))
	case msg.Is("ask"):
		ctx.Ask(9, Null, time.Second, func(_ *Context, m *Message) error {
			if m.Kind() == KindAskTimeout {
				p.timedOut++
			}
			return nil
		})
	default:
		return ErrUnhandled
	}
	return nil
}

var thisProbe *probe

func init() {
	Register("probe", func() Actor { thisProbe = &probe{}; return thisProbe })
}

func text(s string) abi.Envelope {
	w := abi.NewWriter(nil)
	w.Text(s)
	return abi.Envelope{Kind: abi.KindMessage, Time: 5, Sender: 7, Correlation: 3, Payload: w.Bytes()}
}

func begun(t testing.TB) *fake {
	t.Helper()
	f := &fake{}
	bridge.Current = f
	initialize()
	start := abi.Start{Type: "probe", Path: "wasm://s/user/p#8", Self: 8, Parent: 1, RefKey: abi.RefKey{42}, Args: []byte{0xf6}}
	cmds := f.run(t, abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &start)})
	if len(cmds) != 1 || cmds[0].Op != abi.OpEnd || !thisProbe.started {
		t.Fatalf("%+v", cmds)
	}
	return f
}

// startWith begins an actor that was granted services.
func (f *fake) startWith(t testing.TB, incarnation uint64, services ...abi.Service) {
	t.Helper()
	start := abi.Start{Type: "probe", Path: "wasm://s/user/p#8", Self: 8, Incarnation: incarnation, Args: []byte{0xf6}, Services: services}
	f.run(t, abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &start)})
}

// What an actor was started with is its own: it lies neither in the inbox, which is used again, nor
// where another actor's is.
func TestStartIsTheActorsOwn(t *testing.T) {
	f := &fake{}
	bridge.Current = f
	initialize()
	var paths, args []string
	for _, n := range []int{1, startRoom / 2, startRoom, 3 * startRoom, 2} {
		path := "wasm://s/user/" + strings.Repeat("p", n) + "#8"
		start := abi.Start{Type: "probe", Path: path, Self: 8, Args: abi.AppendBytesHead(nil, 0), Reason: strings.Repeat("r", n)}
		f.run(t, abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &start)})
		clear(inbox)
		if ctx.Path() != path || ctx.Type() != "probe" || ctx.Cause() != start.Reason || string(ctx.start.Args) != "\x40" {
			t.Errorf("a path of %d: %q, %q, %q, % x", n, ctx.Path(), ctx.Type(), ctx.Cause(), ctx.start.Args)
		}
		paths, args = append(paths, ctx.Path()), append(args, path)
	}
	if !reflect.DeepEqual(paths, args) {
		t.Errorf("paths that were kept: %q", paths)
	}
}

type single struct{}

func (single) Receive(*Context, *Message) error { return nil }

type starting struct{ single }

func (*starting) Started(*Context) error { return nil }

type hidden struct{ single }

func (hidden) started() {}

var _ = hidden.started

func TestPlainActors(t *testing.T) {
	for _, c := range []struct {
		actor Actor
		want  bool
	}{
		{single{}, true}, {&single{}, true}, {hidden{}, true}, {struct{ Actor }{&starting{}}, true},
		{&starting{}, false}, {starting{}, true}, {struct{ *starting }{&starting{}}, false}, {&probe{}, false}, {nil, false},
	} {
		if got := plain(c.actor); got != c.want {
			t.Errorf("%T: %v", c.actor, got)
		}
		_, starts := c.actor.(Starter)
		if _, stops := c.actor.(Stopper); c.want && (starts || stops) {
			t.Errorf("%T does more than receive", c.actor)
		}
	}
}

// What an actor was granted is what its own start says, also if the instance was another's before.
func TestServices(t *testing.T) {
	f := begun(t)
	look := func() (got [3]Ref) {
		for i, name := range []string{"http", "kv", "sql"} {
			ref, ok := ctx.Service(name)
			if got[i] = ref; ok != (ref != 0) {
				t.Errorf("%s: %d, %v", name, ref, ok)
			}
		}
		return got
	}
	if got := look(); got != [3]Ref{} {
		t.Errorf("none were granted: %v", got)
	}
	f.startWith(t, 0, abi.Service{Name: "http", Ref: 5}, abi.Service{Name: "kv", Ref: 6})
	for i := range inbox {
		inbox[i] = 0xff // nothing of it may lie in the inbox
	}
	if got := look(); got != [3]Ref{5, 6, 0} {
		t.Errorf("http and kv were granted: %v", got)
	}
	f.run(t, text("echo"))
	f.startWith(t, 1, abi.Service{Name: "http", Ref: 5}, abi.Service{Name: "kv", Ref: 6})
	if got := look(); got != [3]Ref{5, 6, 0} {
		t.Errorf("after a restart: %v", got)
	}
	f.startWith(t, 0, abi.Service{Name: "sql", Ref: 9})
	if got := look(); got != [3]Ref{0, 0, 9} {
		t.Errorf("of the next actor: %v", got)
	}
	if a := testing.AllocsPerRun(100, func() { _ = look() }); a != 0 {
		t.Errorf("%v allocations to look one up", a)
	}
}

func ops(cmds []abi.Command) (names string) {
	for _, c := range cmds {
		names += c.Op.String() + " "
	}
	return names
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []abi.Envelope
		want string
	}{
		{"reply", []abi.Envelope{text("echo")}, "send end "},
		{"batch", []abi.Envelope{text("echo"), text("echo")}, "send end send end "},
		{"unhandled", []abi.Envelope{text("?")}, "unhandled end "},
		{"an error ends the batch", []abi.Envelope{text("error"), text("echo")}, "fail end "},
		{"so does stopping", []abi.Envelope{text("stop"), text("echo")}, "stop end "},
		{"flushed when full", []abi.Envelope{text("big")}, "send send send end "},
		{"spawn", []abi.Envelope{text("spawn")}, "spawn send end "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := begun(t)
			if got := ops(f.run(t, c.in...)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestReplyGoesBack(t *testing.T) {
	c := begun(t).run(t, text("echo"))[0]
	if c.ToRef != 7 || c.Correlation != 3 || c.Flags != abi.FlagReply || string(c.Payload) != "\x64echo" {
		t.Errorf("%+v", c)
	}
}

func TestSpawnComputesTheRef(t *testing.T) {
	f := begun(t)
	for k := range uint64(2) {
		cmds := f.run(t, text("spawn"))
		if want := abi.ChildRef(abi.RefKey{42}, 0, k); cmds[0].Ref != want || cmds[1].ToRef != want {
			t.Errorf("%+v, want ref %d", cmds, want)
		}
	}
}

func TestPanicReachesTheHost(t *testing.T) {
	f := begun(t)
	f.enter(1, func() uint32 { e := text("panic"); n, _ := abi.PutEnvelope(inbox[:], &e); return uint32(n) }())
	if !strings.HasPrefix(f.panicked, "oh\n\n") || !strings.Contains(f.panicked, "(*probe).Receive") {
		t.Errorf("%q", f.panicked)
	}
}

func TestAskCallsBackOnce(t *testing.T) {
	f := begun(t)
	c := f.run(t, text("ask"))[0]
	timeout := abi.Envelope{Kind: abi.KindAskTimeout, Correlation: c.Correlation, Payload: []byte{0xf6}}
	f.run(t, timeout)
	if got := ops(f.run(t, timeout)); thisProbe.timedOut != 1 || got != "unhandled end " {
		t.Errorf("%d calls, then %q", thisProbe.timedOut, got)
	}
}

func TestStop(t *testing.T) {
	begun(t).run(t, abi.Envelope{Kind: abi.KindStop, Payload: []byte{0xf6}})
	if !thisProbe.stopped {
		t.Error("Stop was not called")
	}
}

func TestTheLoopDoesNotAllocate(t *testing.T) {
	f := begun(t)
	e := text("echo")
	n, _ := abi.PutEnvelope(inbox[:], &e)
	if a := testing.AllocsPerRun(100, func() { f.enter(1, uint32(n)) }); a != 0 {
		t.Errorf("%v allocations a message", a)
	}
}

func TestRand(t *testing.T) {
	var a, b Rand
	a.Seed([16]byte{1})
	b.Seed([16]byte{2})
	same := 0
	for range 100 {
		if a.IntN(10) == b.IntN(10) {
			same++
		}
		if f := a.Float64(); f < 0 || f >= 1 {
			t.Fatal(f)
		}
	}
	if same > 40 {
		t.Errorf("%d of 100 alike", same)
	}
}

type mother struct{}

func (mother) Receive(ctx *Context, msg *Message) error {
	ctx.Spawn("probe", "", nil)
	if msg.Is("error") {
		return errors.New("no")
	}
	return nil
}

// A turn that ends with fail may be told to resume: its child's ref is free again.
func TestFailGivesTheRefBack(t *testing.T) {
	f := begun(t)
	ctx.current = mother{}
	f.run(t, text("error"))
	if c := f.run(t, text("?"))[0]; c.Ref != abi.ChildRef(abi.RefKey{42}, 0, 0) {
		t.Errorf("%d, want %d", c.Ref, abi.ChildRef(abi.RefKey{42}, 0, 0))
	}
}
