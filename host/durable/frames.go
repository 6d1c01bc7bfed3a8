package durable

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// The parts of a checkpoint are in frames, each with the whole parts of some actors, and compressed by itself. A frame begins with a
// piece. So the state of one actor can be read by itself. The index is behind the last frame.

// frameBytes is how many bytes a frame has at least before they are compressed, unless it is the last one.
const frameBytes = 128 << 10

// packer makes the frames of a checkpoint.
type packer struct {
	z      *zstd.Encoder
	raw    []byte // of the frame
	parts  int    // in it
	to     []byte // all frames
	change dormant.Change
}

func newPacker() *packer {
	p := &packer{}
	p.z, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)) // the options are valid
	return p
}

// add adds a part, which is about of.
func (p *packer) add(of *port.PartOf, b []byte) {
	if of.Path == "" {
		p.cut() // it is the first one of its frame
		p.change.Head, p.change.Busy = len(p.change.Frames), of.Busy
		p.put(b)
		return
	}
	p.change.Parts = append(p.change.Parts, dormant.PartAt{Of: of, Ref: of.Ref, Frame: len(p.change.Frames), Slot: p.parts})
	p.put(b)
}

// move adds the part of an actor as it was.
func (p *packer) move(ref abi.Ref, b []byte) {
	p.change.Parts = append(p.change.Parts, dormant.PartAt{Ref: ref, Frame: len(p.change.Frames), Slot: p.parts})
	p.put(b)
}

func (p *packer) put(b []byte) {
	p.raw = append(binary.AppendUvarint(p.raw, uint64(len(b))), b...)
	if p.parts++; len(p.raw) >= frameBytes || p.parts == dormant.MostParts {
		p.cut()
	}
}

// cut ends a frame.
func (p *packer) cut() {
	if p.parts == 0 {
		return
	}
	before := len(p.to)
	p.to = p.z.EncodeAll(p.raw, p.to)
	p.change.Frames = append(p.change.Frames, dormant.Frame{Parts: p.parts, Bytes: len(p.to) - before})
	if p.raw, p.parts = p.raw[:0], 0; cap(p.raw) > 16*frameBytes {
		p.raw = nil
	}
}

// mostPart bounds a part: the memory of a guest, and what the host holds for it.
const mostPart = 5 << 30

// smallPart is how many bytes a part has at most that shares its room with others.
const smallPart = 16 << 10

// unpack returns the parts in frames, one behind the other.
func unpack(b []byte) (parts [][]byte, err error) {
	z := unpackers.Get().(*unpacker)
	defer unpackers.Put(z)
	if err := z.Reset(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	defer func() { _ = z.Reset(nil) }()
	r := z.buf
	r.Reset(z)
	var room []byte // for small parts, which are many
	for {
		n, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err == nil && n > mostPart {
			err = fmt.Errorf("a part of %d bytes", n)
		}
		var part []byte
		switch {
		case err != nil:
		case n <= smallPart:
			if uint64(len(room)) < n {
				room = make([]byte, frameBytes+smallPart) // a frame of such parts fits
			}
			part, room = room[:n:n], room[n:]
			_, err = io.ReadFull(r, part)
		default:
			var large bytes.Buffer // it grows with what is there
			_, err = io.CopyN(&large, r, int64(n))
			part = large.Bytes()
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
}

// unpacker decompresses, one frame after the other: making one takes longer than a frame does.
type unpacker struct {
	*zstd.Decoder
	buf *bufio.Reader
}

var unpackers = sync.Pool{New: func() any {
	z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20)) // the options are valid
	return &unpacker{z, bufio.NewReader(nil)}
}}

// expand decompresses an index.
func expand(b []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(math.MaxInt32))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(b, nil)
}

// unpackIndex reads an index of an earlier release.
func unpackIndex(b []byte) (*dormant.Index, error) {
	b, err := expand(b)
	if err != nil {
		return nil, err
	}
	return dormant.Decode(b)
}

// gathered is a checkpoint of an earlier release that is being read, of which the parts are kept.
type gathered struct {
	at     wal.Position // of its mark; 0: none was seen
	data   []byte
	pieces uint32
}

// add takes a piece; others than the next one are of a checkpoint that was given up.
func (g *gathered) add(p *piece) {
	if g.at != 0 && p.mark == g.at && p.n == g.pieces {
		g.data, g.pieces = append(g.data, p.data...), g.pieces+1
	}
}

// end returns the parts; nil: it is the end of another checkpoint.
func (g *gathered) end(d *done) ([][]byte, error) {
	if g.at == 0 || d.mark != g.at {
		return nil, nil
	}
	if d.pieces != g.pieces || d.bytes != uint64(len(g.data)) || crc32.Checksum(g.data, castagnoli) != d.sum {
		return nil, fmt.Errorf("%w: the checkpoint of position %d has other bytes than were written", ErrRecord, d.mark)
	}
	states := g.data
	var err error
	if d.frames > 0 {
		states = g.data[:d.states]
		var index *dormant.Index
		if index, err = unpackIndex(g.data[d.states:]); err == nil && index.Rows() != int(d.actors) {
			err = fmt.Errorf("an index of %d actors instead of %d", index.Rows(), d.actors)
		}
	}
	var parts [][]byte
	if err == nil {
		parts, err = unpack(states)
	}
	if err == nil && len(parts) != int(d.actors)+1 {
		err = fmt.Errorf("%d parts instead of %d", len(parts), d.actors+1)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the checkpoint of position %d: %w", ErrRecord, d.mark, err)
	}
	return parts, nil
}
