package debug

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// stepped is a run of an entry on a goroutine of its own, which waits where it has stopped.
type stepped struct {
	d      *Debugger
	cancel context.CancelFunc
	stops  chan *sandbox.Steps
	goOn   chan struct{}
	ended  chan struct{}
	visit  visitor        // called at each stop, on that goroutine
	steps  *sandbox.Steps // nil: it has ended
	known  *sandbox.Steps // on that goroutine
	logs   bool           // a line of the log is waited for
	logged bool           // it has come

	outcome *replay.Outcome
	err     error
}

// visitor is called where a run has stopped. False: the run goes on at once, to where the visitor has told.
type visitor func(*sandbox.Steps) bool

// GuestLog implements sandbox.LogSink.
func (r *stepped) GuestLog(level int, text []byte) {
	r.d.log = fmt.Sprintf("%s: %s", levels[min(max(level, 0), len(levels)-1)], printable.Line(string(text), mostLine))
	if r.logs && r.known != nil {
		r.logged = true
		r.known.NextPlace()
	}
}

const mostLine = 2000 // bytes

var levels = [...]string{abi.LogDebug: "debug", abi.LogInfo: "info", abi.LogWarn: "warn", abi.LogError: "error"}

// begin starts a run of the present entry, which stops at its first place.
func (d *Debugger) begin() {
	ctx, cancel := context.WithCancel(d.ctx)
	r := &stepped{d: d, cancel: cancel, stops: make(chan *sandbox.Steps), goOn: make(chan struct{}), ended: make(chan struct{})}
	d.run, d.after, d.chunk = r, -1, firstChunk
	d.checks.drop() // of a run that has failed
	d.pace.begin()
	entry, last := d.entry, d.last
	go func() {
		defer close(r.ended)
		r.outcome, r.err = d.session.Run(ctx, &entry, last, r, func(in *sandbox.Entry, out *sandbox.Result) {
			sandbox.RunSteps(d.x, in, out, sandbox.Position{}, func(s *sandbox.Steps) {
				r.known = s
				d.pace.stopped(s.At())
				d.checks.pass(s, &d.pace)
				if r.visit == nil || r.visit(s) {
					r.stops <- s
					<-r.goOn
				}
				d.pace.goesOn()
			})
		})
	}()
}

// resume lets the run go on, and waits.
func (d *Debugger) resume(ctx context.Context, visit visitor) error {
	d.run.visit, d.run.steps = visit, nil
	d.run.goOn <- struct{}{}
	return d.wait(ctx)
}

// wait waits until the run stops or ends.
func (d *Debugger) wait(ctx context.Context) error {
	r := d.run
	select {
	case s := <-r.stops:
		d.stoppedAt(s)
		return nil
	case <-r.ended:
		return d.ended()
	case <-ctx.Done():
		d.endRun()
		return fmt.Errorf("it was ended: %w", context.Cause(ctx))
	}
}

func (d *Debugger) stoppedAt(s *sandbox.Steps) {
	d.run.steps = s
	d.here = d.place(s.At())
	d.at = d.here
}

// ended is called when the run of an entry has ended.
func (d *Debugger) ended() error {
	r := d.run
	r.steps = nil
	r.cancel()
	if r.err != nil {
		d.run = nil
		return r.err
	}
	d.here = Place{Turn: lastOf(&d.entry, d.last), End: true, Fuel: r.outcome.Fuel}
	if f := r.outcome.Failure; f != nil {
		d.here.Fuel = f.Fuel
	}
	d.at = d.here
	globals, err := sandbox.Globals(d.x)
	if err != nil {
		return err
	}
	flushed, ring := sandbox.Written(d.x)
	if len(flushed) > 0 {
		ring = flushed
	} else if f := r.outcome.Failure; f == nil {
		ring = r.outcome.Outbox
	}
	d.view = &view{d.number, d.here, bytes.Clone(d.x.Memory()), globals, bytes.Clone(ring), r.outcome, nil}
	if f := r.outcome.Failure; f != nil {
		d.view.calls = replay.FailedCalls(d.x, f)
	}
	if r.outcome.Differs != "" {
		return fmt.Errorf("turn %d cannot be stepped through: %s", d.entry.First, r.outcome.Differs)
	}
	if !d.last {
		d.after = d.number + 1
	}
	return nil
}

// endRun ends the run that is under way, if there is one. The guest's state is none to go on from.
func (d *Debugger) endRun() {
	r := d.run
	if r == nil {
		return
	}
	d.run = nil
	defer d.checks.drop() // the run keeps some until it has ended
	select {
	case <-r.ended:
		return // its state may be that before the next entry
	default:
	}
	d.after = -1
	r.cancel()
	if r.steps != nil {
		r.steps.End("the debugger has gone elsewhere")
		r.goOn <- struct{}{}
	}
	for {
		select {
		case s := <-r.stops:
			s.End("the debugger has gone elsewhere")
			r.goOn <- struct{}{}
		case <-r.ended:
			return
		}
	}
}
