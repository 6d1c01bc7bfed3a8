package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Log is a Journal in the files of a folder.
type Log struct {
	opt   Options
	epoch uint64
	id    [16]byte
	lock  io.Closer

	durable atomic.Uint64
	work    chan struct{} // something has changed for the writing goroutine
	done    chan struct{} // it has ended

	awaits atomic.Int64 // what Pending says
	uses   atomic.Int64 // what Used says

	mu      sync.Mutex
	next    Position // of the batch that is collected
	pending []byte   // its body, without the record that was begun
	most    int      // bytes of that
	surely  int      // so long the batch may become, whatever happens meanwhile; 0: not known
	queue   []full   // batches before it, which are long enough
	queued  int64    // bytes of their sectors
	other   []byte   // room for the next body
	free    int64    // bytes of the current file that no batch has been written to
	list    []*segment
	waiting []waiter // by position
	err     error    // why nothing is appended any more
	noRoom  error    // why what was appended cannot be written yet
	closing bool

	// Of the writing goroutine.
	file    File
	cur     *segment
	at      Position // behind the last batch that was written
	synced  Position // all before it is synced
	box     sealer
	spare   chan made // a file that is being made; nil: none
	timer   func() bool
	tick    atomic.Bool // the interval is over
	sectors []byte
	sealed  []byte
	head    [batchHeader]byte
}

// full is a batch that is not yet written.
type full struct {
	at   Position
	body []byte
}

// longBatch is how many bytes a batch has when the next one begins, so that what has to fit into a file has a bound.
const longBatch = 256 << 10

type waiter struct {
	p    Position
	tell chan error
}

// Open opens a log, or begins one in an empty folder. The caller closes it.
func Open(opt Options) (_ *Log, err error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	lock, err := opt.FS.Lock()
	if err != nil {
		return nil, err
	}
	l := &Log{opt: opt, lock: lock, work: make(chan struct{}, 1), done: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	last, err := l.recover()
	if err != nil {
		return nil, err
	}
	// What a life has written is never written over by the next: it has a file of its own.
	size := min(firstSegment, l.opt.Segment)
	f := l.make(size)
	if f.err != nil {
		return nil, f.err
	}
	if err := l.use(f, last); err != nil {
		_ = f.file.Close()
		return nil, err
	}
	l.next, l.at, l.synced = last, last, last
	l.durable.Store(uint64(last))
	if !opt.Manual {
		go l.write()
	}
	return l, nil
}

// firstSegment is how long the first file of a life is. The next ones double, up to Options.Segment.
const firstSegment = 1 << 20

func (o *Options) fill() error {
	if o.FS == nil {
		return errors.New("wal: no file system")
	}
	if o.Rand == nil || o.Sync == Interval && o.After == nil {
		return errors.New("wal: Options.Rand, and for Interval Options.After, have to be given")
	}
	set := func(n *int64, otherwise, least int64) {
		if *n == 0 {
			*n = otherwise
		}
		*n = max(*n, least)
	}
	interval, record, pending := int64(o.Interval), int64(o.Record), int64(o.Pending)
	set(&interval, int64(10*time.Millisecond), 1)
	set(&o.Segment, 64<<20, 64<<10)
	set(&record, 16<<20, 1)
	set(&pending, 32<<20, record+recordHeader)
	if pending > 1<<30 {
		return errors.New("wal: Options.Pending is at most 1 GiB")
	}
	if o.Limit > 0 {
		if least := 4 * max(record, 64<<10); o.Limit < least {
			return fmt.Errorf("wal: Options.Limit has to be at least %d, four records", least)
		}
		o.Segment = min(o.Segment, o.Limit/4)
	}
	o.Segment = o.Segment / sectorSize * sectorSize
	o.Interval, o.Record, o.Pending = time.Duration(interval), int(record), int(pending)
	if o.Key != nil && (len(o.Key) != keySize || o.KeyID == 0) {
		return fmt.Errorf("%w: it needs %d bytes, and an id", ErrKey, keySize)
	}
	return nil
}

// recover reads which files there are, and where the log ends.
func (l *Log) recover() (end Position, err error) {
	names, err := l.opt.FS.List()
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	fenced := uint64(0)
	for _, name := range names {
		switch _, _, ok := parseName(name); {
		case ok:
			s, err := readHeader(l.opt.FS, name)
			if err != nil {
				return 0, err
			}
			l.list = append(l.list, s)
		case name == fenceName:
			if fenced, err = readFence(l.opt.FS); err != nil {
				return 0, err
			}
		case name == spareName || name == fenceName+newSuffix:
			if err := l.opt.FS.Remove(name); err != nil {
				return 0, err
			}
		}
	}
	if err := sortSegments(l.list); err != nil {
		return 0, err
	}
	if len(l.list) == 0 {
		if _, err := io.ReadFull(l.opt.Rand, l.id[:]); err != nil {
			return 0, err
		}
		l.epoch = max(1, fenced)
		return sectorSize, nil // no record is at 0
	}
	last := l.list[len(l.list)-1]
	l.id, l.epoch = last.id, max(last.epoch+1, fenced)
	if last, err = l.endBefore(l.opt.End); err != nil {
		return 0, err
	}
	r, err := l.opt.reader(last, last.room())
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.file.Close() }()
	end, err = r.tail()
	if l.opt.End != 0 {
		end = min(end, l.opt.End-batchHeader)
	}
	return end, err
}

