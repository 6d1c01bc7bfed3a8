package main

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// product is a host of ours with one image.
type product struct {
	engine *runtime.Engine
	sys    *host.System
	props  host.Props
	done   chan struct{} // the referee was told
}

func newProduct(ctx context.Context, wasm []byte, workers int) (*product, error) {
	engine, err := runtime.New(ctx, runtime.NewConfig())
	if err != nil {
		return nil, err
	}
	image, err := engine.Load(ctx, wasm, runtime.ImageConfig{Name: "bench"})
	if err != nil {
		return nil, err
	}
	cfg := host.NewConfig("bench").WithWorkers(workers).WithGuardian(supervision.Default().WithSilence(true))
	sys, err := host.New(cfg)
	if err != nil {
		return nil, err
	}
	p := &product{engine: engine, sys: sys, done: make(chan struct{}, 1)}
	p.props = host.Guest(image, "ping").WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
	_, err = sys.Spawn("referee", host.Func(func(*host.Context, host.Message) error {
		p.done <- struct{}{}
		return nil
	}))
	return p, err
}

func (p *product) close(ctx context.Context) error {
	if err := p.sys.Shutdown(ctx); err != nil {
		return err
	}
	return p.engine.Close(ctx)
}

// number is a payload that both guests understand: five bytes.
func number(n uint32) host.Raw {
	return host.Raw{0x1a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// wait for the referee.
func (p *product) wait() error {
	select {
	case <-p.done:
		return nil
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("stuck:\n%s", p.sys.Tree())
	}
}

// Payloads that the guests do not survive: the one in WAT traps on both, the one
// in Go returns an error or panics.
var (
	failing  = host.Raw{0xf6}
	panicing = host.Raw{0xf5}
)
