package debug

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// forward goes n places on, or to the end of the file: the end of an entry is one.
func (d *Debugger) forward(ctx context.Context, n int64) error {
	for moved := false; n > 0; moved = true {
		if err := d.ensure(ctx); err != nil {
			return err
		}
		if d.endView() != nil {
			if d.view.number == d.count-1 && moved {
				return nil
			}
			if err := d.nextEntry(ctx); err != nil {
				return err
			}
			n--
			moved = true
			continue
		}
		err := d.resumeFrom(ctx, func(s *sandbox.Steps) bool {
			if n--; n == 0 {
				return true
			}
			nextPlace(s)
			return false
		})
		if err != nil {
			return err
		}
		if d.run.steps == nil {
			n--
		}
	}
	return nil
}

// nextPlace lets a run go to the next place.
func nextPlace(s *sandbox.Steps) {
	at := s.At()
	s.Stop(sandbox.Position{Phase: at.Phase, Fuel: at.Fuel + 1})
}

// resumeFrom lets the run, which is at the present place, go on to the next one, and further as visit says.
func (d *Debugger) resumeFrom(ctx context.Context, visit visitor) error {
	nextPlace(d.run.steps)
	return d.resume(ctx, visit)
}

// nextEntry goes from the end of an entry to the first place of the next one.
func (d *Debugger) nextEntry(ctx context.Context) error {
	v := d.view
	if v.number == d.count-1 {
		return fmt.Errorf("this is the end of the file")
	}
	e, _ := d.load(v.number + 1)
	return d.seek(ctx, Place{Turn: e.First, Before: true})
}

// backward goes n places back, or to the first one.
func (d *Debugger) backward(ctx context.Context, n int) error {
	for start := d.at; n > 0; {
		here := d.at
		places, err := d.placesBefore(ctx, here, n)
		if err != nil {
			return err
		}
		if len(places) >= n {
			return d.seek(ctx, places[len(places)-n])
		}
		n -= len(places)
		// The first place of an entry: the end of the one before it is next.
		first := here
		if len(places) > 0 {
			first = places[0]
		}
		number := d.find(first.Turn)
		switch {
		case number == 0 && first != start:
			return d.seek(ctx, first)
		case number == 0:
			return fmt.Errorf("this is the begin of the file")
		}
		e, last := d.load(number - 1)
		if err := d.seek(ctx, Place{Turn: lastOf(&e, last), End: true}); err != nil {
			return err
		}
		n--
	}
	return nil
}

// placesBefore are the last n places before one in its entry, or all if there are fewer, in order. It looks for them in stretches
// of fuel before the place, each longer than the one before; where one has very many places, it takes a shorter one again.
func (d *Debugger) placesBefore(ctx context.Context, p Place, n int) ([]Place, error) {
	number := d.find(p.Turn)
	e, _ := d.load(number)
	first := Place{Turn: e.First, Before: true}
	known := !p.Before && (p.End && e.Pushed == 1 || !p.End) // its fuel is that of the turn alone
	few, many := uint64(0), uint64(math.MaxUint64)           // stretches that have too few places, and too many
	for stretch := uint64(64) * uint64(n); ; {
		from := first
		if known && p.Fuel > stretch {
			from = Place{Turn: p.Turn, Fuel: p.Fuel - stretch}
		}
		most := 8*n + mostScanned
		if from == first && (!known || many-few < 64) {
			most = math.MaxInt
		}
		places, last, err := d.places(ctx, from, p, n, most)
		switch {
		case err != nil:
			return nil, err
		case last == p:
			if len(places) >= n || from == first {
				return places, nil
			}
			few = stretch
		case last.Turn == p.Turn && last.part() == partWithin && p.Fuel-last.Fuel > few:
			many = p.Fuel - last.Fuel
		case p.Fuel > few: // it has not come as far as to this turn
			many = p.Fuel
		default:
			known = false
		}
		if many-few < 64 {
			known = false
		}
		if stretch = few + (many-few)/2; many == math.MaxUint64 {
			stretch = few * 8
			if few > math.MaxUint64/8 {
				known = false
			}
		}
	}
}

// mostScanned is how many places are looked at, at most, to find one among them, and 8 for each that is wanted.
const mostScanned = 2000

