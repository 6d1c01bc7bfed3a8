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

	"github.com/wasmactors/wasmactors/host/internal/dormant"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// The states of a checkpoint are in frames, each with the whole parts of some actors, and compressed by itself. A frame begins with a
// piece. Behind the last one is the index, which says how many pieces and parts each frame has: so the state of one actor can be read by
// itself. Checkpoints of earlier releases are one frame without an index.

// frameBytes is how many bytes a frame has at least before they are compressed, unless it is the last one.
const frameBytes = 128 << 10

// packer makes the frames of a checkpoint, and their index.
type packer struct {
	z     *zstd.Encoder
	raw   []byte // of the frame
	to    []byte // all frames
	ends  []int  // of the frames, in to
	index dormant.Builder
	bytes []byte // of the index
	n     int    // parts
}

func newPacker() *packer {
	p := &packer{}
	p.z, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20)) // the options are valid
	return p
}

// add adds a part, which is about of.
func (p *packer) add(of *port.PartOf, b []byte) {
	p.n++
	p.index.Add(of)
	p.raw = append(binary.AppendUvarint(p.raw, uint64(len(b))), b...)
	if len(p.raw) >= frameBytes {
		p.cut()
	}
}

// cut ends a frame.
func (p *packer) cut() {
	if len(p.raw) == 0 {
		return
	}
	before := len(p.to)
	p.to = p.z.EncodeAll(p.raw, p.to)
	p.ends = append(p.ends, len(p.to))
	p.index.Cut(piecesOf(len(p.to) - before))
	if p.raw = p.raw[:0]; cap(p.raw) > 16*frameBytes {
		p.raw = nil
	}
}

// end ends the last frame, and adds the index. It returns how many pieces and bytes are before that.
func (p *packer) end() (pieces uint32, states uint64) {
	p.cut()
	before := 0
	for _, end := range p.ends {
		pieces += uint32(piecesOf(end - before))
		before = end
	}
	p.bytes = p.index.Bytes()
	p.to = p.z.EncodeAll(p.bytes, p.to)
	p.ends = append(p.ends, len(p.to))
	return pieces, uint64(before)
}

func piecesOf(bytes int) int { return (bytes + pieceBytes - 1) / pieceBytes }

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

// unpackIndex reads an index.
func unpackIndex(b []byte) (*dormant.Index, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(math.MaxInt32))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	if b, err = z.DecodeAll(b, nil); err != nil {
		return nil, err
	}
	return dormant.Decode(b)
}

// gathered is a checkpoint that is being read.
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
