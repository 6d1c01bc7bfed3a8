//go:build !wasip1

package actor

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// commands are those of the outbox, with what was flushed before.
func commands(t testing.TB, f *fake) []abi.Command {
	t.Helper()
	var cmds []abi.Command
	for data := append(append([]byte(nil), f.flushed...), outbox[:ctx.written]...); len(data) > 0; {
		var c abi.Command
		n, err := abi.DecodeCommand(&c, data)
		if err != nil {
			t.Fatalf("%v in % x", err, data[:min(len(data), 40)])
		}
		cmds = append(cmds, c)
		data = data[n:]
	}
	return cmds
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// The path of the usual message writes what package abi writes, wherever the outbox stands.
func TestSendIsWhatABIWrites(t *testing.T) {
	f := begun(t)
	lengths := []int{0, 23, 24, 31, 255, 256, 257, 1000, 65_000, OutboxSize - usualHead - 10}
	for n := range 40 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for _, to := range []Ref{1, 23, 24, 1 << 16, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
			for _, correlation := range []uint64{0, 23, 24, 1 << 40} {
				if n > 300 && (to != 1<<32 || correlation != 23) {
					continue
				}
				for _, at := range []int{0, 1, 8, 63, OutboxSize - 300, OutboxSize - usualHead, OutboxSize - 40, OutboxSize - 1, OutboxSize} {
					payload := pattern(n)
					for i, v := range []Encoder{Raw(payload), Func(func(w *abi.Writer) { w.Raw(payload) }), Bytes(payload)} {
						f.flushed, ctx.written = nil, at
						for j := range at {
							outbox[j] = 0xf6
						}
						if i == 2 && n > OutboxSize-usualHead-20 {
							continue
						}
						_ = ctx.Answer(to, correlation, v)
						want := payload
						if i == 2 {
							w := abi.NewWriter(nil)
							w.ByteString(payload)
							want = w.Bytes()
						} else if n == 0 {
							want = []byte{0xf6}
						}
						got := append(append([]byte(nil), f.flushed...), outbox[:ctx.written]...)[at:]
						if wanted := abi.AppendSend(nil, to, "", correlation, abi.FlagReply, nil, want); !bytes.Equal(got, wanted) {
							t.Fatalf("%d bytes of %T to %#x, correlation %d, at %d: % x, want % x", n, v, to, correlation, at, got[:min(60, len(got))], wanted[:min(60, len(wanted))])
						}
						if ctx.written > OutboxSize {
							t.Fatalf("%d bytes in the outbox", ctx.written)
						}
					}
				}
			}
		}
	}
}

// The path of the usual envelope reads what package abi reads.
func TestReadIsWhatABIReads(t *testing.T) {
	begun(t)
	headers := abi.AppendHeader(nil, "k", "v")
	for _, at := range []int{0, 1, 7, 100} {
		for _, when := range []int64{0, -1, 5, 1 << 31, 1 << 32, 1_700_000_000_000_000_000} {
			for _, sender := range []Ref{0, 5, 1 << 31, 1 << 32, 1<<64 - 1} {
				for _, correlation := range []uint64{0, 23, 24, 255, 1 << 60} {
					for _, n := range []int{0, 1, 23, 24, 255, 256, 65_000} {
						for _, e := range []abi.Envelope{
							{Kind: abi.KindMessage}, {Kind: abi.KindReply}, {Kind: abi.KindChildFailed}, {Headers: headers}, {Sequence: 5}, {Sequence: 5, Position: 7},
						} {
							e.Time, e.Sender, e.Correlation, e.Payload = when, sender, correlation, pattern(n)
							size, ok := abi.PutEnvelope(inbox[at:], &e)
							if !ok {
								t.Fatal("too large")
							}
							var m Message
							if end := m.read(at, at+size); end != at+size {
								t.Fatalf("%+v ends at %d, not at %d", e, end, at+size)
							}
							ctx.msg = m
							if m.Kind() != e.Kind || m.Sender() != e.Sender || m.Correlation() != e.Correlation || !bytes.Equal(m.Payload(), e.Payload) ||
								ctx.Now().UnixNano() != e.Time || (m.Header("k") == "v") != (e.Headers != nil) {
								t.Fatalf("%+v is read as %+v", e, m)
							}
						}
					}
				}
			}
		}
	}
}

