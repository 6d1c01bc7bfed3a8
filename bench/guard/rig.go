package guard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/bench/internal/six"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/durable"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/tools/instrcount"
)

// rig is a system in which acts are done.
type rig struct {
	sys     *host.System
	referee host.Ref
	props   host.Props // of the actors
	warmUp  int        // acts before anything is counted
	lengths [2]int     // of the windows, in acts
	ask     func() error
	act     func(*host.Context) error          // one; the referee hears of its end
	begin   func(c *host.Context, n int) error // n of them; the referee hears of the last one's end

	left  int                         // acts to do before the next step
	steps []func(*host.Context) error // of the referee, one after another
	done  chan struct{}
	close func()
}

// What an actor does with a message says the first byte in it; a number follows. The guests in
// bench/guests understand them, too.
const (
	opPing   = 'p' // back to the sender less one; to the referee if it is 0
	opAnswer = 'q'
	opCrash  = 'x'
	opReport = 'h' // to the referee

	opAt, numberAt = 2, 3 // where they are
)

func packet(op byte, n int) host.Raw {
	b := make(host.Raw, 32)
	b[0], b[1], b[opAt] = 0x58, 30, op
	binary.BigEndian.PutUint32(b[numberAt:], uint32(n))
	return b
}

// kib is a packet of 1 KiB. What it says begins a byte later.
func kib(n int) host.Raw {
	b := make(host.Raw, 1<<10)
	b[0], b[1], b[2], b[opAt+1] = 0x59, 0x03, 0xfd, opPing
	binary.BigEndian.PutUint32(b[numberAt+1:], uint32(n))
	return b
}

// Go keeps a stack for about every 512 KiB that are allocated, which takes 10,000 instructions: a window of some
// spawns has one now and then.
func init() { goruntime.MemProfileRate = 0 }

// stopped is a clock that stands still, though reading it costs what it costs. By the machine's clock a copy that is
// counted instruction by instruction takes more than a millisecond; then the run lets others have its thread, and the
// count of that thread never ends.
type stopped struct {
	host.Clock
	at time.Time
}

func (c stopped) Now() time.Time {
	c.Clock.Now()
	return c.at
}

// ticking is a microsecond later at each reading. By the machine's clock all code is slow that is counted instruction by
// instruction, and by one that stands still a guest lets others run at each of its looks.
type ticking struct {
	host.Clock
	at atomic.Int64
}

func (c *ticking) Now() time.Time {
	c.Clock.Now()
	return time.Unix(0, c.at.Add(1000))
}

func open(ctx context.Context, c Case) (_ *rig, err error) {
	cfg := host.NewConfig("guard").WithWorkers(1).WithGuardian(supervision.Default().WithSilence(true))
	if c.Act == Stepped || c.Act == Durable {
		cfg = cfg.WithManual()
	}
	if c.Act == Ask || c.Act == AskDue {
		cfg = cfg.WithManual().WithAskTimeout(24 * time.Hour)
	}
	if c.Act == Spawn {
		cfg = cfg.WithClock(stopped{host.RealClock(), time.Now()})
	}
	var box *blackbox.Recorder
	if c.Act == Kept {
		dir, err := os.MkdirTemp("", "guard-*") // nothing is written there: nothing fails
		if err != nil {
			return nil, err
		}
		defer os.Remove(dir)
		if box, err = blackbox.Open(blackbox.Config{Dir: dir}); err != nil {
			return nil, err
		}
		cfg = cfg.WithBlackBox(box)
	}
	end := func() {}
	if c.Act == Taped || c.Act == Beside || c.Act == Stepped || c.Act == Durable { // what a record of a turn has depends on the time since the one before
		clock := &ticking{Clock: host.RealClock()}
		clock.at.Store(time.Now().UnixNano())
		cfg = cfg.WithClock(clock)
	}
	var sys *host.System
	switch c.Act {
	case Beside, Durable:
		sys, end, err = stored(cfg)
	case Taped:
		if cfg, end, err = taped(cfg); err != nil {
			return nil, err
		}
		fallthrough
	default:
		sys, err = host.New(cfg)
	}
	if err != nil {
		end()
		return nil, err
	}
	r := &rig{sys: sys, done: make(chan struct{}, 1), warmUp: 20_000, lengths: c.lengths(), close: func() {
		_ = sys.Close(ctx)
		end()
		if box != nil {
			box.Close()
		}
	}}
	r.referee, err = sys.Spawn("referee", host.Func(func(c *host.Context, _ host.Message) error {
		if r.left > 0 {
			r.left--
			return r.act(c)
		}
		if len(r.steps) == 0 {
			r.done <- struct{}{}
			return nil
		}
		step := r.steps[0]
		r.steps = r.steps[1:]
		return step(c)
	}))
	if err != nil {
		return nil, err
	}
	if c.Kind != Native && c.Kind != Routed {
		if r.props, err = guest(ctx, c.Kind); err != nil {
			return nil, err
		}
	} else {
		r.props = r.native(nil)
		if c.Act == Struct {
			r.props = host.Func(r.structs)
		}
	}
	r.begin = func(c *host.Context, n int) error {
		r.left = n - 1
		return r.act(c)
	}
	switch c.Act {
	case Message, Kept, Taped, Beside:
		err = r.messages(c.Kind == Routed)
	case Stepped, Durable:
		err = r.steppedMessages(c.Act == Durable)
	case Struct:
		err = r.structMessages()
	case Kib:
		err = r.kibs(c.Kind)
	case Ask, AskDue:
		err = r.asks(ctx, c.Act == AskDue)
	case Crash:
		err = r.crashes()
	case Spawn:
		r.spawns()
	case Stages:
		r.stages()
	case Element:
		err = r.elements()
	default:
		err = fmt.Errorf("no act %q", c.Act)
	}
	return r, err
}

