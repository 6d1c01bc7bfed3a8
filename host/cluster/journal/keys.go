package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/record"
)

// key is an incarnation of a key's actor.
type key struct {
	part        *part
	name, id    string
	incarnation uint64

	fence   uint64 // under which it was loaded; 0: it was not
	broken  bool   // it has to begin again: what the log has is not known
	last    uint64 // where its last record is; 0: that is not known
	epoch   uint64 // of the last one that counts, and its number
	number  uint64
	bytes   int64 // of its records in the log, about
	records int   // how many they are
	kept    int64 // bytes of what is in memory of it
	whole   bool  // it is being written anew
	unfit   bool  // it is not, as all that it has does not fit into a record

	behind *storing // waits until that is so, see room.go; nil: nothing does
	tries  int      // to make room for it

	done   func(error)  // waits for it to be loaded; nil: nobody does
	held   *record.Turn // has stored nothing, and waits until this node is sure of the shard; nil: none does
	listed bool         // it is in Journal.held
}

// When all that there is of a key is written anew, in one record: it has so many records, or at least so many bytes and more than twice
// of what it needs. Where only the last record counts, as of a state that is kept again and again, it is after fewer: a key is read before
// it begins, and all of a bundle share the room. A key that has nothing any more is one record at once.
const (
	mostRecords = 512
	leastWhole  = 64 << 10
	fewRecords  = 32
	mostlyOver  = 8 // times what it needs
)

// long reports whether a key with so many records, of so many bytes, is written anew; it needs some of them.
func long(records int, bytes, needs int64) bool {
	switch {
	case records > mostRecords, bytes > leastWhole && bytes > 2*needs:
		return true
	case needs == 0:
		return records > 1
	}
	return records > fewRecords && bytes > mostlyOver*needs
}

// load reads a key, and calls done; the caller holds the lock and calls what it gets without it.
func (j *Journal) load(k *key, done func(error)) func() {
	k.done = done
	return j.fenced(k.part, func(err error) {
		if err != nil {
			j.end(k, err)
			return
		}
		j.read(k, 0)
	})
}

// end says that a key was loaded, or why it was not.
func (j *Journal) end(k *key, err error) {
	j.mu.Lock()
	done := k.done
	k.done, k.broken = nil, k.broken || err != nil
	j.mu.Unlock()
	if done != nil {
		done(err)
	}
}

func (j *Journal) read(k *key, try int) {
	p := k.part
	j.mu.Lock()
	fence, least, over := p.fence, p.high, k.done == nil
	erased := p.erased[k.name] && j.opt.skip&guardErase == 0
	j.mu.Unlock()
	switch {
	case over:
		return
	case erased:
		j.again(try, func() { j.read(k, try+1) })
		return
	case fence == 0:
		j.anew(k, try)
		return
	}
	if j.opt.skip&guardLeast != 0 {
		least = 0
	}
	j.opt.Log.Read(p.kind, p.no, k.name, least, onceRead(func(list []cluster.LogEntry, err error) {
		if errors.Is(err, cluster.ErrLong) {
			j.spoilt(k, err)
			return
		}
		if err != nil {
			j.again(try, func() { j.read(k, try+1) })
			return
		}
		j.take(k, fence, try, list)
	}))
}

// take takes what the log has of a key.
func (j *Journal) take(k *key, fence uint64, try int, list []cluster.LogEntry) {
	h, err := j.sort(k, fence, list)
	if err == nil {
		j.mu.Lock()
		full := j.crowded(h.bytes)
		j.mu.Unlock()
		if full {
			j.end(k, ErrCrowded)
			return
		}
		err = j.events.Load(context.Background(), k.id, h.whole, h.records)
	}
	j.mu.Lock()
	switch {
	case errors.Is(err, ErrAnew) && k.part.fence == fence:
		k.part.fence = 0
	case err != nil:
	case k.part.fence != fence:
		err = ErrAnew
	default:
		k.fence, k.last, k.bytes, k.records = fence, h.last, h.bytes, len(list)
		k.epoch, k.number = h.epoch, h.number
		if _, lives := k.part.keys[k]; lives {
			j.keep(k, j.events.Bytes(k.id))
		}
		j.counts.Loaded++
	}
	j.mu.Unlock()
	if errors.Is(err, ErrAnew) {
		j.anew(k, try)
		return
	}
	if err != nil {
		j.spoilt(k, err)
		return
	}
	j.end(k, nil)
}

// spoilt ends the load of a key of which the log has something that no node writes.
func (j *Journal) spoilt(k *key, err error) {
	err = fmt.Errorf("%w: %s: %w", ErrSpoilt, k.id, err)
	j.refuse("%v", err)
	j.end(k, err)
}

// anew begins to load a key again, from the fence on.
func (j *Journal) anew(k *key, try int) {
	j.again(try, func() {
		j.mu.Lock()
		done, f := k.done, func() {}
		if done != nil {
			f = j.load(k, done)
		}
		j.mu.Unlock()
		f()
	})
}

