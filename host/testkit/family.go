package testkit

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Spawn starts a child of the probe: what the child sends to its parent comes to the test, and
// the probe supervises it.
func (p *Probe) Spawn(name string, props host.Props) host.Ref {
	p.t.Helper()
	var ref host.Ref
	p.do(nil, "spawn", func(ctx *host.Context) (err error) {
		ref, err = ctx.Spawn(name, props)
		return err
	})
	return ref
}

// Supervise sets what the probe decides about its children that fail. Without it, or if it returns 0, the
// default decider decides.
func (p *Probe) Supervise(decide func(child host.Ref, f *abi.Failure) supervision.Directive) {
	p.t.Helper()
	p.do(nil, "supervise", func(*host.Context) error { p.decide = decide; return nil })
}

// Props makes props of actors that forward everything that they receive to the probe, with its sender. It is
// for an actor under test that starts children from props that it is given.
func (p *Probe) Props() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			return host.ErrUnhandled
		}
		return ctx.Forward(p.ref)
	})
}
