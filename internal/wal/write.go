package wal

import (
	"cmp"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// sealer is what encrypts, if anything does.
type sealer = cipher.AEAD

// made is a file of zeros.
type made struct {
	file File
	size int64
	err  error
}

// write is the goroutine that writes.
func (l *Log) write() {
	defer l.end()
	for range l.work {
		for l.step() {
		}
		if l.finished() {
			return
		}
	}
}

// finished reports whether the log has nothing to write any more.
func (l *Log) finished() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil || l.closing && (len(l.pending) == 0 && len(l.queue) == 0 || l.noRoom != nil)
}

// Work has a manual log write and sync what has arrived, once, and reports whether there was anything to do.
func (l *Log) Work() bool {
	select {
	case <-l.done:
		return false
	default:
	}
	did := l.step()
	if !did && l.finished() {
		l.end()
	}
	return did
}

// workUntil is Await of a manual log.
func (l *Log) workUntil(ctx context.Context, p Position) error {
	for p >= l.Durable() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !l.Work() && p >= l.Durable() {
			l.mu.Lock()
			defer l.mu.Unlock()
			return cmp.Or(l.over(), l.noRoom, ErrClosed)
		}
	}
	return nil
}

// step writes what has arrived, or syncs what was written; false: there is nothing to do.
func (l *Log) step() bool {
	if l.tick.Swap(false) {
		l.timer = nil
		if err := l.sync(); err != nil {
			l.fail(err)
			return false
		}
	}
	l.mu.Lock()
	if l.err == nil && len(l.pending) > 0 {
		l.cut()
	}
	todo := len(l.queue)
	if l.err != nil {
		todo = 0
	}
	l.mu.Unlock()
	if todo == 0 {
		return false
	}
	var err error
	for range todo {
		if err = l.put(); err != nil {
			break
		}
	}
	if failed := l.settle(); failed != nil {
		l.fail(failed)
		return false
	}
	l.tell()
	switch {
	case err == nil:
	case errors.Is(err, ErrFailed):
		l.fail(err)
		return false
	default:
		l.mu.Lock()
		l.surely = 0
		l.noRoom = err
		l.mu.Unlock()
		return false
	}
	return true
}

const tagSize = 16

// put writes the first batch that is queued. An error that is no ErrFailed says that there is no room for it.
func (l *Log) put() error {
	l.mu.Lock()
	first := l.queue[0]
	l.mu.Unlock()
	b := batch{at: first.at, epoch: l.epoch}
	need := l.sectorsOf(len(first.body))
	if need > int64(l.cur.room()-b.at) {
		if err := l.roll(b.at, need); err != nil {
			return err
		}
	}
	b.synced = l.synced
	if int64(cap(l.sectors)) < need {
		l.sectors = make([]byte, need)
	}
	to := l.sectors[:need]
	first.body = closeBody(first.body)
	sealed := b.spread(to, first.body, l.box, &l.head, l.sealed)
	if l.box != nil {
		l.sealed = sealed
	}
	if need > 4*longBatch {
		l.sectors, l.sealed = nil, nil
	}
	if _, err := l.file.WriteAt(to, l.cur.offset(b.at)); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFailed, l.cur.name, err)
	}
	l.at = b.at + Position(need)
	l.mu.Lock()
	l.queue = append(l.queue[:0], l.queue[1:]...)
	l.queued -= need
	l.free = int64(l.cur.room() - l.at)
	l.tally()
	l.noRoom = nil
	if cap(first.body) <= 4*longBatch {
		l.other = first.body[:0]
	}
	l.mu.Unlock()
	return nil
}

// settle syncs what was written, now or in time.
func (l *Log) settle() error {
	switch l.opt.Sync {
	case Always:
		return l.sync()
	case Interval:
		if l.timer == nil && l.synced < l.at {
			l.timer = l.opt.After(l.opt.Interval, func() { l.tick.Store(true); l.ring() })
		}
	}
	return nil
}

// sync syncs all that was written.
func (l *Log) sync() error {
	if l.synced == l.at {
		return nil
	}
	if err := l.file.SyncData(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFailed, l.cur.name, err)
	}
	l.synced = l.at
	return nil
}

// tell says how far it has come.
func (l *Log) tell() {
	l.mu.Lock()
	l.durable.Store(uint64(l.at))
	n := 0
	for n < len(l.waiting) && l.waiting[n].p < l.at {
		l.waiting[n].tell <- nil
		n++
	}
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.mu.Unlock()
	if l.opt.Progress != nil {
		l.opt.Progress(l.at, nil)
	}
}

// fail ends the log.
func (l *Log) fail(err error) {
	l.mu.Lock()
	l.surely = 0
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.ring()
}