// history is what there is of a key.
type history struct {
	whole   []byte
	records [][]byte
	last    uint64
	bytes   int64

	epoch, number uint64 // of the last one that counts
}

// sort finds what counts of the records of a key.
func (j *Journal) sort(k *key, fence uint64, list []cluster.LogEntry) (h history, err error) {
	j.mu.Lock()
	under := k.part.under
	j.mu.Unlock()
	return j.history(list, fence, under)
}

// history is what counts of records, under a fence and the epoch of it.
func (j *Journal) history(list []cluster.LogEntry, fence, under uint64) (h history, err error) {
	for _, e := range list {
		f, err := decodeFrame(e.Record)
		if err == nil && f.epoch > under && e.At > fence {
			return h, ErrAnew // another one has the shard by now
		}
		if err == nil && (f.form >= fenceForm || f.epoch > under) {
			err = fmt.Errorf("%w: it is of epoch %d, and the shard is in %d", errFrame, f.epoch, under)
		}
		if err != nil {
			return h, err
		}
		h.last, h.bytes = e.At, h.bytes+int64(len(e.Record))
		older, same := f.epoch < h.epoch || f.epoch == h.epoch && f.number < h.number, f.epoch == h.epoch && f.number == h.number
		if (older || same && f.form == turnForm) && j.opt.skip&guardNumber == 0 {
			continue // it was under way. One of all has the number of what it replaces, of which some may still stand before it
		}
		if f.form == wholeForm {
			h.whole, h.records = f.data, nil
		} else {
			h.records = append(h.records, f.data)
		}
		h.epoch, h.number = f.epoch, f.number
	}
	return h, nil
}

// storing is a record on its way to the log.
type storing struct {
	key    *key
	list   *batch // of the list of keys that live; nil: a turn of the key has stored it
	name   string
	fence  uint64
	frame  frame
	record []byte
	tries  int
	maybe  bool // it may be there
	turn   *record.Turn
	stored persist.Turn
	began  time.Time
}

// store appends what a turn has stored, and answers it then.
func (j *Journal) store(t *record.Turn, k *key, x persist.Turn) {
	p := k.part
	j.mu.Lock()
	var err error
	switch {
	case j.closed || !p.served:
		k.broken, err = true, ErrMoved
	case k.broken || k.fence != p.fence:
		k.broken, err = true, ErrAnew
	case len(x.Record) > MaxBytes:
		err = bound{fmt.Sprintf("a turn has stored %d bytes, of at most %d for a key of the cluster (limits.durable): have it store less at a time", len(x.Record), MaxBytes), "limits.durable"}
	case j.bytes+int64(len(x.Record)) > mostWaiting:
		err = errBusy
	case j.crowded(int64(len(x.Record))):
		err = ErrCrowded
	}
	if err != nil {
		if k.broken {
			j.counts.Refused++
		}
		j.mu.Unlock()
		t.Answer(blamed(err))
		return
	}
	p.number++
	f := frame{form: turnForm, epoch: p.under, number: p.number, data: x.Record}
	s := &storing{key: k, name: k.name, fence: k.fence, frame: f, record: f.encode(), turn: t, stored: x, began: j.opt.Clock.Now()}
	if k.bytes+int64(len(s.record)) > mostOfKey {
		k.behind, k.tries = s, 0
		j.counts.Behind++
		j.bytes += int64(len(s.record))
		j.mu.Unlock()
		j.makeRoom(k)
		return
	}
	begin := j.line(p, s)
	j.mu.Unlock()
	if j.opt.skip&guardAnswer != 0 {
		j.stored(s)
	}
	if begin {
		j.write(p)
	}
}

// line has a record wait for the log, and reports whether it is to be written at once; the caller holds the lock.
func (j *Journal) line(p *part, s *storing) (begin bool) {
	j.bytes += int64(len(s.record))
	p.queue = append(p.queue, s)
	begin = !p.writing
	p.writing = true
	return begin
}

// write appends the first record that waits for a shard: one at a time, since the log checks one after the other.
func (j *Journal) write(p *part) {
	j.mu.Lock()
	if len(p.queue) == 0 {
		p.writing = false
		j.mu.Unlock()
		return
	}
	s := p.queue[0]
	fence, put := s.fence, j.opt.Log.Append
	if j.opt.skip&guardFence != 0 {
		fence = anyFence
	}
	if s.list != nil && s.list.spare {
		put = j.opt.Log.Spare
	}
	j.mu.Unlock()
	put(p.kind, p.no, fence, s.name, s.record, onceAt(func(at uint64, err error) { j.written(p, s, at, err) }))
}

// anyFence has a simulated log check nothing.
const anyFence = 1<<64 - 1