// places are the last n places from one on and before another one of the same entry, if it has come to that: last is where it has
// come to. It looks at so many places at most.
func (d *Debugger) places(ctx context.Context, from, to Place, n, most int) (places []Place, last Place, err error) {
	if err := d.seek(ctx, from); err != nil {
		return nil, to, err
	}
	if !d.here.before(to) || d.run == nil || d.run.steps == nil {
		return nil, to, nil
	}
	places, last = append(places, d.here), to
	end := d.position(to)
	if d.checks.cheap() {
		d.checks.keep(d.run.steps, &d.pace)
	}
	err = d.resumeFrom(ctx, func(s *sandbox.Steps) bool {
		at := s.At()
		if !at.Before(end) {
			return true
		}
		if most--; most <= 0 {
			last = d.place(at)
			return true
		}
		if len(places) >= 2*n+1000 {
			places = append(places[:0], places[len(places)-n:]...)
		}
		places = append(places, d.place(at))
		nextPlace(s)
		return false
	})
	return places, last, err
}

// goOn begins the next entry where the present one has ended. Where that was the last one, the place is the one before the command
// again, and the error is that nothing was found.
func (d *Debugger) goOn(ctx context.Context, before Place, missing error) (begun bool, err error) {
	switch {
	case d.endView() == nil:
		return false, nil
	case d.view.number == d.count-1:
		d.at = before
		return false, missing
	}
	return true, d.nextEntry(ctx)
}

var errNotLogged = errors.New("nothing is logged from here to the end")

// doCall goes to the next call of a function.
func (d *Debugger) doCall(ctx context.Context, args []string, r *Result) error {
	name, err := one(args, "the name of a function")
	if err != nil {
		return err
	}
	wanted, err := d.functions(name)
	if err != nil {
		return err
	}
	if err := d.ensure(ctx); err != nil {
		return err
	}
	was := d.at
	missing := fmt.Errorf("%q is not called from here to the end; functions without loops that call nothing are parts of their callers", clip(name))
	for {
		begun, err := d.goOn(ctx, was, missing)
		if err != nil {
			return err
		}
		if f, _, _ := d.run.steps.Innermost(); begun && wanted[f] {
			return d.arrived(nil, r)
		}
		search := d.newCalls(wanted)
		if err := d.resumeFrom(ctx, search.visit); err != nil {
			return err
		}
		if d.run.steps != nil {
			return d.arrived(nil, r)
		}
	}
}

// calls looks for calls of functions. The place where a function begins is the first one of a call that is known to be new: it is
// deeper than the last place, or no call of it at this depth is left from the begin.
type calls struct {
	wanted map[int]bool
	begins map[int]uintptr
	old    map[int]int // depths of calls that were under way at the begin, with their functions
	depth  int
}

func (d *Debugger) newCalls(wanted map[int]bool) *calls {
	c := &calls{wanted: wanted, begins: d.begins, old: map[int]int{}}
	frames := d.run.steps.Frames(4096)
	for k, f := range frames {
		c.old[len(frames)-k] = f.Function
	}
	c.depth = len(frames)
	return c
}

func (c *calls) visit(s *sandbox.Steps) bool {
	f, place, depth := s.Innermost()
	was := c.depth
	for ; c.depth > depth; c.depth-- {
		delete(c.old, c.depth)
	}
	c.depth = depth
	begin, known := c.begins[f]
	if !known && (depth > was || c.old[depth] != f || len(c.old) == 0) {
		begin, known = place, true
		c.begins[f] = place
	}
	if known && place == begin && c.wanted[f] {
		return true
	}
	nextPlace(s)
	return false
}

// doLog goes to behind the next line of the log.
func (d *Debugger) doLog(ctx context.Context, args []string, r *Result) error {
	if err := none(args); err != nil {
		return err
	}
	if err := d.ensure(ctx); err != nil {
		return err
	}
	was := d.at
	for {
		if _, err := d.goOn(ctx, was, errNotLogged); err != nil {
			return err
		}
		run := d.run
		run.logs, run.logged = true, false
		on := d.towards(Place{Turn: math.MaxUint64 / 4, End: true})
		err := d.resumeFrom(ctx, func(s *sandbox.Steps) bool { return run.logged || on(s) })
		run.logs = false
		if err != nil {
			return err
		}
		if run.logged {
			r.Log = d.log
			return d.arrived(nil, r)
		}
	}
}
