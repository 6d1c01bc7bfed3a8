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

// An index has what a start must know of a checkpoint without its states. Numbers are LEB128, refs 8 bytes, little endian; texts have
// their length before them.
//
//	byte    version, 1
//	frames  how many; of each the pieces that it has, and the parts
//	sorts   how many; the text of each
//	rows    how many, one for each part but the head; of each
//	        how many rows before it its parent is, 0 below /user; the name; the ref; the sort of an inert actor, from 1, else 0;
//	        and of an inert one its turns, its incarnation, and the bytes of its guest's state
const indexVersion = 1

// Frame is a frame of a checkpoint: so many pieces have so many parts, whole ones. Both are 1 at least.
type Frame struct{ Pieces, Parts int }

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
	Incarnation uint64
	Held        int // bytes of its guest's state
}

// Builder makes the index of a checkpoint. The zero value is empty.
type Builder struct {
	frames []Frame
	sorts  map[string]uint64
	texts  []byte
	rows   []byte
	n      uint64  // rows
	parts  uint64  // behind the last frame
	above  []above // the last actor, and those above it
	busy   bool    // /user decides about its children
	last   Part
}

// above is an actor with what a child of it needs to know.
type above struct {
	ref  abi.Ref
	row  uint64 // from 1
	busy bool
}

// Add adds a part, the head first. Each is behind its parent, and nobody else's children are in between.
func (b *Builder) Add(of *Part) {
	if b.parts++; of.Path == "" {
		b.busy = of.Busy
		return
	}
	b.settle(of.Parent)
	b.last = *of
}

// settle adds the row of the last actor: it has children if next is its ref.
func (b *Builder) settle(next abi.Ref) {
	of := &b.last
	if of.Path == "" {
		return
	}
	b.n++
	for len(b.above) > 0 && b.above[len(b.above)-1].ref != of.Parent {
		b.above = b.above[:len(b.above)-1]
	}
	up, busy := uint64(0), b.busy
	if n := len(b.above); n > 0 {
		up, busy = b.n-b.above[n-1].row, b.above[n-1].busy
	}
	b.above = append(b.above, above{of.Ref, b.n, of.Busy})
	b.rows = appendText(binary.AppendUvarint(b.rows, up), of.Name)
	b.rows = binary.LittleEndian.AppendUint64(b.rows, uint64(of.Ref))
	sort, known := b.sorts[of.Sort]
	if of.Sort == "" || next == of.Ref || busy || of.Incarnation > math.MaxUint32 || of.Held > math.MaxInt32 || !known && len(b.sorts) == mostSorts {
		b.rows = append(b.rows, 0)
		return
	}
	if !known {
		if b.sorts == nil {
			b.sorts = map[string]uint64{}
		}
		sort = uint64(len(b.sorts)) + 1
		b.sorts[of.Sort] = sort
		b.texts = appendText(b.texts, of.Sort)
	}
	b.rows = binary.AppendUvarint(binary.AppendUvarint(b.rows, sort), of.Turns)
	b.rows = binary.AppendUvarint(binary.AppendUvarint(b.rows, of.Incarnation), uint64(of.Held))
}

// mostSorts bounds the sorts of an index; actors of others come back at once.
const mostSorts = 1<<15 - 1

// Cut ends a frame: it has the parts that were added since the last one.
func (b *Builder) Cut(pieces int) {
	b.frames = append(b.frames, Frame{Pieces: pieces, Parts: int(b.parts)})
	b.parts = 0
}

// Bytes is the index.
func (b *Builder) Bytes() []byte {
	b.settle(0)
	b.last = Part{}
	to := binary.AppendUvarint([]byte{indexVersion}, uint64(len(b.frames)))
	for _, f := range b.frames {
		to = binary.AppendUvarint(binary.AppendUvarint(to, uint64(f.Pieces)), uint64(f.Parts))
	}
	to = append(binary.AppendUvarint(to, uint64(len(b.sorts))), b.texts...)
	return append(binary.AppendUvarint(to, b.n), b.rows...)
}

func appendText(to []byte, s string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(s))), s...)
}

// ErrIndex wraps the reason why bytes are no index.
var ErrIndex = errors.New("not the index of a checkpoint")

// row is an actor. Its part is the one behind those of the rows before it and the head.
type row struct {
	ref    abi.Ref
	turns  uint64
	name   uint32 // where it begins in names
	parent int32  // a row; below 0: /user
	life   uint32 // the incarnation
	held   uint32
	sort   uint16 // from 1; 0: it is not dormant
	length uint8  // of the name
}

// Index is one that was read.
type Index struct {
	Frames []Frame
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
		x.Frames = append(x.Frames, Frame{int(pieces), int(has)})
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