// endBefore removes the files that have only records from a position on, and returns the last one that is left; 0: none is removed. A file
// ends where the next one begins, so what is left of the last one needs no change.
func (l *Log) endBefore(end Position) (last *segment, err error) {
	if end != 0 && (end < l.list[0].start+batchHeader || (end-batchHeader)%sectorSize != 0) {
		return nil, fmt.Errorf("wal: no batch that can be the end begins at %d", end)
	}
	for last = l.list[len(l.list)-1]; end != 0 && last.start >= end-batchHeader && len(l.list) > 1; last = l.list[len(l.list)-1] {
		if err := l.opt.FS.Remove(last.name); err != nil {
			return nil, err
		}
		l.list = l.list[:len(l.list)-1]
	}
	return last, nil
}

// Epoch implements Journal.
func (l *Log) Epoch() uint64 { return l.epoch }

// Durable implements Journal.
func (l *Log) Durable() Position { return Position(l.durable.Load()) }

// Append implements Journal.
func (l *Log) Append(parts ...[]byte) (Position, error) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	to, _, err := l.Begin(n)
	if err != nil {
		return 0, err
	}
	for _, p := range parts {
		to = append(to, p...)
	}
	return l.End(to), nil
}

// Begin begins a record of at most n bytes. The caller appends its data to the buffer and calls End with that; in between the log
// is locked. first says that nothing that was appended before will be read with the record: they are in other batches. After
// an error there is no End.
func (l *Log) Begin(n int) (to []byte, first bool, err error) {
	l.mu.Lock()
	if len(l.pending)+recordHeader+n > l.surely {
		if err := l.refuses(n); err != nil {
			l.mu.Unlock()
			return nil, false, err
		}
	}
	to, l.most = l.pending, n
	first = len(to) == 0
	if n < 0x80 {
		to = append(to, 0)
	} else {
		to = beginLong(to, n)
	}
	return to, first, nil
}

// End ends the record that was begun.
func (l *Log) End(to []byte) Position {
	began := len(l.pending)
	n := len(to) - began - 1
	if l.most < 0x80 {
		to[began] = byte(n)
	} else {
		n = endLong(to, began, l.most)
	}
	if n > l.most {
		panic("wal: a record is longer than was said")
	}
	p := l.next + batchHeader + Position(began)
	l.pending = to
	l.awaits.Store(l.queued + int64(len(to)))
	l.mu.Unlock()
	if began == 0 {
		l.ring()
	}
	return p
}

// refuses is why a record of so many bytes is not appended; the caller holds the lock. If it is, and if there is room for a long
// batch, all further ones of the batch are.
func (l *Log) refuses(n int) error {
	switch {
	case n > l.opt.Record:
		return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, n, l.opt.Record)
	case l.err != nil:
		return l.err
	case l.closing:
		return ErrClosed
	case l.noRoom != nil:
		l.ring() // there may be room by now
		return l.noRoom
	case int(l.queued)+len(l.pending)+recordHeader+n > l.opt.Pending:
		return fmt.Errorf("%w: %d bytes wait", ErrBusy, int(l.queued)+len(l.pending))
	case l.opt.Limit > 0 && l.takes(len(l.pending)+recordHeader+n) > l.opt.Limit:
		return fmt.Errorf("%w: its files have %d bytes of at most %d", ErrFull, l.size()-l.free, l.opt.Limit)
	}
	if len(l.pending) > 0 && len(l.pending)+recordHeader+n > longBatch {
		l.cut()
	}
	if long := min(longBatch, l.opt.Record); int(l.queued)+long <= l.opt.Pending && (l.opt.Limit == 0 || l.takes(long) <= l.opt.Limit) {
		l.surely = long
	}
	return nil
}

// takes is how many bytes the files have when all that waits is written, and a batch whose body has n; the caller holds the
// lock. What a file has left when the next one is begun is cut off, and a file has two batches, or is more than half full.
func (l *Log) takes(n int) int64 {
	waits := l.queued + l.sectorsOf(n)
	return l.size() - l.free + waits + (2+2*waits/l.opt.Segment)*sectorSize
}

// cut ends the batch that is collected; the caller holds the lock.
func (l *Log) cut() {
	n := l.sectorsOf(len(l.pending))
	l.queue = append(l.queue, full{l.next, l.pending})
	l.queued += n
	l.next += Position(n)
	l.pending, l.other, l.surely = l.other[:0], nil, 0
	l.tally()
}

