package main

import (
	"errors"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// resume measures what it costs to be able to go back to before a failing turn: for
// each message of an actor whose supervisor can answer resume, next to one whose
// supervisor cannot; and the way back itself, next to a restart.
func resume(l *lab) error {
	for _, g := range l.guestKinds() {
		var perMessage, perFailure [2]func() (float64, error)
		var close [2]func() error
		for i, d := range []supervision.Directive{supervision.Resume, supervision.Restart} {
			p, err := newProductWith(l.ctx, g.ours, 1, func(c host.Config) host.Config {
				return c.WithGuardian(supervision.Default().WithOtherwise(d).WithSilence(true))
			})
			if err != nil {
				return err
			}
			close[i] = func() error { return p.close(l.ctx) }
			ping, err := p.pinger()
			if err != nil {
				return err
			}
			ref, err := p.sys.Spawn("", p.props)
			if err != nil {
				return err
			}
			fail := func(n int) error {
				return p.drive(n, func(ctx *host.Context) error { return errors.Join(ctx.Tell(ref, failing), ctx.Tell(ref, number(0))) })
			}
			perMessage[i] = func() (float64, error) { return perOp(l.scale(200_000), ping) }
			perFailure[i] = func() (float64, error) { return perOp(l.scale(5000), fail) }
		}
		with, without, err := l.interleave(perMessage[0], perMessage[1])
		if err != nil {
			return err
		}
		back, again, err := l.interleave(perFailure[0], perFailure[1])
		if err != nil {
			return err
		}
		if err := errors.Join(
			l.report.compare("a message to an actor that can be resumed, "+g.name+" guest", "ns/message", with, without, "the baseline is one that cannot"),
			l.report.compare("failure, resume and next message, "+g.name+" guest", "us", back/1e3, again/1e3, "the baseline is a restart"),
			close[0](), close[1]()); err != nil {
			return err
		}
	}
	return nil
}
