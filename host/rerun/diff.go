package rerun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/runtime"
)

// Comparison is what [Diff] has found.
type Comparison struct {
	Turns [2]int `json:"turns"` // that each recording has
	Equal int    `json:"equal"` // turns that both have, and that are equal
	// First is the first turn in which they differ; nil: there is none. Turns that only one of them has, and those that differ
	// in their fuel alone, come last.
	First *Divergence `json:"first,omitempty"`
	// Differing is how many actors have a turn that differs, or that only one recording has.
	Differing int `json:"differing_actors"`
	// NotCompared are actors that are not, or not to their end, in one of the recordings. Those with known secrets, which are masked
	// there, are among them: their turns are compared as far as both have them.
	NotCompared []Absent `json:"not_compared,omitempty"`
}

// The kinds of divergences.
const (
	DiffersMessage = "message" // it takes in another one
	DiffersCommand = "command" // of the same message it makes another command
	DiffersFailure = "failure" // one fails, or they fail in different ways
	DiffersFuel    = "fuel"    // the same commands cost more
	DiffersMissing = "missing" // only one recording has it
)

// Divergence is a turn in which two runs differ.
type Divergence struct {
	Path        string `json:"path"`
	Incarnation uint64 `json:"incarnation"`
	Turn        uint64 `json:"turn"`
	What        string `json:"what"`    // DiffersMessage and so on
	Command     int    `json:"command"` // of the turn, from 0; -1: it is not about one
	Byte        int    `json:"byte"`    // of the payload, from 0; -1: it is not about one
	// Texts are what each recording has there, for people. They may be empty.
	Texts [2]string `json:"texts"`
}

// String is the place in a line.
func (d *Divergence) String() string {
	s := (&Difference{Path: d.Path, Incarnation: d.Incarnation, Turn: d.Turn, Command: d.Command, Byte: d.Byte}).String()
	switch d.What {
	case DiffersMessage:
		return s + "another message"
	case DiffersCommand:
		return s + "another command"
	case DiffersFailure:
		return s + "another outcome"
	case DiffersFuel:
		return s + "another amount of fuel"
	}
	return s + "only one of them has it"
}

// mostCompared is how many turns of the first recording are compared at most; each takes 32 bytes.
const mostCompared = 16 << 20

// ErrNotEqual reports that a recording does not come out as it was recorded, so that it cannot be compared.
var ErrNotEqual = errors.New("it does not come out as it was recorded")

// history is what the turns of a recording were.
type history struct {
	names names
	lines map[string]*line // by the actors' names
	turns int
	left  map[string]bool // actors that are not recorded to their ends
	cut   bool            // no actor is
}

// line is the turns of an actor.
type line struct {
	path  string
	parts []stretch // in the order of their turns
	// Of a comparison: the turn behind the last one that was compared, whether a difference was found, and whether
	// turns were batched otherwise, from where on fuel does not count.
	upTo    uint64
	differs bool
	batched bool
	fuel    bool // that of a turn differs
}

// stretch is turns that follow on one another.
type stretch struct {
	first uint64
	turns []mark
}

// add takes a turn up. An incarnation may begin on another worker at the time at which the one before has ended: then its first
// turns come before the last ones of that.
func (l *line) add(turn uint64, p mark) {
	k := len(l.parts)
	for k > 0 && l.parts[k-1].first > turn {
		k--
	}
	if k == 0 || l.parts[k-1].first+uint64(len(l.parts[k-1].turns)) != turn {
		l.parts = slices.Insert(l.parts, k, stretch{first: turn})
		k++
	}
	at := &l.parts[k-1]
	at.turns = append(at.turns, p)
}

// at is a turn; nil: there is none.
func (l *line) at(turn uint64) *mark {
	for k := len(l.parts) - 1; k >= 0; k-- {
		if s := &l.parts[k]; turn >= s.first {
			if turn-s.first < uint64(len(s.turns)) {
				return &s.turns[turn-s.first]
			}
			return nil
		}
	}
	return nil
}

// next is the first turn that is not before one; false: there is none.
func (l *line) next(turn uint64) (uint64, *mark, bool) {
	for k := range l.parts {
		s := &l.parts[k]
		if at := max(turn, s.first); at-s.first < uint64(len(s.turns)) {
			return at, &s.turns[at-s.first], true
		}
	}
	return 0, nil, false
}

// first is the first turn that is known of an actor.
func (l *line) first() uint64 { return l.parts[0].first }

