// Package dormant knows the actors of a checkpoint: which frame of it has the state of each, and which of them can stay there until
// somebody needs them.
package dormant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
)

// Checkpoints of earlier releases have all actors, and such an index: what a start must know of it without its states. See Book for what is written now. Numbers are LEB128, refs 8 bytes, little endian; texts have
// their length before them.
//
//	byte    version, 1
//	frames  how many; of each the pieces that it has, and the parts
//	sorts   how many; the text of each
//	rows    how many, one for each part but the head; of each
//	        how many rows before it its parent is, 0 below /user; the name; the ref; the sort of an inert actor, from 1, else 0;
//	        and of an inert one its turns, its incarnation, and the bytes of its guest's state
const indexVersion = 1

// IndexFrame is a frame of a checkpoint: so many pieces have so many parts, whole ones. Both are 1 at least.
type IndexFrame struct{ Pieces, Parts int }

// Part is what a part of a checkpoint is about.
type Part struct {
	Path, Type  string
	Ref, Parent abi.Ref
	Turns       uint64
	Codes       [3][]byte // fingerprints of what it runs, of what its next incarnation begins with, and of what it can go back to; nil: the same, or none

	// Name is the last element of the path. Busy: it decides about its children, the head about those of /user.
	Name string
	Busy bool
	// Sort is that of an inert actor as text; empty: it has something under way, or may have.
	Sort        string
	Steady      bool // whatever it has under way, its state changes with records about it, and with nothing else
	Incarnation uint64
	Held        int // bytes of its guest's state
}

// mostSorts bounds the sorts of an index; actors of others come back at once.
const mostSorts = 1<<15 - 1

func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// ErrIndex wraps the reason why bytes are no index.
var ErrIndex = errors.New("not the index of a checkpoint")

// Index is one that was read. The part of a row is the one behind those of the rows before it and the head.
type Index struct {
	Frames []IndexFrame
	Sorts  []string
	rows   []row
	names  string
}

// Rows is how many actors the checkpoint has.
func (x *Index) Rows() int { return len(x.rows) }

// Decode reads an index. What it returns is checked, except for refs that are there twice.
func Decode(b []byte) (*Index, error) {
	p := &parser{rest: b}
	if v := p.byte(); v != indexVersion && p.bad == "" {
		p.fail(fmt.Sprintf("version %d, this release reads version %d", v, indexVersion))
	}
	x := &Index{}
	parts := uint64(0)
	for range p.count(2) {
		pieces, has := p.uint(), p.uint()
		if pieces == 0 || has == 0 || pieces > math.MaxInt32 || has > math.MaxInt32 {
			p.fail("a frame without pieces or parts")
		}
		x.Frames = append(x.Frames, IndexFrame{int(pieces), int(has)})
		parts += has
	}
	for range p.count(1) {
		x.Sorts = append(x.Sorts, string(p.text(math.MaxInt32)))
	}
	if len(x.Sorts) > mostSorts {
		p.fail("it has more sorts than one can have")
	}
	n := p.count(11)
	if uint64(n)+1 != parts || n > math.MaxInt32 {
		p.fail(fmt.Sprintf("%d actors in %d parts", n, parts))
		n = 0
	}
	x.rows = make([]row, n)
	leaf := make([]bool, n)
	names := make([]byte, 0, min(8*n, len(p.rest)))
	for i := range x.rows {
		r := &x.rows[i]
		up := p.uint()
		if up > uint64(i) {
			p.fail("an actor before its parent")
			break
		}
		if r.parent = -1; up > 0 {
			r.parent = int32(i) - int32(up)
		}
		name := p.text(abi.MaxName)
		r.name, r.length = uint32(len(names)), uint8(len(name))
		if names = append(names, name...); len(names) > math.MaxInt32 {
			p.fail("its names are too many")
		}
		r.ref = abi.Ref(p.ref())
		if sort := p.uint(); sort > uint64(len(x.Sorts)) {
			p.fail("an actor of no sort")
		} else if r.sort = uint16(sort); sort > 0 {
			r.turns = p.uint()
			life, held := p.uint(), p.uint()
			if r.life, r.held = uint32(life), uint32(held); life > math.MaxUint32 || held > math.MaxInt32 {
				p.fail("an actor with numbers out of range")
			}
			leaf[i] = true
		}
		if up > 0 && leaf[r.parent] {
			p.fail("an actor below one that has nobody below it")
		}
		if p.bad == "" && (r.ref == 0 || len(name) == 0) {
			p.fail("an actor without a ref or a name")
		}
		if p.bad != "" {
			break
		}
	}
	if p.bad == "" && len(p.rest) > 0 {
		p.fail("bytes behind its end")
	}
	if p.bad != "" {
		return nil, fmt.Errorf("%w: %s", ErrIndex, p.bad)
	}
	x.names = string(names)
	return x, nil
}

// parser reads an index. After an error all is zero.
type parser struct {
	rest []byte
	bad  string
}

func (p *parser) fail(what string) {
	if p.bad == "" {
		p.bad = what
	}
	p.rest = nil
}

func (p *parser) byte() byte {
	if len(p.rest) == 0 {
		p.fail("it is cut")
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *parser) uint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.fail("it is cut")
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// count is how many follow that have so many bytes at least.
func (p *parser) count(least int) int {
	n := p.uint()
	if n > uint64(len(p.rest)/least) {
		p.fail("it has more than its bytes can hold")
		return 0
	}
	return int(n)
}

func (p *parser) text(most uint64) []byte {
	n := p.uint()
	if n > most || n > uint64(len(p.rest)) {
		p.fail("a text that is too long")
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) ref() uint64 {
	if len(p.rest) < 8 {
		p.fail("it is cut")
		return 0
	}
	v := binary.LittleEndian.Uint64(p.rest)
	p.rest = p.rest[8:]
	return v
}