type six struct {
	ID       uint64
	From, To string
	Cents    int64
	Final    bool
	Rate     float64
}

func (m *six) MarshalCBOR(w *abi.Writer) {
	w.Map(6)
	w.Text("id")
	w.Uint(m.ID)
	w.Text("from")
	w.Text(m.From)
	w.Text("to")
	w.Text(m.To)
	w.Text("cents")
	w.Int(m.Cents)
	w.Text("final")
	w.Bool(m.Final)
	w.Text("rate")
	w.Float(m.Rate)
}

// Nothing that is sent is allocated, however it is written down.
func TestSendingDoesNotAllocate(t *testing.T) {
	begun(t)
	raw := []byte("\x45hello")
	name := "a name"
	then := func(*Context, *Message) error { return nil }
	named := func(*Context, Ref, error) error { return nil }
	for what, send := range map[string]func(n int){
		"Raw":    func(int) { ctx.Tell(9<<40, Raw(raw)) },
		"Text":   func(int) { ctx.Tell(9<<40, Text(name)) },
		"Int":    func(n int) { ctx.Tell(9<<40, Int(n)) },
		"Uint":   func(n int) { _ = ctx.Answer(9<<40, 5, Uint(n)) },
		"Null":   func(int) { ctx.Tell(9<<40, Null) },
		"nil":    func(int) { ctx.Tell(9<<40, nil) },
		"struct": func(n int) { ctx.Tell(9<<40, &six{ID: uint64(n), From: name, To: name, Cents: 5, Rate: 0.5}) },
		"Reply":  func(n int) { _ = ctx.Reply(Int(n)) },
		"an ask": func(n int) { ctx.Ask(9<<40, Int(n), time.Second, then); ctx.asks.take(ctx.asks.last) },
		"a name": func(int) {
			ctx.Identify("/user/a", time.Second, named)
			ctx.asks.take(ctx.asks.last)
			ctx.asks.takeName(ctx.asks.last)
		},
		"a timer": func(n int) { ctx.After(5, time.Second, Int(n)) },
		"a path":  func(n int) { ctx.TellPath("/user/a", Int(n)) },
		"headers": func(n int) { ctx.TellWith(9<<40, Int(n), Header{"priority", "0"}, Header{"a", "b"}) },
	} {
		n := 1000
		if a := testing.AllocsPerRun(100, func() { n++; ctx.written = 0; send(n) }); a != 0 {
			t.Errorf("%s: %v allocations", what, a)
		}
	}
}

// A value that is sent may lie on the stack, and the stack may grow while it is written.
type deep struct{ n, depth int }

func (d *deep) MarshalCBOR(w *abi.Writer) { w.Int(int64(sum(d.depth) + d.n)) }

//go:noinline
func sum(depth int) int {
	var room [256]byte
	if depth == 0 {
		return int(room[depth])
	}
	return sum(depth-1) + int(room[depth%256])
}

func TestSendingFromTheStack(t *testing.T) {
	f := begun(t)
	done := make(chan []abi.Command)
	go func() { // with a small stack
		ctx.written = 0
		for i := range 20 {
			ctx.Tell(9, &deep{n: i, depth: 1 << (i / 2)})
		}
		done <- commands(t, f)
	}()
	for i, c := range <-done {
		if v := abi.NewReader(c.Payload).Int(); v != int64(i) {
			t.Errorf("%d was sent as %d", i, v)
		}
	}
}

