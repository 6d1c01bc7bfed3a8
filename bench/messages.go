package main

import (
	"context"
	"encoding/binary"
	"errors"
	"time"
)

// call measures what entering a guest costs: the machine's yardstick.
func call(l *lab) error {
	h, err := newNaiveHost(l.ctx, naiveWAT)
	if err != nil {
		return err
	}
	defer h.close()
	a, err := h.spawn()
	if err != nil {
		return err
	}
	nop := a.mod.ExportedFunction("nop")
	stack := make([]uint64, 1)
	ns, err := repeat(func() (float64, error) {
		return perOp(l.scale(2_000_000), func(n int) error {
			for range n {
				if err := nop.CallWithStack(l.ctx, stack); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return l.report.alone("naive wazero: call of an export", "ns", ns, "the machine's yardstick")
}

// pingPong measures a message between two actors: supervised, metered,
// dispatched and atomic on our side.
func pingPong(l *lab) error {
	for _, g := range l.guests() {
		p, err := newProduct(l.ctx, g.ours, 1)
		if err != nil {
			return err
		}
		h, err := newNaiveHost(l.ctx, g.theirs)
		if err != nil {
			return err
		}
		n := l.scale(1_000_000)
		ours, err := p.pinger()
		if err != nil {
			return err
		}
		theirs, err := h.pinger()
		if err != nil {
			return err
		}
		a, b, err := interleave(
			func() (float64, error) { return perOp(n, ours) },
			func() (float64, error) { return perOp(n, theirs) })
		if err != nil {
			return err
		}
		if err := l.report.compare("ping-pong, "+g.name+" guest", "ns/message", a, b, "one worker; ours is metered and supervised"); err != nil {
			return err
		}
		if err := errors.Join(p.close(l.ctx), h.close()); err != nil {
			return err
		}
	}
	return nil
}

func (p *product) pinger() (func(n int) error, error) {
	x, err := p.sys.Spawn("", p.props)
	if err != nil {
		return nil, err
	}
	y, err := p.sys.Spawn("", p.props)
	return func(n int) error {
		if err := p.sys.TellFrom(y, x, number(uint32(n))); err != nil {
			return err
		}
		return p.wait()
	}, err
}

func (h *naiveHost) pinger() (func(n int) error, error) {
	x, err := h.spawn()
	if err != nil {
		return nil, err
	}
	y, err := h.spawn()
	if err != nil {
		return nil, err
	}
	contexts := []context.Context{h.context(x), h.context(y)}
	return func(n int) error {
		h.queue, h.head = append(h.queue[:0], naiveMessage{to: x.id, from: y.id, payload: binary.BigEndian.AppendUint32([]byte{0x1a}, 7)}), 0
		return h.run(contexts, n)
	}, nil
}

// ask measures a question from Go and its answer.
func ask(l *lab) error {
	for _, g := range l.guests() {
		p, err := newProduct(l.ctx, g.ours, 0)
		if err != nil {
			return err
		}
		ref, err := p.sys.Spawn("", p.props)
		if err != nil {
			return err
		}
		ns, err := repeat(func() (float64, error) {
			return perOp(l.scale(100_000), func(n int) error {
				ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
				defer cancel()
				for range n {
					if _, err := p.sys.Ask(ctx, ref, number(1)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if err := l.report.alone("ask from Go, "+g.name+" guest", "ns", ns, "two goroutines take turns"); err != nil {
			return err
		}
		if err := p.close(l.ctx); err != nil {
			return err
		}
	}
	return nil
}
