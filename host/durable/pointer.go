package durable

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// A pointer says where in the log the last complete checkpoint is, so that a start does not have to look for it. It is a file beside the
// log's, which is written after each checkpoint and never synced. What it says is checked against the log; if it is not there, not of this
// log or not what was written, the whole log is read instead. That leads to the same. So it does for those of earlier releases.
//
//	bytes 0-4    "waCP" and a version, 2
//	48 bytes     identity of the file of the log that has the checkpoint's end
//	4 x 8 bytes  the mark's batch, the mark, the end's batch, the end: positions, little endian
//	end          its bytes, as in the log, with their number before them
//	spans        how many; of each how far behind the one before it begins, and how long it is: batches of nothing but pieces
//	32 bytes     HMAC-SHA256 of all before, with a key that follows from the system's secret and the key of the log
//
// Numbers without a size are LEB128. A batch is the position of its first record.
const (
	pointerName = "checkpoint"
	pointerHead = "waCP\x02"
	mostPointer = 64 << 20 // bytes; a piece takes about 5, a larger one is not written
)

// pointer is one.
type pointer struct {
	file       [48]byte
	mark, last spot
	end        []byte // the record
	spans      []wal.Span

	ended  *ended // end, decoded
	pieces uint32 // that were written
}

// spot is where a record is: the position of the first one of its batch, and its own.
type spot struct{ batch, at wal.Position }

// inBook is the place as a book has it.
func (x spot) inBook() dormant.Spot { return dormant.Spot{Batch: uint64(x.batch), At: uint64(x.at)} }

// errPointer says that a pointer cannot be used. Nobody is told.
var errPointer = errors.New("not the pointer of this log")

// pointerKey is the key of the checksum.
func (s *Store) pointerKey() []byte {
	h := hmac.New(sha256.New, s.secret[:])
	_, _ = h.Write([]byte("wasmactors checkpoint\x00"))
	_, _ = h.Write(s.opt.Key)
	return h.Sum(nil)
}

func (p *pointer) encode(key []byte) []byte {
	b := append([]byte(pointerHead), p.file[:]...)
	for _, at := range []wal.Position{p.mark.batch, p.mark.at, p.last.batch, p.last.at} {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	b = binary.AppendUvarint(appendString(b, p.end), uint64(len(p.spans)))
	before := wal.Position(0)
	for _, s := range p.spans {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.From-before)), uint64(s.To-s.From))
		before = s.To
	}
	return sumOf(key, b).Sum(b)
}

// sumOf is the checksum of bytes.
func sumOf(key, b []byte) interface{ Sum([]byte) []byte } {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(b)
	return h
}

// decodePointer is the inverse of encode. What it returns is well formed: whether it is about this log is to be seen.
func decodePointer(b, key []byte) (*pointer, error) {
	n := len(b) - sha256.Size
	if n < len(pointerHead)+48+4*8 || string(b[:len(pointerHead)]) != pointerHead || !hmac.Equal(b[n:], sumOf(key, b[:n]).Sum(nil)) {
		return nil, errPointer
	}
	p, in := &pointer{}, bytes.NewReader(b[len(pointerHead):n])
	_, _ = in.Read(p.file[:])
	for _, at := range []*wal.Position{&p.mark.batch, &p.mark.at, &p.last.batch, &p.last.at} {
		var n [8]byte
		_, _ = in.Read(n[:])
		*at = wal.Position(binary.LittleEndian.Uint64(n[:]))
	}
	size, err := binary.ReadUvarint(in)
	if err != nil || size > uint64(in.Len()) {
		return nil, errPointer
	}
	p.end = make([]byte, size)
	_, _ = in.Read(p.end)
	v, err := decode(p.end)
	if err != nil {
		return nil, errPointer
	}
	ok := false
	if p.ended, ok = v.(*ended); !ok || p.ended.mark != p.mark.at || p.last.at <= p.ended.index[len(p.ended.index)-1].at {
		return nil, errPointer
	}
	// pair reads two numbers, and returns what they say about a place behind another one.
	pair := func(before wal.Position) (from, to wal.Position, ok bool) {
		x, err := binary.ReadUvarint(in)
		y, wrong := binary.ReadUvarint(in)
		from = before + wal.Position(x)
		to = from + wal.Position(y)
		return from, to, err == nil && wrong == nil && from >= before && to >= from
	}
	count, err := binary.ReadUvarint(in)
	if err != nil || count > uint64(in.Len()) {
		return nil, errPointer
	}
	p.spans = make([]wal.Span, count)
	for i, before := 0, wal.Position(0); i < len(p.spans); i++ {
		x := &p.spans[i]
		if x.From, x.To, ok = pair(before); !ok || x.From <= p.mark.at || x.To > p.last.batch || x.From == x.To {
			return nil, errPointer
		}
		before = x.To
	}
	if in.Len() > 0 {
		return nil, errPointer
	}
	return p, nil
}

// checkWith compares the pointer with the log.
func (p *pointer) checkWith(log *wal.Log) error {
	id, err := log.Identity(p.last.batch)
	if err != nil {
		return err
	}
	end, err := log.ReadAt(p.last.batch, p.last.at)
	if err != nil {
		return err
	}
	begin, err := log.ReadAt(p.mark.batch, p.mark.at)
	if err == nil && (id != p.file || !bytes.Equal(end, p.end) || !bytes.Equal(begin, []byte{version, tagMark})) {
		err = errPointer
	}
	return err
}

// point writes a pointer. That it cannot be written matters to nobody: the next start takes longer.
func (s *Store) point(p *pointer) {
	if p == nil {
		return
	}
	b := p.encode(s.pointerKey())
	if len(b) > mostPointer {
		return
	}
	f, err := s.fs.Create(pointerName)
	if err != nil {
		return
	}
	_, _ = f.WriteAt(b, 0)
	_ = f.Close()
}

// pointer is the one that is there, checked against the log.
func (s *Store) pointer() (*pointer, error) {
	f, err := s.fs.Open(pointerName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err == nil && size > mostPointer {
		err = errPointer
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, fmt.Errorf("%s: %w", pointerName, errors.Join(err, io.ErrUnexpectedEOF))
	}
	p, err := decodePointer(b, s.pointerKey())
	if err == nil {
		err = p.checkWith(s.log)
	}
	return p, err
}

// spans notes which batches of the log have pieces of the present checkpoint, and nothing else. It is used with the log's lock.
type spans struct {
	all   []wal.Span
	now   wal.Span // of this batch: its first record, and behind the last one; From is 0: it has begun with something else
	mixed bool     // this batch has something else
}

// next is called when a batch begins.
func (x *spans) next(log *wal.Log) {
	if !x.mixed && x.now.From != 0 {
		to := log.Behind(x.now.From, x.now.To)
		if n := len(x.all); n > 0 && x.all[n-1].To == x.now.From {
			x.all[n-1].To = to
		} else {
			x.all = append(x.all, wal.Span{From: x.now.From, To: to})
		}
	}
	x.now, x.mixed = wal.Span{}, false
}

// begins is called when a record was begun that is no piece of a checkpoint, with the log's lock. first says that a batch begins with it.
func (s *Store) begins(first bool) {
	if first {
		s.shared.begin()
		s.spans.next(s.log)
	}
	s.spans.mixed = true
}

// beginsPiece is begins for a piece.
func (s *Store) beginsPiece(n int, first bool) {
	if first {
		s.shared.begin()
		s.spans.next(s.log)
		s.spans.now.From = s.log.Batch()
	}
	if n == 0 {
		s.spans.all = nil
	}
}