// tally notes what Pending and Used say, after one of its parts has changed: they are asked for each message, without the lock. The
// caller holds it.
func (l *Log) tally() {
	l.awaits.Store(l.queued + int64(len(l.pending)))
	l.uses.Store(l.size() - l.free + l.queued)
}

// sectorsOf is how many bytes a batch takes in the file whose body has n.
func (l *Log) sectorsOf(n int) int64 {
	n += bodySum
	if l.opt.Key != nil {
		n += tagSize
	}
	return int64(sectors(batchHeader+n)) * sectorSize
}

// ring wakes the writing goroutine.
func (l *Log) ring() {
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// Await implements Journal.
func (l *Log) Await(ctx context.Context, p Position) error {
	if p < l.Durable() {
		return nil
	}
	if l.opt.Manual {
		return l.workUntil(ctx, p)
	}
	l.mu.Lock()
	if p < l.Durable() {
		l.mu.Unlock()
		return nil
	}
	if err := l.over(); err != nil {
		l.mu.Unlock()
		return err
	}
	w := waiter{p: p, tell: make(chan error, 1)}
	i, _ := slices.BinarySearchFunc(l.waiting, p+1, func(w waiter, p Position) int { return int(int64(w.p) - int64(p)) })
	l.waiting = slices.Insert(l.waiting, i, w)
	l.mu.Unlock()
	select {
	case err := <-w.tell:
		return err
	case <-ctx.Done():
		l.mu.Lock()
		l.waiting = slices.DeleteFunc(l.waiting, func(x waiter) bool { return x.tell == w.tell })
		l.mu.Unlock()
		return context.Cause(ctx)
	}
}

// over is why what is not durable will not be; the caller holds the lock.
func (l *Log) over() error {
	select {
	case <-l.done:
		if l.err != nil {
			return l.err
		}
		return ErrClosed
	default:
		return nil
	}
}

// snapshot is what a reader starts from.
func (l *Log) snapshot() ([]*segment, Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list), l.Durable()
}

// Trim implements Journal: it removes files that have only records before the position.
func (l *Log) Trim(before Position) error {
	l.mu.Lock()
	n := 0
	for n+1 < len(l.list) && l.list[n+1].start <= min(before, l.Durable()) {
		n++
	}
	gone := slices.Clone(l.list[:n])
	l.list = slices.Delete(l.list, 0, n)
	l.tally()
	l.mu.Unlock()
	// From the first one: a crash leaves files without gaps between them.
	for len(gone) > 0 {
		err := l.opt.FS.Remove(gone[0].name)
		if err == nil {
			gone = gone[1:]
			err = l.opt.FS.SyncFolder()
		}
		if err != nil { // the others are there still: a later Trim begins with them
			l.mu.Lock()
			l.list = slices.Insert(l.list, 0, gone...)
			l.tally()
			l.mu.Unlock()
			return err
		}
	}
	if n > 0 {
		l.ring()
	}
	return nil
}

// Size is how many bytes the files have.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size()
}

// Used is Size without the part of the current file that nothing was written to.
func (l *Log) Used() int64 { return l.uses.Load() }

// Pending is how many bytes wait for the disk.
func (l *Log) Pending() int64 { return l.awaits.Load() }

func (l *Log) size() (n int64) {
	for _, s := range l.list {
		n += s.size
	}
	return n
}

const newSuffix = ".new"

// Fence implements Journal.
func (l *Log) Fence(epoch uint64) error {
	if epoch <= l.epoch {
		return nil
	}
	var s [sectorSize]byte
	copy(s[1:], magic)
	binary.LittleEndian.PutUint64(s[1+len(magic):], epoch)
	closeSector(s[:], headerShift, markFirst)
	err := func() error {
		f, err := l.opt.FS.Create(fenceName + newSuffix)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(s[:], 0)
		if err == nil {
			err = f.Sync()
		}
		if other := f.Close(); err == nil {
			err = other
		}
		if err == nil {
			err = l.opt.FS.Rename(fenceName+newSuffix, fenceName)
		}
		if err == nil {
			err = l.opt.FS.SyncFolder()
		}
		return err
	}()
	if err != nil {
		return err
	}
	l.fail(ErrFenced)
	return nil
}

func readFence(fs FS) (uint64, error) {
	f, err := fs.Open(fenceName)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var s [sectorSize]byte
	if n, err := f.ReadAt(s[:], 0); n < len(s) && err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if stateOf(s[:], headerShift) != written || string(s[1:1+len(magic)]) != magic {
		return 0, &Damage{File: fenceName, What: "what was written has changed"}
	}
	return binary.LittleEndian.Uint64(s[1+len(magic):]), nil
}

// Close implements Journal.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closing, l.surely = true, 0
	l.mu.Unlock()
	l.ring()
	for l.opt.Manual && l.Work() {
	}
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	if l.lock != nil {
		if other := l.lock.Close(); err == nil {
			err = other
		}
		l.lock = nil
	}
	if errors.Is(err, ErrFenced) {
		return nil
	}
	return err
}