// found is the divergence that is named: the first one of the first rank that there is one of.
type found struct {
	*Divergence
	rank  int
	order uint32
	name  string
	only  int // the recording that has it, if the rank is that
}

// The ranks of divergences. A turn that only one recording has may just have been recorded for longer. Where the fuel of turns
// differs that take in the same and lead to the same, a map may have had another order.
const (
	rankTurn = iota
	rankMissing
	rankFuel
)

func (f *found) note(d *Divergence, name string, rank int, order uint32, only int) {
	if f.Divergence == nil || rank < f.rank || rank == f.rank && order < f.order {
		*f = found{d, rank, order, name, only}
	}
}

// Diff repeats two recordings, and finds the first turn in which the runs differ: the first in the order of the first one,
// which has what leads to a turn before it. Actors are the same if they have the same path. Refs, seeds and times may differ:
// only what turns take in and lead to is compared, and as long as an actor's messages were batched alike, their fuel.
// modules are those of Options, of both. The error wraps ErrNotEqual if a recording cannot be repeated.
func Diff(ctx context.Context, engine *runtime.Engine, a, b *recorder.Recording, o Options) (*Comparison, error) {
	c := &Comparison{}
	one, err := historyOf(ctx, engine, a, o, c, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("the first recording: %w", err)
	}
	f := &found{}
	two, err := historyOf(ctx, engine, b, o, c, 1, func(h *history, name, path string, d *deed, p mark) {
		c.meets(one, h, f, name, path, d, p)
	})
	if err != nil {
		return nil, fmt.Errorf("the second recording: %w", err)
	}
	for name, l := range one.lines {
		other := two.lines[name]
		if two.cut || two.left[name] {
			continue
		}
		upTo := uint64(0)
		if other != nil {
			upTo = l.upTo
		}
		turn, p, more := l.next(upTo)
		if more && l.differs {
			continue
		}
		if more {
			l.differs = true
			f.note(&Divergence{Path: l.path, Turn: turn, What: DiffersMissing, Command: -1, Byte: -1}, name, rankMissing, p.order, 0)
		}
	}
	for _, h := range []*history{one, two} {
		for name, l := range h.lines {
			if (l.differs || l.fuel) && (h == one || one.lines[name] == nil) {
				c.Differing++
			}
		}
	}
	if c.First = f.Divergence; c.First == nil {
		return c, nil
	}
	return c, c.explain(ctx, engine, [2]*recorder.Recording{a, b}, [2]*history{one, two}, f, o)
}

// meets compares a turn of the second recording.
func (c *Comparison) meets(one, two *history, f *found, name, path string, d *deed, p mark) {
	l := one.lines[name]
	if l == nil {
		if one.cut || one.left[name] || two.lines[name].differs {
			return
		}
		two.lines[name].differs = true
		f.note(&Divergence{Path: path, Incarnation: d.incarnation, Turn: d.turn, What: DiffersMissing, Command: -1, Byte: -1}, name, rankMissing, math.MaxUint32, 1)
		return
	}
	old := l.at(d.turn)
	l.upTo = max(l.upTo, d.turn+1)
	at := &Divergence{Path: path, Incarnation: d.incarnation, Turn: d.turn, Command: -1, Byte: -1}
	switch {
	case l.differs:
		return
	case old == nil:
		if d.turn < l.first() || one.cut || one.left[name] {
			return // that recording begins later, or ends before
		}
		at.What = DiffersMissing
		l.differs = true
		f.note(at, name, rankMissing, math.MaxUint32, 1)
		return
	case old.in != p.in:
		at.What = DiffersMessage
	case old.out != p.out:
		at.What = DiffersCommand
	case old.frame != p.frame || l.batched:
		l.batched = true
		c.Equal++
		return
	case old.fuel != p.fuel:
		at.What = DiffersFuel
		l.fuel, l.batched = true, true
		f.note(at, name, rankFuel, old.order, 0)
		return
	default:
		c.Equal++
		return
	}
	l.differs = true
	f.note(at, name, rankTurn, old.order, 0)
}

