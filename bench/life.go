package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host"
)

// spawn measures an actor from its making to its first message handled.
func spawn(l *lab) error {
	for _, g := range l.guests() {
		p, err := newProduct(l.ctx, g.ours, 0)
		if err != nil {
			return err
		}
		h, err := newNaiveHost(l.ctx, g.theirs)
		if err != nil {
			return err
		}
		var last host.Ref
		ours := func(keep bool) func(int) error {
			return func(n int) error {
				return p.drive(n, func(ctx *host.Context) error {
					if !keep {
						ctx.Stop(last)
					}
					ref, err := ctx.Spawn("", p.props)
					if err != nil {
						return err
					}
					last = ref
					return ctx.Tell(ref, number(0))
				})
			}
		}
		theirs := func(n int) error {
			for range n {
				a, err := h.spawn()
				if err != nil {
					return err
				}
				if err := h.deliver(h.context(a), a, naiveMessage{payload: number(0)}); err != nil {
					return err
				}
				if err := a.mod.Close(l.ctx); err != nil {
					return err
				}
				h.actors, h.queue, h.head = h.actors[:0], h.queue[:0], 0
			}
			return nil
		}
		n, few := l.scale(2000), l.scale(100)
		if err := ours(false)(l.scale(200)); err != nil { // fill the pool
			return err
		}
		warm, naive, err := interleave(
			func() (float64, error) { return perOp(n, ours(false)) },
			func() (float64, error) { return perOp(few, theirs) })
		if err != nil {
			return err
		}
		if err := l.report.compare("spawn to first message, "+g.name+" guest", "us", warm/1e3, naive/1e3, "instances come back from actors that have stopped"); err != nil {
			return err
		}
		cold, naive, err := interleave(
			func() (float64, error) { return perOp(n/4, ours(true)) },
			func() (float64, error) { return perOp(few, theirs) })
		if err != nil {
			return err
		}
		if err := l.report.compare("spawn to first message, "+g.name+" guest, new instance", "us", cold/1e3, naive/1e3, "no instance has come back"); err != nil {
			return err
		}
		if err := errors.Join(p.close(l.ctx), h.close()); err != nil {
			return err
		}
	}
	return nil
}

// restart measures a failure, from the message that causes it to the next message
// handled: once a failure that the guest reports or traps with, once a panic of
// Go's, which takes its time to unwind.
func restart(l *lab) error {
	for _, g := range l.guests() {
		p, err := newProduct(l.ctx, g.ours, 0)
		if err != nil {
			return err
		}
		h, err := newNaiveHost(l.ctx, g.theirs)
		if err != nil {
			return err
		}
		ref, err := p.sys.Spawn("", p.props)
		if err != nil {
			return err
		}
		ours := func(poison host.Raw) func(int) error {
			return func(n int) error {
				return p.drive(n, func(ctx *host.Context) error {
					return errors.Join(ctx.Tell(ref, poison), ctx.Tell(ref, number(0)))
				})
			}
		}
		a, err := h.spawn()
		if err != nil {
			return err
		}
		theirs := func(crash bool) func(int) error {
			return func(n int) error {
				for range n {
					if crash {
						if _, err := a.mod.ExportedFunction("crash").Call(l.ctx); err == nil {
							return errors.New("the guest has survived")
						}
					}
					if err := h.restart(a); err != nil {
						return err
					}
					if err := h.deliver(h.context(a), a, naiveMessage{payload: number(0)}); err != nil {
						return err
					}
					h.queue, h.head = h.queue[:0], 0
				}
				return nil
			}
		}
		for _, c := range []struct {
			name   string
			poison host.Raw
			crash  bool
		}{{"failure", failing, g.name == "wat"}, {"panic", panicing, true}} {
			if c.name == "panic" && g.name == "wat" {
				continue // the same trap
			}
			x, y, err := interleave(
				func() (float64, error) { return perOp(l.scale(10_000), ours(c.poison)) },
				func() (float64, error) { return perOp(l.scale(100), theirs(c.crash)) })
			if err != nil {
				return err
			}
			if err := l.report.compare(c.name+", restart and next message, "+g.name+" guest", "us", x/1e3, y/1e3, "the supervisor's decision included"); err != nil {
				return err
			}
		}
		if err := errors.Join(p.close(l.ctx), h.close()); err != nil {
			return err
		}
	}
	return nil
}

// memory measures what an actor that has handled one message and waits keeps
// resident, everything included. Each side runs in a process of its own: what
// others have left behind would be counted otherwise.
func memory(l *lab) error {
	for _, g := range l.guests() {
		ours, err := l.child("ours", g.name)
		if err != nil {
			return err
		}
		theirs, err := l.child("naive", g.name)
		if err != nil {
			return err
		}
		if err := l.report.compare("resident memory of an idle actor, "+g.name+" guest", "KiB", ours/1024, theirs/1024, "after its first message; the host's share included"); err != nil {
			return err
		}
	}
	return nil
}

// child runs this program to measure the memory of one side.
func (l *lab) child(side, guest string) (float64, error) {
	out, err := l.childOutput(side, guest)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(out), 64)
}

// childOutput is what the child prints.
func (l *lab) childOutput(side, guest string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(exe, "-resident", side+" "+guest)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

// measureResident is what a child does: bytes an actor.
func (l *lab) measureResident(side, guest string) (float64, error) {
	many := 1000
	if guest == "wat" {
		many = 20_000
	} else if side == "naive" {
		many = 100
	}
	wasm := map[string][]byte{"ours wat": pingWAT, "ours go": l.goPing, "naive wat": naiveWAT, "naive go": l.naive}[side+" "+guest]
	var one func() error
	if side == "ours" {
		p, err := newProduct(l.ctx, wasm, 0)
		if err != nil {
			return 0, err
		}
		defer p.close(l.ctx)
		one = func() error {
			ref, err := p.sys.Spawn("", p.props)
			if err == nil {
				err = p.sys.Tell(ref, number(0))
			}
			if err == nil {
				err = p.wait()
			}
			return err
		}
	} else {
		h, err := newNaiveHost(l.ctx, wasm)
		if err != nil {
			return 0, err
		}
		defer h.close()
		one = func() error {
			a, err := h.spawn()
			if err != nil {
				return err
			}
			return h.deliver(h.context(a), a, naiveMessage{payload: number(0)})
		}
	}
	if err := one(); err != nil {
		return 0, err
	}
	before, err := resident()
	if err != nil {
		return 0, err
	}
	for range many {
		if err := one(); err != nil {
			return 0, err
		}
	}
	after, err := resident()
	return (after - before) / float64(many), err
}
