package wal

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sort"
)

// chunk is how many bytes are read at once, at least.
const chunk = 256 << 10

// reader reads the batches of a segment, in order.
type reader struct {
	seg  *segment
	file File
	end  Position // where the segment ends, as far as anybody knows
	most int      // bytes of a body
	box  cipher.AEAD

	least int64    // bytes that are read at once, at least
	buf   []byte   // sectors, from position base
	base  Position //
	body  []byte
}

// errTail says that the log ends here: a batch that was never written, or not to its end.
var errTail = errors.New("the end of the log")

func (r *reader) damage(at Position, what string) error {
	return &Damage{File: r.seg.name, At: at, What: what}
}

// load has the sectors of [from, to) in buf and returns them.
func (r *reader) load(from, to Position) ([]byte, error) {
	if from >= r.base && to <= r.base+Position(len(r.buf)) {
		return r.buf[from-r.base : to-r.base], nil
	}
	n := min(max(int64(to-from), r.least), int64(r.end-from))
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	r.buf, r.base = r.buf[:n], from
	if m, err := r.file.ReadAt(r.buf, r.seg.offset(from)); m < len(r.buf) {
		r.buf = r.buf[:0]
		return nil, fmt.Errorf("%s: %w", r.seg.name, err)
	}
	return r.buf[:to-from], nil
}

// header reads the header of the batch at a position.
func (r *reader) header(at Position) (b batch, err error) {
	if at >= r.end {
		return b, errTail
	}
	s, err := r.load(at, at+sectorSize)
	if err != nil {
		return b, err
	}
	if err := r.sector(s, at, markFirst); err != nil {
		return b, err
	}
	b, err = decodeBatch(s[1:], at, r.most)
	switch {
	case errors.Is(err, errVersion):
		return b, &VersionError{File: r.seg.name, Has: b.version}
	case err != nil:
		return b, r.damage(at, err.Error())
	case b.epoch != r.seg.epoch:
		return b, r.damage(at, fmt.Sprintf("a batch of writer %d in a file of writer %d", b.epoch, r.seg.epoch))
	case b.sealed != (r.seg.key != 0):
		return b, r.damage(at, "a batch is encrypted and its file not, or the reverse")
	case b.end() > r.end:
		return b, r.damage(at, "a batch that is longer than its file")
	}
	return b, nil
}

// batch reads the batch at a position. The body is valid until the next call.
func (r *reader) batch(at Position) (b batch, body []byte, err error) {
	if b, err = r.header(at); err != nil {
		return b, nil, err
	}
	all, err := r.load(at, b.end())
	if err != nil {
		return b, nil, err
	}
	r.body = r.body[:0]
	for i := 0; i < len(all); i += sectorSize {
		s, mark := all[i:][:sectorSize], byte(markMore)
		if i == 0 {
			mark = markFirst
		}
		if err := r.sector(s, at+Position(i), mark); err != nil {
			return b, nil, err
		}
		r.body = append(r.body, s[1:1+sectorData]...)
	}
	body = r.body[batchHeader:][:b.size]
	if b.sealed {
		if r.box == nil {
			return b, nil, fmt.Errorf("%w: %s is encrypted with key %d", ErrKey, r.seg.name, r.seg.key)
		}
		if body, err = openBody(r.box, r.body[:batchHeader], at, body); err != nil {
			return b, nil, fmt.Errorf("%w: %s at position %d cannot be decrypted with key %d", ErrKey, r.seg.name, at, r.seg.key)
		}
	}
	if body, err = b.records(body); err != nil {
		return b, nil, r.damage(at, err.Error())
	}
	return b, body, nil
}

func (r *reader) sector(s []byte, at Position, mark byte) error {
	switch state := stateOf(s, at); {
	case state == blank || state == torn:
		return errTail
	case state == damaged:
		return r.damage(at, "what was written has changed")
	case s[0] != mark:
		return r.damage(at, "a batch begins inside another, or does not begin")
	}
	return nil
}

// tail finds where a segment ends: at the first batch that is not there, if no later one says that it was
// durable.
func (r *reader) tail() (Position, error) {
	at := r.seg.start
	for {
		b, _, err := r.batch(at)
		if err == nil {
			at = b.end()
			continue
		}
		if !errors.Is(err, errTail) {
			return at, err
		}
		return at, r.later(at)
	}
}

// later looks for a batch that was made when what is missing at a position was durable.
func (r *reader) later(missing Position) error {
	for at := missing; at < r.end; at += sectorSize {
		s, err := r.load(at, at+sectorSize)
		if err != nil {
			return err
		}
		switch state := stateOf(s, at); {
		case state == damaged:
			return r.damage(at, "what was written has changed")
		case state != written || s[0] != markFirst:
			continue
		}
		if b, err := decodeBatch(s[1:], at, r.most); err == nil && b.epoch == r.seg.epoch && b.synced > missing {
			return r.damage(missing, fmt.Sprintf("it was durable when the batch at %d was written, and is gone", at))
		}
	}
	return nil
}