// taped has a system recorded, to a file that is removed by end.
func taped(cfg host.Config) (_ host.Config, end func(), err error) {
	dir, err := os.MkdirTemp("", "guard-*")
	if err != nil {
		return cfg, nil, err
	}
	tape, err := recorder.Open(recorder.Config{Path: filepath.Join(dir, "run.wrec")})
	if err != nil {
		return cfg, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return cfg.WithRecording(tape), func() {
		_ = tape.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// stored is a system with a store, in a folder that is removed by end.
func stored(cfg host.Config) (_ *host.System, end func(), err error) {
	end = func() {}
	dir, err := os.MkdirTemp("", "guard-*")
	if err != nil {
		return nil, end, err
	}
	end = func() { _ = os.RemoveAll(dir) }
	store, err := durable.Open(durable.Options{Dir: dir, Recovery: time.Hour}) // no checkpoint is due
	if err != nil {
		return nil, end, err
	}
	end = func() {
		_ = store.Close()
		_ = os.RemoveAll(dir)
	}
	x, err := store.Prepare(cfg, durable.Props{})
	if err != nil {
		return nil, end, err
	}
	if _, err := x.Recover(); err != nil {
		x.Abandon()
		return nil, end, errors.Join(err, x.System().Close(context.Background()))
	}
	x.Release()
	return x.System(), end, nil
}

// guest is an actor of bench/guests.
func guest(ctx context.Context, file string) (p host.Props, err error) {
	code, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	engine, err := runtime.New(ctx, runtime.NewConfig().WithClock(&ticking{Clock: host.RealClock()}))
	if err != nil {
		return p, err
	}
	image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "guard"})
	if err != nil {
		return p, err
	}
	return host.Guest(image, "bench").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}}), nil
}

// native is an actor in Go that does the same. It sends back to where to says, if that is not nil.
func (r *rig) native(to func(sender host.Ref) host.Ref) host.Props {
	answer := packet(opPing, 0)
	var boxed any = answer // once, as an actor can that is in a hurry
	return host.Func(func(c *host.Context, m host.Message) error {
		switch m.Payload[opAt] {
		case opAnswer:
			return c.Reply(boxed)
		case opCrash:
			panic("crash")
		case opReport:
			return c.Tell(r.referee, boxed)
		}
		n := binary.BigEndian.Uint32(m.Payload[numberAt:])
		if n == 0 {
			return c.Tell(r.referee, boxed)
		}
		binary.BigEndian.PutUint32(answer[numberAt:], n-1)
		back := m.Sender
		if to != nil {
			back = to(back)
		}
		return c.Tell(back, boxed)
	})
}

