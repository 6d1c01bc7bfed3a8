// Package debug steps through a crash file, forward and backward. Its clock is fuel: a place is a turn and what the turn has
// spent there. Places are where fuel is charged: the entries of functions, the heads of loops, and host functions.
//
// The module of the file runs as in host/replay: as a stranger's, within its limits, and nothing that it asks for is carried
// out. Each command ends with its context, and leaves the debugger where it was.
package debug

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Bounds of a debugger.
const (
	mostStateBytes = 256 << 20            // of states between turns
	every          = 6 * time.Millisecond // of running, between two of them
	firstChunk     = 100_000              // fuel, between two stops
	mostChunk      = 1 << 30
	markEvery      = 16
)

// Debugger is a crash file that is stepped through. One goroutine at a time may use it.
type Debugger struct {
	file    *blackbox.File
	session *replay.Session
	x       *sandbox.Instance
	ctx     context.Context
	cancel  context.CancelFunc
	lines   *replay.Lines // nil: none are known
	symbols *symbols
	batches bool

	marks []mark
	count int // entries with turns, the failing one included

	states     []saved // in order
	stateBytes int
	after      int // the entry whose begin the guest's state is; -1: none

	number int // of the present entry
	entry  blackbox.Entry
	last   bool
	run    *stepped // nil: none is under way
	checks checkpoints
	pace   pace
	chunk  uint64
	here   Place // where the run is
	view   *view // what the last entry that has ended had come to; nil: none has
	at     Place
	begins map[int]uintptr // where functions begin, as far as it is known: see calls
	log    string          // the last line that was logged

	options  replay.Options
	listener *listener // nil: no arguments were asked for
}

// mark is where an entry is in the file.
type mark struct {
	number int
	turn   uint64
	cursor blackbox.Cursor
}

// saved is the state before an entry.
type saved struct {
	number int
	state  *replay.State
}

// Open opens a file, and goes to the failure.
func Open(ctx context.Context, engine *runtime.Engine, f *blackbox.File, o replay.Options) (*Debugger, error) {
	return open(ctx, engine, f, o, func(d *Debugger) { d.pace.now = time.Now })
}

// open is Open; prepare sets the clock.
func open(ctx context.Context, engine *runtime.Engine, f *blackbox.File, o replay.Options, prepare func(*Debugger)) (*Debugger, error) {
	s, err := replay.Open(ctx, engine, f, o)
	if err != nil {
		return nil, err
	}
	d := &Debugger{file: f, session: s, x: s.Instance(), batches: sandbox.Batching(s.Instance().Image()), after: -1, number: -1, begins: map[int]uintptr{}, options: o}
	d.checks.most = mostCheckpointBytes
	prepare(d)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.index()
	if err := d.seek(ctx, Place{Turn: d.lastTurn(), End: true}); err != nil {
		d.Close()
		return nil, err
	}
	d.symbols = symbolsOf(s.Module())
	d.lines = replay.LinesOf(d.x, bytes.Clone(d.x.Memory()), s.Module())
	return d, nil
}

// Close ends what is under way, and gives back what the debugger holds.
func (d *Debugger) Close() {
	d.cancel()
	d.endRun()
	d.session.Close()
	if d.listener != nil {
		d.listener.close()
	}
}

// index finds the entries.
func (d *Debugger) index() {
	c := d.file.Cursor()
	for {
		at := c
		var e blackbox.Entry
		if !c.Next(&e) {
			break
		}
		if e.Done == 0 {
			continue
		}
		if d.count%markEvery == 0 {
			d.marks = append(d.marks, mark{d.count, e.First, at})
		}
		d.count++
	}
	d.count++
}

// find is the number of the entry that a turn is in; turns that are in none are in the next one.
func (d *Debugger) find(turn uint64) int {
	if failing, _ := d.file.Failing(); turn >= failing.First {
		return d.count - 1
	}
	low := 0
	for k := range d.marks {
		if d.marks[k].turn <= turn {
			low = k
		}
	}
	if len(d.marks) == 0 {
		return d.count - 1
	}
	number := d.marks[low].number
	c := d.marks[low].cursor
	for e := (blackbox.Entry{}); c.Next(&e); {
		if e.Done == 0 {
			continue
		}
		if turn < e.First+uint64(e.Done) {
			return number
		}
		number++
	}
	return d.count - 1
}

// load reads an entry.
func (d *Debugger) load(number int) (e blackbox.Entry, last bool) {
	if number == d.count-1 {
		e, _ = d.file.Failing()
		return e, true
	}
	m := d.marks[number/markEvery]
	c := m.cursor
	for k := m.number; c.Next(&e); {
		if e.Done == 0 {
			continue
		}
		if k == number {
			break
		}
		k++
	}
	return e, false
}

func (d *Debugger) firstTurn() uint64 {
	e, _ := d.load(0)
	return e.First
}

func (d *Debugger) lastTurn() uint64 {
	e, _ := d.file.Failing()
	return e.First + uint64(e.Done)
}

// lastOf is the number of an entry's last turn.
func lastOf(e *blackbox.Entry, last bool) uint64 {
	if last {
		return e.First + uint64(e.Done)
	}
	return e.First + uint64(e.Done) - 1
}

