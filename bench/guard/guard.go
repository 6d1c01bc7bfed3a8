// Package guard counts what a message costs: instructions, of host and guest, and
// allocations. Limits stand in limits.json; the test of this package holds every
// change against them.
package guard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/router"
	"github.com/wasmactors/wasmactors/internal/instrcount"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// Native is the kind of an actor in Go, Routed one whose messages go through a round-robin
// router each; every other kind is a guest's file.
const (
	Native = "native"
	Routed = "routed"
)

// Counts are those of one message of a ping-pong: 32 bytes to an actor that sends
// them back, on one worker.
type Counts struct {
	Instructions float64 // of the host and the guest
	Guest        float64 // part of them in compiled wasm
	Allocations  float64
	Functions    []instrcount.Function // of the window with the most messages
	Messages     int                   // of that window
}

// Windows are counted at two lengths; what a message costs is the slope, so that the beginning
// and the end of a window do not count. The lengths are 16 apart, for some work is done once in 16
// turns (a look at the clock) or 8. Each step is a switch between two processes: a minute for two
// pairs of windows.
var lengths = [2]int{4, 20}

// pingPong is a system with two actors that talk.
type pingPong struct {
	sys   *host.System
	pair  [2]host.Ref
	done  chan struct{}
	steps []func(*host.Context)
	close func()
}

// packet is what the guests in bench/guests understand: op and number in 32 bytes.
func packet(n int) host.Raw {
	b := make(host.Raw, 32)
	b[0], b[1], b[2] = 0x58, 30, 'p'
	binary.BigEndian.PutUint32(b[3:], uint32(n))
	return b
}

const number = 3 // where it is

func open(ctx context.Context, kind string) (*pingPong, error) {
	sys, err := host.New(host.NewConfig("guard").WithWorkers(1).WithGuardian(supervision.Default().WithSilence(true)))
	if err != nil {
		return nil, err
	}
	p := &pingPong{sys: sys, done: make(chan struct{}, 1), close: func() { _ = sys.Close(ctx) }}
	referee, err := sys.Spawn("referee", host.Func(func(c *host.Context, _ host.Message) error {
		if len(p.steps) == 0 {
			p.done <- struct{}{}
			return nil
		}
		step := p.steps[0]
		p.steps = p.steps[1:]
		step(c)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	var props host.Props
	var routers []host.Ref
	if kind == Native || kind == Routed {
		answer := packet(0)
		var boxed any = answer // once, as an actor can that is in a hurry
		props = host.Func(func(c *host.Context, m host.Message) error {
			n := binary.BigEndian.Uint32(m.Payload[number:])
			if n == 0 {
				return c.Tell(referee, boxed)
			}
			binary.BigEndian.PutUint32(answer[number:], n-1)
			to := m.Sender
			if routers != nil {
				if to = routers[0]; m.Sender.UID() == p.pair[1].UID() {
					to = routers[1]
				}
			}
			return c.Tell(to, boxed)
		})
	} else {
		code, err := os.ReadFile(kind)
		if err != nil {
			return nil, err
		}
		engine, err := runtime.New(ctx, runtime.NewConfig())
		if err != nil {
			return nil, err
		}
		image, err := engine.Load(ctx, code, runtime.ImageConfig{Name: "guard"})
		if err != nil {
			return nil, err
		}
		props = host.Guest(image, "bench").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
	}
	for i := range p.pair {
		if p.pair[i], err = sys.Spawn("", props); err != nil {
			return nil, err
		}
	}
	if kind == Routed {
		for _, ref := range p.pair {
			front, err := sys.Spawn("", router.Group(router.RoundRobin, ref.Path()).Props())
			if err != nil {
				return nil, err
			}
			routers = append(routers, front)
		}
	}
	return p, nil
}

// run lets the actors exchange n messages, after which the referee hears of it.
func (p *pingPong) run(n int, steps ...func(*host.Context)) error {
	p.steps = steps
	if err := p.sys.TellFrom(p.pair[1], p.pair[0], packet(n)); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(5 * time.Minute):
		return errors.New("the actors have got stuck")
	}
}

// warmUp is how many messages come before anything is counted.
const warmUp = 20_000

// Work is what the child does whose instructions are counted.
func Work(ctx context.Context, kind string) error {
	p, err := open(ctx, kind)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.run(warmUp); err != nil {
		return err
	}
	var steps []func(*host.Context)
	for i, n := range lengths {
		m := packet(n)
		steps = append(steps, func(c *host.Context) {
			if i > 0 {
				instrcount.End()
			}
			instrcount.Begin()
			if err := p.sys.TellFrom(p.pair[1], p.pair[0], m); err != nil {
				panic(err)
			}
		})
	}
	return p.run(warmUp, append(steps, func(*host.Context) {
		instrcount.End()
		p.done <- struct{}{}
	})...)
}

// Slope is what the windows of [Work] say of one message.
func Slope(windows []instrcount.Window) (Counts, error) {
	if len(windows) != len(lengths) {
		return Counts{}, fmt.Errorf("%d windows, not %d", len(windows), len(lengths))
	}
	n := float64(lengths[1] - lengths[0])
	return Counts{
		Instructions: float64(windows[1].Total-windows[0].Total) / n,
		Guest:        float64(windows[1].Guest-windows[0].Guest) / n,
		Functions:    windows[1].Functions(), Messages: lengths[1],
	}, nil
}

// Allocations counts those of a message.
func Allocations(ctx context.Context, kind string) (float64, error) {
	p, err := open(ctx, kind)
	if err != nil {
		return 0, err
	}
	defer p.close()
	if err := p.run(warmUp); err != nil {
		return 0, err
	}
	const messages = 100_000
	best := 0.0
	for i := range 3 { // the collector allocates, too, now and then
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		if err := p.run(messages); err != nil {
			return 0, err
		}
		goruntime.ReadMemStats(&after)
		if a := float64(after.Mallocs-before.Mallocs) / messages; i == 0 || a < best {
			best = a
		}
	}
	return best, nil
}