// messages go to and fro between two actors.
func (r *rig) messages(routed bool) (err error) {
	var pair, routers [2]host.Ref
	if routed {
		r.props = r.native(func(sender host.Ref) host.Ref {
			if sender.UID() == pair[1].UID() {
				return routers[1]
			}
			return routers[0]
		})
	}
	for i := range pair {
		if pair[i], err = r.sys.Spawn("", r.props); err != nil {
			return err
		}
	}
	for i, ref := range pair {
		if !routed {
			break
		}
		if routers[i], err = r.sys.Spawn("", router.Group(router.RoundRobin, ref.Path()).Props()); err != nil {
			return err
		}
	}
	m := packet(opPing, 0)
	var boxed any = m
	r.begin = func(_ *host.Context, n int) error {
		binary.BigEndian.PutUint32(m[numberAt:], uint32(n))
		return r.sys.TellFrom(pair[1], pair[0], boxed)
	}
	return nil
}

// steppedMessages go to and fro between two actors, without end: each step is a turn. What is counted may not wait for another
// thread, as a durable actor's message to the referee would.
func (r *rig) steppedMessages(durable bool) (err error) {
	props := r.props
	if durable {
		props = props.WithDurable()
		r.warmUp = 2000 // all that is counted stays below 8 MiB of records: else a checkpoint is due, and it steps the system, too
	}
	var pair [2]host.Ref
	for i, name := range []string{"a", "b"} {
		if pair[i], err = r.sys.Spawn(name, props); err != nil {
			return err
		}
	}
	if err := r.sys.TellFrom(pair[1], pair[0], packet(opPing, math.MaxInt32)); err != nil {
		return err
	}
	r.ask = func() error {
		if !r.sys.Step() {
			return errors.New("no message is under way")
		}
		return nil
	}
	return nil
}

// structs is an actor that sends a struct back.
func (r *rig) structs(c *host.Context, m host.Message) error {
	var s six.Six
	if err := m.Decode(&s); err != nil {
		return err
	}
	if s.ID == 0 {
		return c.Tell(r.referee, packet(opReport, 0))
	}
	return c.Tell(m.Sender, &six.Six{ID: s.ID - 1, Name: s.Name, Amount: s.Amount, Price: s.Price, Active: s.Active, Tags: s.Tags})
}

// structMessages go to and fro between two actors.
func (r *rig) structMessages() (err error) {
	var pair [2]host.Ref
	for i := range pair {
		if pair[i], err = r.sys.Spawn("", r.props); err != nil {
			return err
		}
	}
	r.begin = func(_ *host.Context, n int) error { return r.sys.TellFrom(pair[1], pair[0], six.Sample(n)) }
	return nil
}

// kibs are messages of 1 KiB that go to and fro.
func (r *rig) kibs(kind string) (err error) {
	if kind == Native {
		answer := kib(0)
		var boxed any = answer // once, see native
		r.props = host.Func(func(c *host.Context, m host.Message) error {
			n := binary.BigEndian.Uint32(m.Payload[numberAt+1:])
			if n == 0 {
				return c.Tell(r.referee, boxed)
			}
			binary.BigEndian.PutUint32(answer[numberAt+1:], n-1)
			return c.Tell(m.Sender, boxed)
		})
	}
	var pair [2]host.Ref
	for i := range pair {
		if pair[i], err = r.sys.Spawn("", r.props); err != nil {
			return err
		}
	}
	m := kib(0)
	var boxed any = m
	r.begin = func(_ *host.Context, n int) error {
		binary.BigEndian.PutUint32(m[numberAt+1:], uint32(n))
		return r.sys.TellFrom(pair[1], pair[0], boxed)
	}
	return nil
}

// asks come from the goroutine of the caller. The actor runs on another one, as on a worker, but without
// what a dispatcher does once in a while: a single step takes so long that it would do nothing else.
func (r *rig) asks(ctx context.Context, due bool) error {
	var stop atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for !stop.Load() {
			r.sys.RunUntilIdle(100)
			goruntime.Gosched()
		}
	}()
	end := r.close
	r.close = func() {
		stop.Store(true)
		<-stopped
		end()
	}
	ref, err := r.sys.Spawn("", r.props)
	if err != nil {
		return err
	}
	if due {
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		ctx = bounded
		end := r.close
		r.close = func() {
			cancel()
			end()
		}
	}
	var boxed any = packet(opAnswer, 1)
	r.ask = func() error {
		_, err := r.sys.Ask(ctx, ref, boxed)
		return err
	}
	return nil
}

