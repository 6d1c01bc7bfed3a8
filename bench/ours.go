package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

//go:embed guests/bench.wasm
var benchWAT []byte

// packet is a message for a guest: CBOR of exactly size bytes, see guests/bench.wat.
func packet(op byte, n, size int) host.Raw {
	b := make([]byte, 0, size)
	switch {
	case size < 258:
		b = append(b, 0x58, byte(size-2))
	case size < 1<<16+3:
		b = binary.BigEndian.AppendUint16(append(b, 0x59), uint16(size-3))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0x5a), uint32(size-5))
	}
	b = binary.BigEndian.AppendUint32(append(b, op), uint32(n))
	return b[:size]
}

// at is where the op of a packet is.
func at(b []byte) int { return map[byte]int{0x58: 2, 0x59: 3, 0x5a: 5}[b[0]] }

// guestFile is a guest that the parent has built.
func guestFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(os.Getenv(guestsVariable), name+".wasm"))
}

// openGuests makes every scenario of one kind of guest.
func openGuests(load func() ([]byte, error)) map[string]func(*env) (*subject, error) {
	in := func(f func(e *env, p *product) (*subject, error)) func(*env) (*subject, error) {
		return func(e *env) (*subject, error) {
			code, err := load()
			if err != nil {
				return nil, err
			}
			p, err := newProductWith(e.ctx, code, 0, func(c host.Config) host.Config {
				// Guests count with all that they might write to: those of standard Go with some ten
				// times what they touch, and 10^4 of them with more than the default bound.
				c = c.WithMemory(0)
				if e.b.name == "memory-asleep" {
					c = c.WithMostAwake(1).WithIdleAfter(time.Millisecond)
				}
				return c
			})
			if err != nil {
				return nil, err
			}
			p.props = host.Guest(p.image, "bench").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
			s, err := f(e, p)
			if s != nil {
				s.close = func() error { return p.close(e.ctx) }
			}
			return s, err
		}
	}
	return map[string]func(*env) (*subject, error){
		"ping-pong":     in(guestPing),
		"struct":        in(guestPing),
		"payload-1k":    in(guestPing),
		"payload-64k":   in(guestPing),
		"payload-1m":    in(guestPing),
		"fan-in":        in(guestFanIn),
		"fan-out":       in(guestFanOut),
		"pairs-1":       in(guestPairs),
		"pairs-2":       in(guestPairs),
		"ring":          in(guestRing),
		"skynet":        in(guestSkynet),
		"ask":           in(guestAsk),
		"spawn-again":   in(guestSpawn),
		"spawn-living":  in(guestSpawn),
		"memory-awake":  in(guestMemory),
		"memory-asleep": in(guestMemory),
		"crash":         in(guestCrash),
		"failure":       in(guestCrash),
		"crash-queue":   in(guestCrashQueue),
	}
}

func without[T any](m map[string]T, names ...string) map[string]T {
	for _, n := range names {
		delete(m, n)
	}
	return m
}