// historyOf repeats a recording. Of the first one the turns are kept; those of the second one are compared by meet at once.
func historyOf(ctx context.Context, engine *runtime.Engine, of *recorder.Recording, o Options, c *Comparison, nth int, meet func(h *history, name, path string, d *deed, p mark)) (*history, error) {
	h := &history{lines: map[string]*line{}, cut: of.Missing != nil}
	var err error
	if h.names, h.left, err = namesOf(of); err != nil {
		return nil, err
	}
	digest, many := &canon{}, false
	o = Options{Modules: o.Modules, Memory: o.Memory, seen: func(x *happened) bool {
		h.names.deeds(x, func(d *deed) bool {
			p := h.names.mark(d, digest)
			p.order = uint32(min(uint64(h.turns), math.MaxUint32-1))
			p.frame = uint32(x.outcome.done)<<12 | uint32(d.turn-x.first)&0xfff
			switch failure := x.outcome.failure; {
			case d.failure != nil:
				p.fuel = uint32(d.failure.Fuel)
			case failure == nil && d.turn-x.first == uint64(x.outcome.done)-1:
				p.fuel = uint32(x.outcome.fuel)
			}
			h.turns++
			l := h.lines[d.name]
			if l == nil {
				l = &line{path: pathOf(x.of)}
				h.lines[d.name] = l
			}
			if meet != nil {
				meet(h, d.name, pathOf(x.of), d, p)
				return true
			}
			if many = h.turns > mostCompared; many {
				return false
			}
			l.add(d.turn, p)
			return true
		})
		return !many
	}}
	r, err := Run(ctx, engine, of, o)
	switch {
	case many:
		return nil, fmt.Errorf("it has more than %d turns, which are not compared", mostCompared)
	case errors.Is(err, ErrEmpty):
		return h, nil
	case err != nil:
		return nil, err
	case r.Difference != nil:
		return nil, fmt.Errorf("%w: %v", ErrNotEqual, r.Difference)
	}
	c.Turns[nth] = h.turns
	c.NotCompared = append(append(c.NotCompared, r.NotRecorded...), r.Inexact...)
	return h, nil
}

// explain repeats what leads to the turn that was found, and says what it was.
func (c *Comparison) explain(ctx context.Context, engine *runtime.Engine, of [2]*recorder.Recording, h [2]*history, f *found, o Options) error {
	var d [2]*deed
	for n := range of {
		if f.rank == rankMissing && f.only != n {
			continue
		}
		names := h[n].names
		_, err := Run(ctx, engine, of[n], Options{Modules: o.Modules, Memory: o.Memory, Actor: f.Path, seen: func(x *happened) bool {
			names.deeds(x, func(at *deed) bool {
				if at.name == f.name && at.turn == f.Turn {
					d[n] = at.keep()
				}
				return d[n] == nil
			})
			return d[n] == nil
		}})
		if err != nil {
			return err
		}
	}
	for n := range d {
		if d[n] != nil {
			f.Incarnation, f.Texts[n] = d[n].incarnation, h[n].names.sayMessage(&d[n].in)
		}
	}
	if d[0] == nil || d[1] == nil {
		return nil
	}
	switch f.What {
	case DiffersMessage:
		if a, b := &d[0].in, &d[1].in; a.Kind == b.Kind && h[0].names.of(a.Sender) == h[1].names.of(b.Sender) {
			f.Byte = firstByte(a.Payload, b.Payload)
		}
	case DiffersCommand:
		f.commands(d, h)
	case DiffersFuel:
		f.Texts = [2]string{}
	}
	return nil
}

// commands finds the first command in which two turns differ.
func (f *found) commands(d [2]*deed, h [2]*history) {
	if d[0].failure != nil || d[1].failure != nil {
		f.What = DiffersFailure
		for n := range d {
			if f.Texts[n] = "it ends well"; d[n].failure != nil {
				f.Texts[n] = d[n].failure.Error()
			}
		}
		return
	}
	var sums [2]canon
	at := func(n, k int) *abi.Command {
		if k < len(d[n].commands) {
			return &d[n].commands[k]
		}
		return nil
	}
	for k := 0; ; k++ {
		a, b := at(0, k), at(1, k)
		if a == nil && b == nil {
			return
		}
		for n, x := range []*abi.Command{a, b} {
			sums[n].b = sums[n].b[:0]
			if f.Texts[n] = "no further command"; x != nil {
				h[n].names.command(&sums[n], x)
				f.Texts[n] = h[n].names.sayCommand(x)
			}
		}
		if sums[0].sum() == sums[1].sum() {
			continue
		}
		f.Command = k
		if a != nil && b != nil && a.Op == b.Op && h[0].names.of(a.ToRef) == h[1].names.of(b.ToRef) && string(a.ToPath) == string(b.ToPath) {
			f.Byte = firstByte(a.Payload, b.Payload)
		}
		return
	}
}