// crashes are of one actor.
func (r *rig) crashes() error {
	ref, err := r.sys.Spawn("", r.props)
	if err != nil {
		return err
	}
	r.warmUp = 1000
	var poison, next any = packet(opCrash, 0), packet(opReport, 0)
	r.act = func(c *host.Context) error { return errors.Join(c.Tell(ref, poison), c.Tell(ref, next)) }
	return nil
}

// spawns are the referee's.
func (r *rig) spawns() {
	r.warmUp = 1000
	var last host.Ref
	var first any = packet(opReport, 0)
	r.act = func(c *host.Context) (err error) {
		c.Stop(last)
		if last, err = c.Spawn("", r.props); err != nil {
			return err
		}
		return c.Tell(last, first)
	}
}

// stages are those of a stream that the referee runs in its turn.
func (r *rig) stages() {
	var next any = packet(opReport, 0)
	r.begin = func(c *host.Context, n int) error {
		if err := Pipeline(n, 10); err != nil {
			return err
		}
		return c.Tell(r.referee, next)
	}
}

// Pipeline runs n elements through a number of stages.
func Pipeline(n, stages int) error {
	src := flow.Range(1, n)
	for range stages {
		src = flow.Map(src, func(n int) int { return n + 1 })
	}
	left := n
	g := flow.To(src, flow.ForEach(func(int) error { left--; return nil })).Start(nil, time.Time{})
	for g.Run(time.Time{}, 1<<20) {
	}
	if over, err := g.Over(); !over || err != nil || left != 0 {
		return fmt.Errorf("the stream has ended: %v, %d elements are missing: %w", over, left, err)
	}
	return nil
}

// elements go from one actor to a new one in each window.
func (r *rig) elements() error {
	ints := hostflow.CBOR[int]()
	giver, err := r.sys.Spawn("", hostflow.Props(flow.Serve("x", flow.Repeat(1), ints)))
	if err != nil {
		return err
	}
	var next any = packet(opReport, 0)
	r.begin = func(c *host.Context, n int) error {
		end := flow.Drain(func(g *flow.Graph) (func(int) error, func(error)) {
			return nil, func(err error) {
				if err == nil {
					_ = hostflow.ContextOf(g).Tell(r.referee, next)
				}
			}
		})
		_, err := c.Spawn("", hostflow.Props(flow.To(flow.Take(flow.TakeFrom(giver.UID(), "x", ints, flow.Window{}), n), end)))
		return err
	}
	return nil
}

// run does n acts, then the steps.
func (r *rig) run(n int, steps ...func(*host.Context) error) error {
	if r.ask != nil {
		return r.asking(n)
	}
	r.steps = append([]func(*host.Context) error{func(c *host.Context) error { return r.begin(c, n) }}, steps...)
	if err := r.sys.Tell(r.referee, packet(opReport, 0)); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-time.After(5 * time.Minute):
		return errors.New("the actors have got stuck")
	}
}

func (r *rig) asking(n int) error {
	for range n {
		if err := r.ask(); err != nil {
			return err
		}
	}
	return nil
}

// alone is how long acts are done before the first window, at least. For a while after a message from outside, as
// the first one is, a busy worker lets other goroutines run. In a window time passes a thousand times as fast as acts
// are done: a ticker is due again whenever it has been handled.
const alone = 100 * time.Millisecond

// windows does what is counted.
func (r *rig) windows() error {
	if r.ask != nil {
		for _, n := range r.lengths {
			instrcount.Begin()
			err := r.asking(n)
			instrcount.End()
			if err != nil {
				return err
			}
		}
		return nil
	}
	began := time.Now()
	var wait func(c *host.Context) error
	wait = func(c *host.Context) error {
		if time.Since(began) > alone {
			return r.begin(c, 1)
		}
		r.steps = append([]func(*host.Context) error{wait}, r.steps...)
		return r.begin(c, r.warmUp)
	}
	steps := []func(*host.Context) error{wait}
	for i, n := range r.lengths {
		steps = append(steps, func(c *host.Context) error {
			if i > 0 {
				instrcount.End()
			}
			instrcount.Begin()
			return r.begin(c, n)
		})
	}
	return r.run(r.warmUp, append(steps, func(*host.Context) error {
		instrcount.End()
		r.done <- struct{}{}
		return nil
	})...)
}
