package rerun

import (
	"context"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
)

// plan is what is known of a recording before any of it is repeated.
type plan struct {
	records int
	images  []bool         // that are needed
	types   map[string]int // of actors, and the image of one of them
	absent  []Absent
	inexact []Absent   // and from which turn on
	sent    [][]uint16 // for each record of each lane, how many messages of it were handed to guests
	needed  [][]uint64 // for each lane, a bit for each record; nil: all are

	// The first and the last time of an entry, ns since 1970; 0: there are none. calm is the last time of one before the system has
	// begun to stop its actors, or begin if the file has begun later. Where that is not recorded, it is that of the last one that is
	// not about the end of an actor.
	begin, calm, end int64
}

// step is an entry, for the way back from an actor.
type step struct {
	at   recorder.Place
	life uint64
	from []recorder.Place
}

// planOf reads all records. With an actor it finds those that lead to its turns.
func planOf(ctx context.Context, of *recorder.Recording, actor string) (*plan, error) {
	p := &plan{images: make([]bool, len(of.Images)), types: map[string]int{}}
	type begun struct {
		image  int
		turn   uint64 // the next one
		masked bool
	}
	lives := map[uint64]*begun{}
	chosen := map[uint64]bool{}
	var steps []step
	names := map[uint64]string{}
	c := of.Cursor()
	for ; ; p.records++ {
		x, err := c.Next()
		if err != nil {
			return nil, err
		}
		if x == nil {
			break
		}
		if p.records%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("the replay was ended: %w", context.Cause(ctx))
		}
		p.place(x.At)
		switch x.Kind {
		case recorder.Life:
			lives[x.Life], names[x.Life] = &begun{image: x.Image, turn: x.Turns}, x.Incarnation.Path
			if p.types[x.Type] = x.Image; actor == "" {
				p.images[x.Image] = true
			} else if isAt(x.Incarnation.Path, actor) {
				chosen[x.Life] = true
			}
		case recorder.Left:
			p.absent = noted(p.absent, names[x.Life], x.Why)
			delete(names, x.Life)
		case recorder.End:
			p.end = max(p.end, x.Now)
			delete(names, x.Life)
		case recorder.None:
			p.absent = noted(p.absent, x.Path, x.Why)
		case recorder.Entry:
			if p.begin == 0 || x.Now < p.begin {
				p.begin = x.Now
			}
			p.end = max(p.end, x.Now)
			l := lives[x.Life]
			if x.Masked && !l.masked {
				l.masked = true
				p.inexact = noted(p.inexact, names[x.Life], fmt.Sprintf("from turn %d on: it was handed a known secret, which is masked", l.turn))
			}
			l.turn += uint64(x.Played())
			s := step{at: x.At, life: x.Life}
			x.Mail(func(m *recorder.Message) bool {
				k := m.Envelope.Kind
				if (m.Sent || k != abi.KindStop && k != abi.KindTerminated) && (of.Ending == 0 || x.Now <= of.Ending) {
					p.calm = max(p.calm, x.Now)
				}
				if m.Sent {
					if n := &p.sent[m.From.Lane][m.From.Number]; *n < math.MaxUint16 {
						*n++
					}
					if actor != "" {
						s.from = append(s.from, m.From)
					}
				}
				return true
			})
			if actor != "" {
				steps = append(steps, s)
			}
		}
	}
	if p.calm == 0 && of.Ending != 0 {
		p.calm = p.begin
	}
	if actor == "" {
		return p, nil
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no actor %s is in the recording", actor)
	}
	p.needed = make([][]uint64, len(p.sent))
	for lane := range p.sent {
		p.needed[lane] = make([]uint64, len(p.sent[lane])/64+1)
	}
	from := map[recorder.Place]bool{}
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		if !chosen[s.life] && !from[s.at] {
			continue
		}
		chosen[s.life] = true // all before it leads to it
		p.images[lives[s.life].image] = true
		p.needed[s.at.Lane][s.at.Number/64] |= 1 << (s.at.Number % 64)
		for _, at := range s.from {
			from[at] = true
		}
	}
	p.count(steps)
	return p, nil
}

// count counts the messages anew, of the entries that are needed.
func (p *plan) count(steps []step) {
	for i := range p.sent {
		clear(p.sent[i])
	}
	for i := range steps {
		if s := &steps[i]; p.needs(s.at) {
			for _, at := range s.from {
				if n := &p.sent[at.Lane][at.Number]; *n < math.MaxUint16 {
					*n++
				}
			}
		}
	}
}

// place makes room for what is known of a record.
func (p *plan) place(at recorder.Place) {
	for int(at.Lane) >= len(p.sent) {
		p.sent = append(p.sent, nil)
	}
	p.sent[at.Lane] = append(p.sent[at.Lane], 0)
}

// noted is a list with one more, if there is room.
func noted(list []Absent, path, why string) []Absent {
	if len(list) < mostListed {
		list = append(list, Absent{path, why})
	}
	return list
}

// needs reports whether a record is to be repeated.
func (p *plan) needs(at recorder.Place) bool {
	return p.needed == nil || p.needed[at.Lane][at.Number/64]&(1<<(at.Number%64)) != 0
}

// uses is how many messages of an entry are handed to guests; one more than that keeps it for good.
func (p *plan) uses(at recorder.Place) int {
	n := int(p.sent[at.Lane][at.Number])
	if n == math.MaxUint16 {
		return math.MaxInt
	}
	return n
}
