package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// product is a host of ours with one image.
type product struct {
	engine  *runtime.Engine
	image   *runtime.Image
	last    []byte // the payload of the last report
	sys     *host.System
	props   host.Props
	done    chan struct{} // the referee is satisfied
	referee host.Ref

	// What the referee does when a guest reports to it: it goes on left times, on the
	// guests' own worker, so that no other thread must be woken meanwhile.
	left atomic.Int64
	step func(*host.Context) error
}

func newProduct(ctx context.Context, wasm []byte, workers int) (*product, error) {
	return newProductWith(ctx, wasm, workers, nil)
}

// newProductWith lets change adjust the system's configuration.
func newProductWith(ctx context.Context, wasm []byte, workers int, change func(host.Config) host.Config) (*product, error) {
	engine, err := runtime.New(ctx, runtime.NewConfig())
	if err != nil {
		return nil, err
	}
	image, err := engine.Load(ctx, wasm, runtime.ImageConfig{Name: "bench"})
	if err != nil {
		return nil, err
	}
	cfg := host.NewConfig("bench").WithWorkers(workers).WithGuardian(supervision.Default().WithSilence(true))
	if change != nil {
		cfg = change(cfg)
	}
	sys, err := host.New(cfg)
	if err != nil {
		return nil, err
	}
	p := &product{engine: engine, image: image, sys: sys, done: make(chan struct{}, 1024)}
	p.props = host.Guest(image, "ping").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
	p.referee, err = sys.Spawn("referee", host.Func(func(ctx *host.Context, m host.Message) error {
		if p.left.Load() == 0 {
			p.last = append(p.last[:0], m.Payload...)
			p.done <- struct{}{}
			return nil
		}
		p.left.Add(-1)
		return p.step(ctx)
	}).WithLimits(host.Limits{Children: 1 << 20}))
	return p, err
}

func (p *product) close(ctx context.Context) error {
	if err := p.sys.Close(ctx); err != nil {
		return err
	}
	return p.engine.Close(ctx)
}

// number is a payload that both guests understand: five bytes.
func number(n uint32) host.Raw {
	return host.Raw{0x1a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// drive makes the referee do step n times, each after a report, and waits.
func (p *product) drive(n int, step func(*host.Context) error) error {
	p.step = step
	p.left.Store(int64(n))
	if err := p.sys.Tell(p.referee, number(0)); err != nil {
		return err
	}
	return p.wait()
}

// wait for the referee, as long as it gets on.
func (p *product) wait() error {
	for before := int64(-1); ; {
		select {
		case <-p.done:
			return nil
		case <-time.After(patience):
		}
		left := p.left.Load()
		if left == before || left == 0 {
			return fmt.Errorf("%w; %d steps are left, %d actors have failed", errStuck, left, p.sys.View().Stats().Crashes)
		}
		before = left
	}
}

// failing is a payload at which the guest in WAT traps and the one in Go returns an error.
var failing = host.Raw{0xf6}