// begins finds the batch that has the record at a position, or the first one after it.
func (r *reader) begins(p Position) (Position, error) {
	for at := p - p%sectorSize; ; at -= sectorSize {
		from := at
		if at < r.base || len(r.buf) == 0 { // it goes back
			from = max(r.seg.start, at+sectorSize-min(at, chunk))
		}
		s, err := r.load(from, at+sectorSize)
		if err != nil {
			return at, err
		}
		s = s[len(s)-sectorSize:]
		if state := stateOf(s, at); state != written {
			return at, r.damage(at, "what was written has changed")
		}
		if s[0] == markFirst {
			return at, nil
		}
		if at <= r.seg.start {
			return at, r.damage(at, "a file that does not begin with a batch")
		}
	}
}

// reader opens a segment whose batches end at end.
func (o *Options) reader(seg *segment, end Position) (*reader, error) {
	box, err := o.cipher(seg)
	if err != nil {
		return nil, err
	}
	file, err := o.FS.Open(seg.name)
	if err != nil {
		return nil, err
	}
	return &reader{seg: seg, file: file, end: min(end, seg.room()), most: int(min(seg.size, 1<<31-1)), box: box, least: chunk}, nil
}

// cipher is a segment's, nil if it is not encrypted.
func (o *Options) cipher(seg *segment) (cipher.AEAD, error) {
	if seg.key == 0 {
		return nil, nil
	}
	key := o.Key
	if seg.key != o.KeyID || key == nil {
		if o.Keys == nil {
			return nil, fmt.Errorf("%w: %s is encrypted with key %d", ErrKey, seg.name, seg.key)
		}
		var err error
		if key, err = o.Keys(seg.key); err != nil {
			return nil, fmt.Errorf("%w: key %d of %s: %w", ErrKey, seg.key, seg.name, err)
		}
	}
	return cipherOf(key, seg.salt[:])
}

// Read implements Journal. Files are opened one after the other; those that Trim has removed by then are left out.
func (l *Log) Read(from Position) iter.Seq2[Record, error] { return l.ReadWithout(from, nil) }

// Span is a part of a log, of whole batches: the positions of the first record in it, and of the first one behind it.
type Span struct{ From, To Position }

// ReadWithout is Read without the records of some spans, which are in order and do not overlap. They are not looked at.
func (l *Log) ReadWithout(from Position, spans []Span) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		list, end := l.snapshot()
		for i, seg := range list {
			stop := end
			if i+1 < len(list) {
				stop = min(stop, list[i+1].start)
			}
			if from >= stop || seg.start >= end || seg.start >= stop {
				continue
			}
			more, err := l.readSegment(seg, from, stop, spans, yield)
			if errors.Is(err, fs.ErrNotExist) && l.trimmed(seg) {
				continue
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

// trimmed reports whether a segment has been taken away.
func (l *Log) trimmed(seg *segment) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.Contains(l.list, seg)
}

// readSegment yields the records of a segment below stop. More is false when nobody wants more.
func (l *Log) readSegment(seg *segment, from, stop Position, spans []Span, yield func(Record, error) bool) (more bool, err error) {
	if from = max(from, seg.start); beyond(spans, from) >= stop {
		return true, nil
	}
	r, err := l.opt.reader(seg, stop)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.file.Close() }()
	if r.end < stop {
		return false, r.damage(r.end, "the file is shorter than what was written")
	}
	at := seg.start
	if from > at {
		if at, err = r.begins(from); err != nil {
			return false, err
		}
	}
	for {
		if at = beyond(spans, at); at >= stop {
			return true, nil
		}
		b, body, err := r.batch(at)
		if errors.Is(err, errTail) {
			err = r.damage(at, "a batch is gone")
		}
		if err != nil {
			return false, err
		}
		p := at + batchHeader
		for first := true; len(body) > 0; first = false {
			data, n, err := b.record(body)
			if err != nil {
				return false, r.damage(p, err.Error())
			}
			if p >= from && !yield(Record{At: p, Epoch: b.epoch, First: first, Data: data}, nil) {
				return false, nil
			}
			body, p = body[n:], p+Position(n)
		}
		at = b.end()
	}
}

// beyond is the batch at a position, or that behind the spans that it is in.
func beyond(spans []Span, at Position) Position {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].To-batchHeader > at })
	for ; i < len(spans) && spans[i].From-batchHeader <= at; i++ {
		at = spans[i].To - batchHeader
	}
	return at
}

// readHeader is the first sector of a file.
func readHeader(in FS, name string) (*segment, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	head := make([]byte, sectorSize)
	if n, err := f.ReadAt(head, 0); n < len(head) {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		head = nil
	}
	return decodeSegment(name, head, size)
}