// actors makes some.
func (p *product) actors(n int) ([]host.Ref, error) {
	refs := make([]host.Ref, n)
	for i := range refs {
		var err error
		if refs[i], err = p.sys.Spawn("", p.props); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// waits for so many reports.
func (p *product) waits(n int) error {
	for range n {
		if err := p.wait(); err != nil {
			return err
		}
	}
	return nil
}

func guestPing(e *env, p *product) (*subject, error) {
	refs, err := p.actors(2)
	if err != nil {
		return nil, err
	}
	return &subject{op: func(n int) error {
		m := packet('p', n, e.size())
		if e.b.name == "struct" {
			var err error
			if m, err = cbor.Marshal(sample(n)); err != nil {
				return err
			}
		}
		if err := p.sys.TellFrom(refs[1], refs[0], m); err != nil {
			return err
		}
		return p.wait()
	}}, nil
}

// received is how many messages the actors have got, by their own account.
func (p *product) received(ctx context.Context, refs []host.Ref) (sum int64, err error) {
	for _, r := range refs {
		m, err := p.sys.Ask(ctx, r, packet(opAsk, 0, 32))
		if err != nil {
			return 0, err
		}
		b, err := decodeBytes(m.Payload)
		if err != nil {
			return 0, err
		}
		sum += int64(binary.BigEndian.Uint32(b[1:]))
	}
	return sum, nil
}

func guestFanIn(e *env, p *product) (*subject, error) {
	refs, err := p.actors(1 + fans)
	if err != nil {
		return nil, err
	}
	var total int64
	return &subject{unit: fans * window, op: func(n int) error {
		for _, f := range refs[1:] {
			if err := p.sys.TellFrom(refs[0], f, packet(opStart, n/window/fans, 32)); err != nil {
				return err
			}
		}
		if err := p.waits(fans); err != nil {
			return err
		}
		total += int64(n)
		got, err := p.received(e.ctx, refs[:1])
		return errors.Join(err, arrived(got, int(total)))
	}}, nil
}

func guestFanOut(e *env, p *product) (*subject, error) {
	refs, err := p.actors(1 + fans)
	if err != nil {
		return nil, err
	}
	var total int64
	return &subject{unit: fans * window, op: func(n int) error {
		for _, t := range refs[1:] {
			if err := p.sys.TellFrom(t, refs[0], packet(opStart, n/window/fans, 32)); err != nil {
				return err
			}
		}
		total += int64(n)
		for { // a source that has done what it was told so far reports more than once
			if err := p.wait(); err != nil {
				return err
			}
			if got, err := p.received(e.ctx, refs[1:]); err != nil || got >= total {
				return errors.Join(err, arrived(got, int(total)))
			}
		}
	}}, nil
}

func guestPairs(_ *env, p *product) (*subject, error) {
	refs, err := p.actors(2 * pairs)
	if err != nil {
		return nil, err
	}
	return &subject{unit: pairs, op: func(n int) error {
		for i := 0; i < len(refs); i += 2 {
			if err := p.sys.TellFrom(refs[i], refs[i+1], packet('p', n/pairs-1, 32)); err != nil {
				return err
			}
		}
		return p.waits(pairs)
	}}, nil
}

func guestRing(e *env, p *product) (*subject, error) {
	refs, err := p.actors(e.some(10_000, 100))
	if err != nil {
		return nil, err
	}
	for i, r := range refs {
		if err := p.sys.TellFrom(refs[(i+1)%len(refs)], r, packet(opNext, 0, 32)); err != nil {
			return nil, err
		}
	}
	s := &subject{op: func(n int) error {
		if err := p.sys.Tell(refs[0], packet('r', n, 32)); err != nil {
			return err
		}
		return p.wait()
	}}
	return s, s.op(len(refs)) // all have started when the token is round
}

func guestSkynet(e *env, p *product) (*subject, error) {
	leaves := e.leaves(fewer[e.who])
	props := host.Guest(p.image, "skynet").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}, Spawn: []string{"skynet"}})
	type tree struct{ Leaves, Sum uint64 }
	return &subject{fixed: nodes(leaves), note: leavesNote(leaves), op: func(int) error {
		root, err := p.sys.Spawn("", props)
		if err != nil {
			return err
		}
		if err := p.sys.Tell(root, tree{Leaves: uint64(leaves)}); err != nil {
			return err
		}
		if err := p.wait(); err != nil {
			return err
		}
		var m tree
		if err := (host.Message{Payload: p.last}).Decode(&m); err != nil {
			return err
		}
		return checkSkynet(m.Sum, leaves)
	}}, nil
}