func TestAsksTable(t *testing.T) {
	var a asks
	called := map[uint64]int{}
	open := map[uint64]bool{}
	next := uint64(1)
	for i := range 20_000 {
		switch {
		case i%3 != 2:
			c := a.add(func(*Context, *Message) error { return nil })
			if c < next || open[c] {
				t.Fatalf("correlation %d, after %d", c, next-1)
			}
			next = c + 1
			open[c] = true
		default:
			for c := range open {
				if a.take(c) == nil || a.take(c) != nil {
					t.Fatalf("the question %d is not there once", c)
				}
				called[c]++
				delete(open, c)
				break
			}
		}
	}
	for c := range open {
		if a.take(c) == nil {
			t.Errorf("the question %d is lost", c)
		}
	}
	if a.open != 0 || a.take(0) != nil || a.take(next+5) != nil {
		t.Errorf("%d are left", a.open)
	}
}

type careless struct{ call func(*Context) }

func (c *careless) Receive(ctx *Context, _ *Message) error {
	ctx.Spawn("probe", "", nil)
	c.call(ctx)
	ctx.Tell(5, Int(1))
	return errors.New("something else")
}

// What is not a name is the host's to refuse: the turn does not fail.
func TestSpawnOfBadNames(t *testing.T) {
	f := begun(t)
	for name, want := range map[string]string{"a b": "a b", "\xff": `"\xff"`, string(pattern(70_000)): ""} {
		ctx.current = &careless{func(c *Context) { c.Spawn("no type", name, nil) }}
		cmds := f.run(t, text("go"))
		if cmds[1].Op != abi.OpSpawn || want != "" && string(cmds[1].Name) != want || abi.ValidName(cmds[1].Name) {
			t.Errorf("%.20q: %v %.20q", name, cmds[1].Op, cmds[1].Name)
		}
	}
}

// Nobody can be sent anything: the turn fails and says so.
func TestMisuse(t *testing.T) {
	f := begun(t)
	for want, call := range map[string]func(*Context){
		"actor: a message to ref 0, which names no actor":                    func(c *Context) { c.Tell(0, Int(1)) },
		"actor: Ask to ref 0, which names no actor":                          func(c *Context) { c.Ask(0, Int(1), time.Second, nil) },
		"actor: Forward to ref 0, which names no actor":                      func(c *Context) { c.Forward(0) },
		"actor: Watch to ref 0, which names no actor":                        func(c *Context) { c.Watch(0) },
		"actor: Unwatch to ref 0, which names no actor":                      func(c *Context) { c.Unwatch(0) },
		"actor: Stop to ref 0, which names no actor":                         func(c *Context) { c.Stop(0) },
		"actor: TellPath to an empty path":                                   func(c *Context) { c.TellPath("", Int(1)); c.Tell(0, nil) },
		"actor: AskPath to an empty path":                                    func(c *Context) { c.AskPath("", Int(1), time.Second, nil) },
		"actor: Identify to an empty path":                                   func(c *Context) { c.Identify("", time.Second, nil) },
		"actor: IdentifyPath to an empty path":                               func(c *Context) { c.IdentifyPath("", time.Second, nil) },
		"actor: Identify of a path with patterns: IdentifyPath is for those": func(c *Context) { c.Identify("/user/*", time.Second, nil) },
		"actor: ForwardPath to an empty path":                                func(c *Context) { c.ForwardPath("") },
		"actor: WatchPath to an empty path":                                  func(c *Context) { c.WatchPath("") },
		"no more":                                                            func(c *Context) { c.Fail(nil); c.Fail(errors.New("no more")); c.Fail(errors.New("later")) },
	} {
		ctx.current = &careless{call}
		spawned := ctx.start.Spawned
		cmds := f.run(t, text("go"), text("go"))
		fail := cmds[len(cmds)-2]
		if fail.Op != abi.OpFail || string(fail.Reason) != want || ctx.start.Spawned != spawned || f.begun != 1 {
			t.Errorf("%s: %v %q", want, fail.Op, fail.Reason)
		}
	}
	ctx.msg.sender = 0
	ctx.written = 0
	if err := ctx.Reply(Int(1)); err != nil || ctx.written != 0 {
		t.Error("an answer to nobody")
	}
}