// end ends the writing goroutine.
func (l *Log) end() {
	if l.timer != nil {
		l.timer()
	}
	l.mu.Lock()
	failed := l.err != nil
	l.mu.Unlock()
	if !failed {
		if err := l.sync(); err != nil {
			l.fail(err)
		}
	}
	if l.spare != nil {
		if s := <-l.spare; s.file != nil {
			_ = s.file.Close()
			_ = l.opt.FS.Remove(spareName)
		}
	}
	// Where nothing follows, nothing has to be kept free.
	if !failed && l.file.Truncate(l.cur.offset(l.at)) == nil {
		_ = l.file.Sync()
	}
	_ = l.file.Close()
	l.mu.Lock()
	if l.err == nil && l.noRoom != nil && len(l.pending)+len(l.queue) > 0 {
		l.err = l.noRoom
	}
	close(l.done)
	err := l.err
	if err != nil && l.opt.Progress != nil {
		defer l.opt.Progress(l.Durable(), err)
	}
	if err == nil {
		err = ErrClosed
	}
	for _, w := range l.waiting {
		w.tell <- err
	}
	l.waiting = nil
	l.mu.Unlock()
}

// make makes a file of zeros. It is durable that it has them before it is used.
func (l *Log) make(size int64) made {
	f, err := l.opt.FS.Create(spareName)
	if err != nil {
		return made{err: err}
	}
	var block [64 << 10]byte
	for at := int64(0); at < size && err == nil; at += int64(len(block)) {
		_, err = f.WriteAt(block[:min(size-at, int64(len(block)))], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Close()
		_ = l.opt.FS.Remove(spareName)
		return made{err: err}
	}
	return made{file: f, size: size}
}

// cutRest takes from the present file what nothing will be written to, from a position on: with a limit, Append counts it
// as room for what it takes.
func (l *Log) cutRest(from Position) error {
	used := l.cur.offset(from)
	if l.opt.Limit == 0 || used >= l.cur.size {
		return nil
	}
	if err := l.file.Truncate(used); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFailed, l.cur.name, err)
	}
	cut := *l.cur // readers have the other one
	cut.size = used
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur, l.list[len(l.list)-1], l.free = &cut, &cut, 0
	l.tally()
	return nil
}

// roll goes on in another file, which has room for so many bytes.
func (l *Log) roll(start Position, need int64) error {
	if err := l.sync(); err != nil {
		return err
	}
	if err := l.cutRest(start); err != nil {
		return err
	}
	need += sectorSize // the header
	l.mu.Lock()
	total := l.size()
	l.mu.Unlock()
	var f made
	if l.spare != nil {
		f = <-l.spare
		l.spare = nil
		if f.err == nil && f.size < need {
			_ = f.file.Close()
			f = made{}
		}
	}
	if f.file == nil {
		size := max(min(2*l.cur.size, l.opt.Segment), need)
		if l.opt.Limit > 0 {
			size = max(need, min(size, l.opt.Limit-total))
			if total+size > l.opt.Limit {
				return fmt.Errorf("%w: its files have %d bytes of at most %d", ErrFull, total, l.opt.Limit)
			}
		}
		if f = l.make(size); f.err != nil {
			if errors.Is(f.err, syscall.ENOSPC) || errors.Is(f.err, syscall.EDQUOT) {
				return fmt.Errorf("%w: %w", ErrFull, f.err)
			}
			return fmt.Errorf("%w: %w", ErrNoFile, f.err)
		}
	}
	_ = l.file.Close()
	if err := l.use(f, start); err != nil {
		l.file = f.file
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	l.prepare()
	return nil
}

// prepare makes the file after this one, while this one is written.
func (l *Log) prepare() {
	size := min(2*l.cur.size, l.opt.Segment)
	l.mu.Lock()
	total := l.size()
	l.mu.Unlock()
	if l.opt.Manual || l.opt.Limit > 0 && total+size > l.opt.Limit {
		return
	}
	ready := make(chan made, 1)
	l.spare = ready
	go func() { ready <- l.make(size) }()
}

// use makes a file the one that is written, from a position.
func (l *Log) use(f made, start Position) error {
	s := &segment{start: start, epoch: l.epoch, id: l.id, key: l.opt.KeyID, size: f.size}
	if l.opt.Key == nil {
		s.key = 0
	}
	if _, err := io.ReadFull(l.opt.Rand, s.salt[:]); err != nil {
		return err
	}
	s.name = s.fileName()
	box, err := l.opt.cipher(s)
	if err != nil {
		return err
	}
	var head [sectorSize]byte
	s.encode(head[:])
	if _, err := f.file.WriteAt(head[:], 0); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	if err := l.opt.FS.Rename(spareName, s.name); err != nil {
		return err
	}
	if err := l.opt.FS.SyncFolder(); err != nil {
		return err
	}
	l.mu.Lock()
	if l.cur != nil && l.cur.name == s.name { // nothing was written to it: it was too short
		l.list = l.list[:len(l.list)-1]
	}
	l.list = append(l.list, s)
	l.free = int64(s.room() - start)
	l.tally()
	l.mu.Unlock()
	l.file, l.cur, l.box = f.file, s, box
	return nil
}
