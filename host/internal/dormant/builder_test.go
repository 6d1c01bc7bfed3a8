package dormant

import (
	"encoding/binary"
	"math"

	"github.com/wasmactors/wasmactors/abi"
)

// Builder makes the index of a checkpoint, as earlier releases have. The zero value is empty.
type Builder struct {
	frames []IndexFrame
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

// Cut ends a frame: it has the parts that were added since the last one.
func (b *Builder) Cut(pieces int) {
	b.frames = append(b.frames, IndexFrame{Pieces: pieces, Parts: int(b.parts)})
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
