package debug

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Write is the last write to a part of the memory before a place. It has happened between two places.
type Write struct {
	Address uint64  `json:"address"`
	From    Place   `json:"from"` // where it had not happened
	To      Place   `json:"to"`   // where it had
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Stack   []Frame `json:"stack,omitempty"` // at From
	Then    []Frame `json:"then,omitempty"`  // at To
	Host    bool    `json:"host,omitempty"`  // it was the host, between two turns: a message
}

// String is the write in a line or two.
func (w *Write) String() string {
	s := fmt.Sprintf("%#x: %s -> %s, between %s and %s", w.Address, w.Before, w.After, w.From, w.To)
	switch {
	case w.Host:
		return s + ": by the host, between two turns"
	case len(w.Stack) > 0 && len(w.Then) > 0 && w.Stack[0].Function != w.Then[0].Function:
		return s + fmt.Sprintf("\n    from %s\n    to   %s", &w.Stack[0], &w.Then[0])
	case len(w.Stack) > 0:
		return s + fmt.Sprintf("\n    in   %s", &w.Stack[0])
	}
	return s
}

// doWatch finds the last write: first the turn, then within it, by bisection. A value that was written and put back again between
// two places that were looked at does not show.
func (d *Debugger) doWatch(ctx context.Context, args []string, r *Result) error {
	if err := d.ensure(ctx); err != nil {
		return err
	}
	at, length, err := d.span(args, 8)
	if err != nil {
		return err
	}
	look := func() []byte {
		m := d.memory()
		return bytes.Clone(m[min(at, uint64(len(m))):min(at+length, uint64(len(m)))])
	}
	here := d.at
	now := look()
	// Within this entry, or which one before it?
	number := d.find(here.Turn)
	first, err := d.enter(ctx, number)
	if err != nil {
		return err
	}
	end := here
	if bytes.Equal(look(), now) {
		number, err = d.lastChange(ctx, number, now, at, length)
		if err != nil {
			return err
		}
		if number < 0 {
			r.Note = fmt.Sprintf("it is as it was at the begin of turn %d, where the file begins", d.firstTurn())
			return d.seek(ctx, here)
		}
		e, last := d.load(number)
		end = Place{Turn: lastOf(&e, last), End: true}
		if first, err = d.enter(ctx, number); err != nil {
			return err
		}
		if bytes.Equal(look(), now) { // it has changed before the guest ran
			r.Write = &Write{Address: at, From: first, To: first, After: hexOf(now), Host: true}
			return d.arrived(nil, r)
		}
	}
	low, high, err := d.narrow(ctx, first, end, func() bool { return bytes.Equal(look(), now) })
	if err != nil {
		return err
	}
	if err := d.seek(ctx, high); err != nil {
		return err
	}
	then := d.stack(mostFrames)
	if err := d.seek(ctx, low); err != nil {
		return err
	}
	r.Write = &Write{Address: at, From: low, To: high, Before: hexOf(look()), After: hexOf(now), Stack: d.stack(mostFrames), Then: then}
	return d.arrived(nil, r)
}

func hexOf(b []byte) string {
	const most = 16
	if len(b) > most {
		return fmt.Sprintf("%x...", b[:most])
	}
	return fmt.Sprintf("%x", b)
}

// enter goes to the first place of an entry.
func (d *Debugger) enter(ctx context.Context, number int) (Place, error) {
	e, _ := d.load(number)
	err := d.seek(ctx, Place{Turn: e.First, Before: true})
	return d.at, err
}

// lastChange is the last entry before one that has changed a part of the memory to what it is now; -1: none has.
func (d *Debugger) lastChange(ctx context.Context, before int, now []byte, at, length uint64) (found int, err error) {
	if err := d.prepare(ctx, 0); err != nil {
		return -1, err
	}
	d.after = -1
	found = -1
	look := func() string {
		m := d.x.Memory()
		return string(m[min(at, uint64(len(m))):min(at+length, uint64(len(m)))])
	}
	was := look()
	for number := range before {
		e, last := d.load(number)
		o, err := d.session.Run(ctx, &e, last, nil, nil)
		if err != nil {
			return -1, err
		}
		if o.Differs != "" {
			return -1, fmt.Errorf("turn %d cannot be stepped through: %s", e.First, o.Differs)
		}
		if is := look(); is != was {
			if was = is; is == string(now) {
				found = number
			}
		}
	}
	return found, nil
}

// narrow finds two places that follow on one another, from one on and up to another of the same entry, between which same has
// become true. It is false at the first and true at the last. It begins with stretches of the run, of which the last one with
// a change counts, and halves that.
func (d *Debugger) narrow(ctx context.Context, low, high Place, same func() bool) (Place, Place, error) {
	if err := d.seek(ctx, low); err != nil {
		return low, high, err
	}
	end, was, last := d.position(high), false, low
	from, to := low, high
	on := d.towards(high)
	err := d.resumeFrom(ctx, func(s *sandbox.Steps) bool {
		at := s.At()
		d.at = d.place(at) // same looks at the run, not at an end
		if is := same(); at.Before(end) {
			if is && !was {
				from, to = last, d.place(at)
			} else if !is {
				from, to = d.place(at), high
			}
			was, last = is, d.place(at)
		}
		return on(s)
	})
	if err != nil {
		return low, high, err
	}
	if v := d.view; to.End && v != nil {
		to = v.at
	}
	for {
		if err := d.seek(ctx, from); err != nil {
			return low, high, err
		}
		from = d.at
		var middle Place
		switch {
		case to.Turn != from.Turn || to.Before != from.Before || to.Fuel < from.Fuel+64:
			return d.scan(ctx, from, to, same)
		default:
			middle = from
			middle.Fuel += (to.Fuel - from.Fuel) / 2
		}
		if err := d.seek(ctx, middle); err != nil {
			return low, high, err
		}
		if d.at.End || !d.at.before(to) { // no place between the middle and the end
			return d.scan(ctx, from, to, same)
		}
		if same() {
			to = d.at
		} else {
			from = d.at
		}
	}
}

// scan looks at every place from one on up to another one.
func (d *Debugger) scan(ctx context.Context, from, to Place, same func() bool) (Place, Place, error) {
	if err := d.seek(ctx, from); err != nil {
		return from, to, err
	}
	end, last, found := d.position(to), d.at, to
	err := d.resumeFrom(ctx, func(s *sandbox.Steps) bool {
		at := s.At()
		d.at = d.place(at)
		if !at.Before(end) || same() {
			if found = d.at; !at.Before(end) {
				found = to
			}
			return true
		}
		last = d.at
		nextPlace(s)
		return false
	})
	return last, found, err
}