// prepare brings the guest to its state before an entry.
func (d *Debugger) prepare(ctx context.Context, number int) error {
	d.endRun()
	from := d.after
	d.after = -1
	best := saved{number: -1}
	for _, s := range d.states {
		if s.number <= number {
			best = s
		}
	}
	switch {
	case from >= 0 && from <= number && from >= best.number:
	case best.number >= 0:
		if err := d.session.Restore(best.state); err != nil {
			return err
		}
		from = best.number
	default:
		if err := d.session.Begin(); err != nil {
			return err
		}
		from = 0
	}
	begun := d.pace.now()
	for ; from < number; from++ {
		e, _ := d.load(from)
		o, err := d.session.Run(ctx, &e, false, nil, nil)
		if err != nil {
			return err
		}
		if o.Differs != "" {
			return fmt.Errorf("turn %d cannot be stepped through: %s", e.First, o.Differs)
		}
		if now := d.pace.now(); now.Sub(begun) > every {
			d.save(from + 1)
			begun = d.pace.now()
		}
	}
	d.after = number
	d.save(number)
	return nil
}

// save keeps the present state, which is that before an entry.
func (d *Debugger) save(number int) {
	at := 0
	for at < len(d.states) && d.states[at].number < number {
		at++
	}
	if at < len(d.states) && d.states[at].number == number {
		return
	}
	s, err := d.session.Save()
	if err != nil {
		return // it is made again from the begin
	}
	d.states = append(d.states[:at], append([]saved{{number, s}}, d.states[at:]...)...)
	if d.stateBytes += s.Bytes(); d.stateBytes > mostStateBytes {
		d.states, d.stateBytes = thin(d.states, func(s saved) int { return s.state.Bytes() })
	}
}

// thin drops every second of a list.
func thin[T any](list []T, size func(T) int) (rest []T, bytes int) {
	for k, s := range list {
		if k%2 == 0 {
			rest = append(rest, s)
			bytes += size(s)
		}
	}
	return rest, bytes
}

// seek goes to the first place that is not before to, or to the end of its entry.
func (d *Debugger) seek(ctx context.Context, to Place) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to.Turn = max(to.Turn, d.firstTurn())
	number := d.find(to.Turn)
	if v := d.view; to.End && v != nil && v.number == number {
		d.at = v.at
		return nil
	}
	if err := d.runTo(ctx, number, to); err != nil {
		return err
	}
	if d.run.steps == nil && d.pace.ran > every {
		return d.comeBack(ctx)
	}
	return nil
}

// comeBack runs the present entry once more, up to its last place, so that there are checkpoints to go back to from its end.
func (d *Debugger) comeBack(ctx context.Context) error {
	end := d.at
	if err := d.runTo(ctx, d.number, Place{Turn: end.Turn, Fuel: end.Fuel}); err != nil {
		return err
	}
	d.at = end
	return nil
}

// runTo is seek by running.
func (d *Debugger) runTo(ctx context.Context, number int, to Place) error {
	if number != d.number || d.run == nil || to.before(d.here) && !d.back(to) {
		if err := d.prepare(ctx, number); err != nil {
			return err
		}
		d.number = number
		d.entry, d.last = d.load(number)
		d.begin()
		if err := d.wait(ctx); err != nil {
			return err
		}
	} else if to.before(d.here) { // it goes back
		if err := d.resume(ctx, d.towards(to)); err != nil {
			return err
		}
	}
	d.at = d.here
	if d.run.steps == nil || !d.here.before(to) {
		return nil
	}
	visit := d.towards(to)
	if visit(d.run.steps) {
		return nil
	}
	return d.resume(ctx, visit)
}

// back makes the run go back to a checkpoint.
func (d *Debugger) back(to Place) bool {
	if d.run.steps == nil {
		return false
	}
	p := d.position(to)
	for k := len(d.checks.list) - 1; k >= 0; k-- {
		c := d.checks.list[k]
		if !c.At.Before(p) {
			continue
		}
		to := p
		if d.checks.cheap() { // it is used up: there is to be one again
			to = sandbox.Position{Phase: c.At.Phase, Fuel: c.At.Fuel + 1}
		}
		if d.run.steps.Back(c.Checkpoint, to) {
			d.checks.used(k)
			d.checks.again = d.checks.cheap()
			d.pace.goesBack(c.At, c.ran)
			return true
		}
	}
	return false
}

// towards visits places on the way to one. Stops are close enough for checkpoints to be kept there.
func (d *Debugger) towards(to Place) visitor {
	p := d.position(to)
	begun, whole := d.pace.ran, false // whole: it has run for a chunk since
	return func(s *sandbox.Steps) bool {
		at := s.At()
		if !at.Before(p) {
			return true
		}
		switch took := d.pace.ran - begun; {
		case !whole:
		case took > every/4:
			d.chunk = max(d.chunk*uint64(every/2)/uint64(took), d.chunk/4, 1000)
		default:
			d.chunk = min(2*d.chunk, mostChunk)
		}
		next := p
		if whole = at.Phase < p.Phase || p.Fuel-at.Fuel > d.chunk; whole {
			chunk := d.chunk
			if at.Phase < p.Phase && !to.End { // what is left of it is spent in the next phase, which may be that of the place
				chunk = max(min(chunk, p.Fuel), 1)
			}
			next = sandbox.Position{Phase: at.Phase, Fuel: at.Fuel + chunk}
		}
		s.Stop(next)
		begun = d.pace.ran
		return false
	}
}

// view is the state at the end of an entry.
type view struct {
	number  int
	at      Place
	memory  []byte
	globals []uint64
	written []byte // the commands of its turns, those of a failed one included
	outcome *replay.Outcome
	calls   []sandbox.Frame // of a failure
}

// ended is the view of the place, if it is the end of an entry.
func (d *Debugger) endView() *view {
	if v := d.view; v != nil && d.at == v.at {
		return v
	}
	return nil
}

// ensure begins the run again if a command was ended.
func (d *Debugger) ensure(ctx context.Context) error {
	if d.endView() != nil || d.run != nil && d.run.steps != nil && d.here == d.at {
		return nil
	}
	return d.seek(ctx, d.at)
}

// Failure is that of the file.
func (d *Debugger) Failure() *abi.Failure { return &d.file.Failure }
