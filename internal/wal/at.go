package wal

import (
	"errors"
	"fmt"
	"sort"
)

// Batch is the position of the first record of the batch that the record which was begun is in. It is called between Begin and End.
func (l *Log) Batch() Position { return l.next + batchHeader }

// Between calls f while nothing is appended. f must not call the log.
func (l *Log) Between(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// Behind is the position of the first record behind a batch whose first record is at first, and whose last one ends at end.
func (l *Log) Behind(first, end Position) Position {
	return first + Position(l.sectorsOf(int(end-first)))
}

// First is the position of the first record; 0: there is none that is durable.
func (l *Log) First() Position {
	list, end := l.snapshot()
	if p := list[0].start + batchHeader; p < end {
		return p
	}
	return 0
}

// SizeFrom is how many bytes the files have that have records from a position on: what is left when Trim was called with it.
func (l *Log) SizeFrom(p Position) (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.list {
		if i+1 == len(l.list) || l.list[i+1].start > p {
			n += s.size
		}
	}
	return n - l.free + l.queued
}

// ErrNowhere says that the log has no record at a position.
var ErrNowhere = errors.New("the log has no such record")

// fileOf is the file that has the batch with a first record, and where its batches end.
func (l *Log) fileOf(first Position) (seg *segment, stop Position, err error) {
	list, end := l.snapshot()
	i := sort.Search(len(list), func(i int) bool { return list[i].start > first }) - 1
	if i < 0 || first >= end || first < list[i].start+batchHeader || (first-batchHeader)%sectorSize != 0 {
		return nil, 0, fmt.Errorf("%w: no batch begins at position %d", ErrNowhere, first)
	}
	if i+1 < len(list) {
		end = min(end, list[i+1].start)
	}
	return list[i], end, nil
}

// Identity tells the file that has the batch with a first record from all others: the log's identity, and the file's salt. Two copies of a
// log that go different ways have no file in common that only one of them has written.
func (l *Log) Identity(first Position) (id [16 + saltSize]byte, err error) {
	seg, _, err := l.fileOf(first)
	if err != nil {
		return id, err
	}
	copy(id[copy(id[:], seg.id[:]):], seg.salt[:])
	return id, nil
}

// ReadAt reads the durable record at a position; first is that of the first record of its batch. It reads no more of the batch than it has
// to, and checks what it reads. It cannot tell whether a record begins there, but where the batch is encrypted: the caller knows by what
// is in it.
func (l *Log) ReadAt(first, at Position) ([]byte, error) {
	seg, stop, err := l.fileOf(first)
	if err != nil {
		return nil, err
	}
	r, err := l.opt.reader(seg, stop)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.file.Close() }()
	r.least = sectorSize
	b, err := r.header(first - batchHeader)
	if err == nil && (b.version == 1 || b.sealed) {
		return r.among(b.at, at)
	}
	if err != nil {
		return nil, r.gone(first, err)
	}
	room := b.size - bodySum
	if at < first || at-first >= Position(max(room, 0)) {
		return nil, fmt.Errorf("%w: position %d is not in its batch", ErrNowhere, at)
	}
	from := int(at - first)
	head, err := r.part(&b, from, min(from+recordHeader, room))
	if err != nil {
		return nil, r.gone(first, err)
	}
	n, size, ok := length(head)
	if !ok || n > uint64(room-from-size) {
		return nil, fmt.Errorf("%w: no record begins at position %d", ErrNowhere, at)
	}
	data, err := r.part(&b, from+size, from+size+int(n))
	if err != nil {
		return nil, r.gone(first, err)
	}
	return data, nil
}

// gone is an error of what has been durable.
func (r *reader) gone(first Position, err error) error {
	if errors.Is(err, errTail) {
		return r.damage(first-batchHeader, "a batch is gone")
	}
	return err
}

// among reads a record of a batch that has to be read as a whole.
func (r *reader) among(batch, at Position) ([]byte, error) {
	b, body, err := r.batch(batch)
	if err != nil {
		return nil, r.gone(batch+batchHeader, err)
	}
	for p := batch + batchHeader; len(body) > 0 && p <= at; {
		data, n, err := b.record(body)
		if err != nil {
			return nil, r.damage(p, err.Error())
		}
		if p == at {
			return data, nil
		}
		body, p = body[n:], p+Position(n)
	}
	return nil, fmt.Errorf("%w: no record begins at position %d", ErrNowhere, at)
}

// part reads a part of the body of a batch, whose checksum is not checked: those of its sectors are.
func (r *reader) part(b *batch, from, to int) ([]byte, error) {
	out := make([]byte, 0, to-from)
	from, to = from+batchHeader, to+batchHeader
	if to <= from {
		return out, nil
	}
	begin, end := from/sectorData, (to+sectorData-1)/sectorData
	all, err := r.load(b.at+Position(begin*sectorSize), b.at+Position(end*sectorSize))
	if err != nil {
		return nil, err
	}
	for i := begin; i < end; i++ {
		s, mark := all[(i-begin)*sectorSize:][:sectorSize], byte(markMore)
		if i == 0 {
			mark = markFirst
		}
		if err := r.sector(s, b.at+Position(i*sectorSize), mark); err != nil {
			return nil, err
		}
		data := s[1 : 1+sectorData]
		out = append(out, data[max(from-i*sectorData, 0):min(to-i*sectorData, sectorData)]...)
	}
	return out, nil
}