func guestAsk(e *env, p *product) (*subject, error) {
	refs, err := p.actors(1)
	if err != nil {
		return nil, err
	}
	ctx, m := e.ctx, packet(opAsk, 1, 32)
	return &subject{op: func(n int) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for range n {
			if _, err := p.sys.Ask(ctx, refs[0], m); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func guestSpawn(e *env, p *product) (*subject, error) {
	keep := e.b.name == "spawn-living"
	var last host.Ref
	m := packet(opHandled, 0, 32)
	s := &subject{op: func(n int) error {
		return p.drive(n, func(ctx *host.Context) error {
			if !keep {
				ctx.Stop(last)
			}
			ref, err := ctx.Spawn("", p.props)
			if err != nil {
				return err
			}
			last = ref
			return ctx.Tell(ref, m)
		})
	}}
	if keep {
		if err := s.op(100); err != nil {
			return nil, err
		}
		s.fixed = e.some(10_000, 100)
	}
	return s, nil
}

func guestMemory(e *env, p *product) (*subject, error) {
	many := e.some(10_000, 200)
	spawn, err := guestSpawn(&env{b: benchmarkOf("spawn-living"), quick: e.quick}, p)
	if err != nil {
		return nil, err
	}
	return &subject{value: func() (float64, error) {
		return residentEach(many, func(n int) error {
			if err := spawn.op(n); err != nil || e.b.name != "memory-asleep" {
				return err
			}
			for end := time.Now().Add(patience); p.sys.View().Stats().Asleep < n; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					return fmt.Errorf("only %d of %d are asleep", p.sys.View().Stats().Asleep, n)
				}
			}
			time.Sleep(100 * time.Millisecond) // what was given back is given to the system
			return nil
		})
	}}, nil
}

func guestCrash(e *env, p *product) (*subject, error) {
	refs, err := p.actors(1)
	if err != nil {
		return nil, err
	}
	poison, next := packet(opCrash, 0, 32), packet(opHandled, 0, 32)
	if e.b.name == "failure" {
		poison = packet(opFail, 0, 32)
	}
	return &subject{op: func(n int) error {
		before := p.sys.View().Stats().Crashes
		err := p.drive(n, func(ctx *host.Context) error {
			return errors.Join(ctx.Tell(refs[0], poison), ctx.Tell(refs[0], next))
		})
		return errors.Join(err, arrived(int64(p.sys.View().Stats().Crashes-before), n))
	}}, nil
}

func guestCrashQueue(_ *env, p *product) (*subject, error) {
	refs, err := p.actors(1)
	if err != nil {
		return nil, err
	}
	poison, next := packet(opCrash, 0, 32), packet(opHandled, 0, 32)
	return &subject{fixed: crashes, op: func(n int) error {
		before := p.sys.View().Stats().Crashes
		err := p.drive(1, func(ctx *host.Context) error {
			for range n {
				if err := ctx.Tell(refs[0], poison); err != nil {
					return err
				}
			}
			return ctx.Tell(refs[0], next)
		})
		return errors.Join(err, arrived(int64(p.sys.View().Stats().Crashes-before), n))
	}}, nil
}

// nativeWorld is our system with actors in Go. Messages are bytes, as for guests.
type nativeWorld struct {
	ctx context.Context
	sys *host.System
}

func openNative(e *env) (world, error) {
	sys, err := host.New(host.NewConfig("bench").WithGuardian(supervision.Default().WithSilence(true)))
	return &nativeWorld{e.ctx, sys}, err
}

// nativeActor is a behaviour and its turn.
type nativeActor struct {
	b    behaviour
	c    *host.Context
	m    msg
	six  six
	from host.Ref
	out  scratch
}

// scratch is where a small message is written: what is sent is copied. It is made an interface
// once; a pointer, which the peers send, is one without an allocation.
type scratch struct {
	raw   host.Raw
	boxed any
}

func (a *nativeActor) Receive(c *host.Context, m host.Message) error {
	if m.Kind != abi.KindMessage {
		return nil
	}
	a.c, a.from = c, m.Sender
	switch p := m.Payload; {
	case p[0]>>5 == 5:
		a.six = six{}
		if err := m.Decode(&a.six); err != nil {
			return err
		}
		a.b.receive(a, &a.six)
	case len(p) == 32:
		a.m = msg{op: uint32(p[2]), n: binary.BigEndian.Uint32(p[3:]), v: binary.BigEndian.Uint64(p[7:])}
		a.b.receive(a, &a.m)
	default:
		i := at(p)
		a.b.receive(a, &big{binary.BigEndian.Uint32(p[i+1:]), p})
	}
	return nil
}

// encode uses scratch for small messages.
func encode(s *scratch, m any) any {
	switch m := m.(type) {
	case *msg:
		if s.raw == nil {
			s.raw = packet(0, 0, 32)
			s.boxed = s.raw
		}
		s.raw[2] = byte(m.op)
		binary.BigEndian.PutUint32(s.raw[3:], m.n)
		binary.BigEndian.PutUint64(s.raw[7:], m.v)
		return s.boxed
	case *big:
		b := m.body
		if b[0] == 0 {
			b = packet('p', 0, len(b))
		}
		binary.BigEndian.PutUint32(b[at(b)+1:], m.n)
		return host.Raw(b)
	}
	return m
}

func (a *nativeActor) self() addr    { return a.c.Self() }
func (a *nativeActor) sender() addr  { return &a.from } // boxing a ref anew would cost an allocation that an embedder's actor does not have
func (a *nativeActor) keep() addr    { return a.from }
func (a *nativeActor) respond(m any) { _ = a.c.Reply(encode(&a.out, m)) }
func (a *nativeActor) stop()         { a.c.Stop(a.c.Self()) }
func (a *nativeActor) send(to addr, m any) {
	if err := a.c.Tell(nativeRef(to), encode(&a.out, m)); err != nil {
		panic(err)
	}
}

func nativeRef(a addr) host.Ref {
	switch r := a.(type) {
	case *host.Ref:
		return *r
	case host.Ref:
		return r
	}
	return host.Ref{}
}

// nativeLimits let the driver have its 10^4 children.
var nativeLimits = host.Limits{Children: 1 << 21}

func (a *nativeActor) spawn(b behaviour) addr {
	ref, err := a.c.Spawn("", nativeProps(func() behaviour { return b }))
	if err != nil {
		panic(err)
	}
	return ref
}

func nativeProps(make func() behaviour) host.Props {
	return host.Native(func() host.Actor { return &nativeActor{b: make()} }).WithLimits(nativeLimits)
}

func (w *nativeWorld) spawn(b behaviour) addr { return w.crasher(func() behaviour { return b }) }

func (w *nativeWorld) crasher(make func() behaviour) addr {
	ref, err := w.sys.Spawn("", nativeProps(make))
	if err != nil {
		panic(err)
	}
	return ref
}

func (w *nativeWorld) tell(from, to addr, m any) {
	var out scratch
	if err := w.sys.TellFrom(nativeRef(from), nativeRef(to), encode(&out, m)); err != nil {
		panic(err)
	}
}

func (w *nativeWorld) ask(to addr, m any) error {
	var out scratch
	_, err := w.sys.Ask(w.ctx, nativeRef(to), encode(&out, m))
	return err
}

func (w *nativeWorld) close() error { return w.sys.Close(w.ctx) }

var (
	native = &contestant{
		name: "native", title: "ours: native", version: module("github.com/wasmactors/wasmactors"),
		opens: openWorld(openNative),
	}
	oursWAT = &contestant{
		name: "wat", title: "ours: WAT guest", version: native.version,
		opens: without(openGuests(func() ([]byte, error) { return benchWAT, nil }), "struct", "skynet", "failure", "payload-64k", "payload-1m"),
		lacks: map[string]string{"payload-64k": "its rings have 16 KiB", "payload-1m": "its rings have 16 KiB", "": "not written by hand"},
	}
	oursGo = &contestant{
		name: "go", title: "ours: Go SDK, standard Go", version: native.version,
		opens: openGuests(func() ([]byte, error) { return guestFile("go") }),
	}
	oursTinyGo = &contestant{
		name: "tinygo", title: "ours: Go SDK, TinyGo", version: native.version,
		opens:  openGuests(func() ([]byte, error) { return guestFile("tinygo") }),
		absent: func() string { return lacksProgram("tinygo") },
	}
)

// decodeBytes reads a byte string.
func decodeBytes(b []byte) (v []byte, err error) { return v, cbor.Unmarshal(b, &v) }