// written is called with what the log says of a record.
func (j *Journal) written(p *part, s *storing, at uint64, err error) {
	j.mu.Lock()
	if len(p.queue) == 0 || p.queue[0] != s { // the shard was released
		j.mu.Unlock()
		return
	}
	var end func()
	switch {
	case err == nil && s.list != nil:
		p.high = max(p.high, at)
		j.bytes -= int64(len(s.record))
		end = j.listed(p, s, at)
	case err == nil:
		k := s.key
		p.high = max(p.high, at)
		k.last, k.bytes, k.records = at, k.bytes+int64(len(s.record)), k.records+1
		k.epoch, k.number = s.frame.epoch, s.frame.number
		j.counts.Stored++
		j.counts.Bytes += uint64(len(s.record))
		j.took.Observe(j.opt.Clock.Now().Sub(s.began))
		end = j.ended(s, nil)
	case errors.Is(err, cluster.ErrFenced):
		p.fence = 0
		p.outdated(s.fence)
		j.counts.Refused++
		end = j.ended(s, ErrAnew)
	case errors.Is(err, cluster.ErrFull) && s.list != nil && !s.list.spare:
		if s.maybe {
			p.fence = 0
		}
		end = j.ended(s, err)
	case errors.Is(err, cluster.ErrFull) && s.list == nil:
		if s.maybe {
			p.fence = 0 // with another fence it will be known
		}
		refused := j.ended(s, err)
		end = func() {
			refused()
			j.renew(s.key, true)
		}
	default:
		s.maybe = s.maybe || !errors.Is(err, cluster.ErrBusy)
		s.tries++
		j.mu.Unlock()
		j.again(s.tries, func() {
			j.mu.Lock()
			waits := len(p.queue) > 0 && p.queue[0] == s
			j.mu.Unlock()
			if waits {
				j.write(p)
			}
		})
		return
	}
	p.queue[0] = nil
	p.queue = p.queue[1:]
	j.mu.Unlock()
	end()
	j.write(p)
}

// ended ends what waits for the log; the caller holds the lock and calls what it gets without it.
func (j *Journal) ended(s *storing, err error) func() {
	j.bytes -= int64(len(s.record))
	if s.list != nil {
		return j.unlisted(s, err)
	}
	if err != nil {
		if !errors.Is(err, cluster.ErrFull) || s.maybe {
			s.key.broken = true
		}
		return func() {
			if j.opt.skip&guardAnswer == 0 {
				s.turn.Answer(blamed(err))
			}
		}
	}
	return func() {
		if j.opt.skip&guardAnswer == 0 {
			j.stored(s)
		}
		j.renew(s.key, false)
	}
}

// stored answers a turn whose record is confirmed.
func (j *Journal) stored(s *storing) {
	j.mu.Lock()
	at := j.at
	j.at += uint64(len(s.record))
	j.events.Stored(&s.stored, at)
	j.events.Durable(at + 1)
	if _, lives := s.key.part.keys[s.key]; lives {
		j.keep(s.key, j.events.Bytes(s.key.id))
	}
	j.mu.Unlock()
	if j.opt.Manual {
		j.events.Work()
	} else if j.events.Busy() {
		j.idle()
	}
	s.turn.Answer(nil)
}

// renew writes a key anew, in one record, when much of what the log has of it is not needed, or with full when anything is not:
// a log that takes no other records has room again only by that. It reports whether it has begun to: then what waits for it goes on by itself.
func (j *Journal) renew(k *key, full bool) bool {
	j.mu.Lock()
	due := k.last != 0 && !k.whole && !k.unfit && !k.broken
	if full {
		due = due && k.records > 1
	} else {
		due = due && long(k.records, k.bytes, j.events.Bytes(k.id))
	}
	if !due {
		defer j.mu.Unlock()
		return k.whole
	}
	k.whole = true
	// The actor may have stored more already, which is behind this: so it is the number of what was confirmed.
	f := frame{form: wholeForm, epoch: k.epoch, number: k.number}
	after := k.last
	j.mu.Unlock()
	var err error
	if f.data, err = j.events.Whole(context.Background(), k.id); err != nil {
		return true // the journal is closed
	}
	b := f.encode()
	if len(b) > cluster.MaxRecord {
		j.mu.Lock()
		k.whole, k.unfit = false, true
		j.mu.Unlock()
		j.refuse("%s needs %d bytes in one record, at most %d: it is not written anew", k.id, len(b), cluster.MaxRecord)
		return false
	}
	j.opt.Log.Replace(k.part.kind, k.name, b, after, onceAt(func(at uint64, err error) {
		j.renewed(k, b, after, at, err)
	}))
	return true
}

// renewed is called with what the log says of a record of all that a key has, in the place of what was up to after.
func (j *Journal) renewed(k *key, b []byte, after, at uint64, err error) {
	j.mu.Lock()
	k.whole = false
	switch {
	case err == nil:
		k.bytes, k.records = k.bytes+int64(len(b)), k.records+1
		if k.last == after {
			k.last, k.bytes, k.records = at, int64(len(b)), 1
		}
		k.part.high = max(k.part.high, at)
		j.counts.Whole++
	case k.last == after:
		k.last = 0 // until the next record
	}
	waits := k.behind != nil
	j.mu.Unlock()
	if waits {
		j.roomMade(k, err)
	}
}
