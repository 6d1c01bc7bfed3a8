package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"

	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// index finds events and snapshots by ID, and events by tag. It follows the log: what is in it was durable there, in the
// order of the log, up to one position. So what the process or the machine takes with it is in the log still.
type index struct {
	use  sync.RWMutex // held for reading by users of db, for writing to close it
	db   *pebble.DB   // nil: closed
	lock lock

	untagged bool // events are not found by their tags
}

// What the index takes of memory: a cache of blocks, and up to four tables that are being written.
const (
	cacheBytes    = 8 << 20
	memTableBytes = 4 << 20
)

func openIndex(dir string, fs vfs.FS, key []byte) (*index, error) {
	x := &index{}
	var err error
	if x.lock, err = newLock(key); err != nil {
		return nil, err
	}
	if fs == nil {
		if fs = vfs.Default; dir == "" {
			fs = vfs.NewMem()
		}
	}
	if err := makeFolder(fs, dir); err != nil {
		return nil, err
	}
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	o := &pebble.Options{
		FS: fs, FormatMajorVersion: pebble.FormatFlushableIngest, Cache: cache, DisableWAL: true, // the log is there for that
		MemTableSize: memTableBytes, MemTableStopWritesThreshold: 4, MaxOpenFiles: 200, L0CompactionThreshold: 2, LBaseMaxBytes: 16 << 20,
		MaxConcurrentCompactions: func() int { return 1 }, Logger: silent{},
	}
	o.Levels = []pebble.LevelOptions{{Compression: pebble.SnappyCompression, BlockSize: 8 << 10}}
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, fmt.Errorf("%w: %v", errIndex, r)
		}
	}()
	if x.db, err = pebble.Open(dir, o); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errIndex, dir, err)
	}
	return x, nil
}

// makeFolder makes a folder that survives a power failure: its parents are synced, too.
func makeFolder(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil || dir == "" {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for range 8 { // the store's folder, and parents that may be new
		dir = fs.PathDir(dir)
		d, err := fs.OpenDir(dir)
		if err != nil {
			return nil // above our folders
		}
		err = d.Sync()
		if err := errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// silent has pebble log nothing. What it calls fatal must not end the process.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(f string, as ...any) {
	panic(fmt.Errorf("%w: "+f, append([]any{errIndex}, as...)...))
}

var errClosed = errors.New("the index of events is closed")

// with calls f with the database; a panic of pebble's is an error.
func (x *index) with(f func(db *pebble.DB) error) (err error) {
	x.use.RLock()
	defer x.use.RUnlock()
	if x.db == nil {
		return errClosed
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errIndex, r)
		}
	}()
	return f(x.db)
}

func (x *index) close() error {
	x.use.Lock()
	defer x.use.Unlock()
	if x.db == nil {
		return nil
	}
	err := x.db.Close()
	x.db = nil
	return err
}

// flush has what is in the index survive a power failure.
func (x *index) flush() error { return x.with(func(db *pebble.DB) error { return db.Flush() }) }

// size is how many bytes the files have.
func (x *index) size() (n int64) {
	_ = x.with(func(db *pebble.DB) error { n = int64(db.Metrics().DiskSpaceUsage()); return nil })
	return n
}

// applied is the position before which all of the log is in the index, 0 for a new one.
func (x *index) applied() (p uint64, err error) {
	err = x.with(func(db *pebble.DB) error {
		b, err := get(db, []byte{keyApplied})
		if b != nil {
			if len(b) != 8 {
				return errIndex
			}
			p = binary.BigEndian.Uint64(b)
		}
		return err
	})
	return p, err
}

// get is a copy of a value, nil if there is none.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }()
	return append([]byte{}, v...), nil
}

func metaOf(r pebble.Reader, id string) (m meta, err error) {
	b, err := get(r, idKey(keyMeta, id))
	if b == nil || err != nil {
		return m, err
	}
	return decodeMeta(b)
}

func (x *index) meta(id string) (m meta, err error) {
	err = x.with(func(db *pebble.DB) error { m, err = metaOf(db, id); return err })
	return m, err
}

// apply puts records into the index, which are the next ones of the log. metas are those of their IDs afterwards.
func (x *index) apply(list []*taken) (metas map[string]meta, err error) {
	metas = map[string]meta{}
	err = x.with(func(db *pebble.DB) error {
		b := db.NewIndexedBatch()
		defer func() { _ = b.Close() }()
		for _, t := range list {
			m, known := metas[t.id]
			if !known {
				if m, err = metaOf(b, t.id); err != nil {
					return err
				}
			}
			if t.drop {
				metas[t.id] = meta{}
				if err := x.dropAll(b, t.id); err != nil {
					return err
				}
				continue
			}
			if err := x.take(b, t, &m); err != nil {
				return fmt.Errorf("%s at position %d: %w", t.id, t.position, err)
			}
			metas[t.id] = m
			if err := b.Set(idKey(keyMeta, t.id), m.encode(), nil); err != nil {
				return err
			}
		}
		at := list[len(list)-1].position + 1
		if err := b.Set([]byte{keyApplied}, binary.BigEndian.AppendUint64(nil, at), nil); err != nil {
			return err
		}
		return b.Commit(pebble.NoSync)
	})
	return metas, err
}

// take puts a record into the index.
func (x *index) take(b *pebble.Batch, t *taken, m *meta) error {
	gone := t.gone(m.last)
	for i := range t.entries {
		if err := x.entry(b, t, i, gone, m); err != nil {
			return err
		}
	}
	return nil
}

// entry puts an entry of a record into the index; the record deletes the events up to gone.
func (x *index) entry(b *pebble.Batch, t *taken, i int, gone uint64, m *meta) error {
	e := &t.entries[i]
	switch e.Kind {
	case rules.EntryEvent:
		if e.Event.Number != m.last+1 {
			return fmt.Errorf("%w: event %d comes after event %d", errIndex, e.Event.Number, m.last)
		}
		if e.Event.Number <= gone {
			m.last = e.Event.Number
			return nil
		}
		m.last, m.bytes = e.Event.Number, m.bytes+weight(t.id, e)
		k, offset := keyOf(keyEvent, t.id, m.last), t.position+uint64(i)
		v := binary.BigEndian.AppendUint64(make([]byte, 0, 16+len(t.raw[i])), offset)
		v = append(binary.BigEndian.AppendUint64(v, uint64(t.time)), t.raw[i]...)
		if err := b.Set(k, x.lock.seal(k, v), nil); err != nil {
			return err
		}
		for _, tag := range e.Event.Tags {
			if x.untagged {
				break
			}
			if err := b.Set(keyOf(keyTag, tag, offset), append(binary.BigEndian.AppendUint64(nil, m.last), t.id...), nil); err != nil {
				return err
			}
		}
	case rules.EntrySnapshot:
		if err := x.dropSnapshots(b, t.id, e.Snapshot.Number, e.Snapshot.Number, m); err != nil {
			return err
		}
		m.bytes += weight(t.id, e)
		k := keyOf(keySnapshot, t.id, e.Snapshot.Number)
		return b.Set(k, x.lock.seal(k, append(binary.BigEndian.AppendUint64(nil, uint64(t.time)), t.raw[i]...)), nil)
	case rules.EntryDeleteEvents:
		if to := min(e.To, m.last); to > m.deleted {
			return x.deleteEvents(b, t.id, to, m)
		}
	case rules.EntryDeleteSnapshots:
		if m.bytes == 0 && m.swept == m.deleted { // as where the state is kept, again and again
			return nil
		}
		return x.dropSnapshots(b, t.id, e.From, e.To, m)
	}
	return nil
}

// fewEvents are removed where they are deleted. More are left for sweep: a record must not take long.
const fewEvents = 16

// deleteEvents deletes the events up to a number, of which some may be gone.
func (x *index) deleteEvents(b *pebble.Batch, id string, to uint64, m *meta) error {
	from := m.deleted + 1
	m.deleted = to
	if m.swept+1 < from || to-m.swept > fewEvents {
		return b.Set(idKey(keySweep, id), nil, nil)
	}
	for n := from; n <= to; n++ {
		k := keyOf(keyEvent, id, n)
		v, err := get(b, k)
		if err == nil && v != nil {
			err = x.removeEvent(b, id, k, v, m)
		}
		if err != nil {
			return err
		}
	}
	m.swept = to
	return nil
}

// removeEvent removes an event, and where its tags lead to it.
func (x *index) removeEvent(b *pebble.Batch, id string, key, value []byte, m *meta) error {
	e, err := x.readEvent(id, key, value)
	if err != nil {
		return err
	}
	m.swept, m.bytes = e.Number, max(0, m.bytes-weight(id, &rules.Entry{Event: e}))
	if err := b.Delete(key, nil); err != nil {
		return err
	}
	for _, tag := range e.Tags {
		if err := b.Delete(keyOf(keyTag, tag, e.Offset), nil); err != nil {
			return err
		}
	}
	return nil
}

// dropSnapshots deletes the snapshots of some numbers.
func (x *index) dropSnapshots(b *pebble.Batch, id string, from, to uint64, m *meta) error {
	return x.snapshots(b, id, from, to, func(k []byte, s *rules.Snapshot) (more bool, err error) {
		m.bytes = max(0, m.bytes-weight(id, &rules.Entry{Kind: rules.EntrySnapshot, Snapshot: *s}))
		return true, b.Delete(k, nil)
	})
}

// snapshots calls f with snapshots, the newest first.
func (x *index) snapshots(r pebble.Reader, id string, from, to uint64, f func(key []byte, s *rules.Snapshot) (more bool, err error)) error {
	lower, upper := rangeOf(keySnapshot, id, from)
	if to < 1<<64-1 {
		upper = keyOf(keySnapshot, id, to+1)
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	for ok := it.Last(); ok; ok = it.Prev() {
		k := append([]byte{}, it.Key()...)
		v, err := x.lock.open(k, it.Value())
		if err != nil {
			return err
		}
		var e rules.Entry
		if len(v) < 8 || rules.DecodeEntry(&e, v[8:]) != nil || e.Kind != rules.EntrySnapshot {
			return fmt.Errorf("%w: a snapshot of %s cannot be read", errIndex, id)
		}
		e.Snapshot.Time = int64(binary.BigEndian.Uint64(v))
		more, err := f(k, &e.Snapshot)
		if err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// readEvent reads a value of keyEvent.
func (x *index) readEvent(id string, key, value []byte) (e rules.Event, err error) {
	v, err := x.lock.open(key, value)
	if err != nil {
		return e, err
	}
	var entry rules.Entry
	if len(v) < 16 || rules.DecodeEntry(&entry, v[16:]) != nil || entry.Kind != rules.EntryEvent {
		return e, fmt.Errorf("%w: an event of %s cannot be read", errIndex, id)
	}
	e = entry.Event
	e.ID, e.Offset, e.Time = id, binary.BigEndian.Uint64(v), int64(binary.BigEndian.Uint64(v[8:]))
	return e, nil
}

// chunk bounds what is read at a time: events, and bytes of them.
const (
	chunkEvents = 256
	chunkBytes  = 256 << 10
)

// shownBytes is about how much an event takes where it is shown, in a page or in a batch: an actor chooses the sizes of all of it.
func shownBytes(e *rules.Event) int {
	n := len(e.ID) + len(e.Type) + len(e.Payload) + 64
	for _, tag := range e.Tags {
		n += len(tag) + 2
	}
	return n
}

// events returns the events of an ID from a number on, as many as fit; more says that there are further ones.
func (x *index) events(id string, from, to uint64, bytes int) (list []rules.Event, more bool, err error) {
	err = x.with(func(db *pebble.DB) error {
		m, err := metaOf(db, id)
		if err != nil {
			return err
		}
		lower, upper := rangeOf(keyEvent, id, max(from, m.deleted+1))
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return err
		}
		defer func() { _ = it.Close() }()
		for ok := it.First(); ok; ok = it.Next() {
			e, err := x.readEvent(id, it.Key(), it.Value())
			if err != nil {
				return err
			}
			if e.Number > to {
				break
			}
			if bytes -= shownBytes(&e); len(list) == chunkEvents || len(list) > 0 && bytes < 0 {
				more = true
				break
			}
			list = append(list, e)
		}
		return it.Error()
	})
	return list, more, err
}

// tagged is events for a tag, as many as fit, but one at least; next is the offset behind what was looked at.
func (x *index) tagged(tag string, from uint64, bytes int) (list []rules.Event, next uint64, more bool, err error) {
	next = from
	err = x.with(func(db *pebble.DB) error {
		lower, upper := rangeOf(keyTag, tag, from)
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return err
		}
		defer func() { _ = it.Close() }()
		looked := 0
		for ok := it.First(); ok; ok = it.Next() {
			k, v := it.Key(), it.Value()
			if len(v) < 9 {
				return fmt.Errorf("%w: a tag leads nowhere", errIndex)
			}
			if looked++; bytes < 0 || len(list) == chunkEvents || looked > 4*chunkEvents {
				more = true
				break
			}
			next = binary.BigEndian.Uint64(k[len(k)-8:]) + 1
			id, n := string(v[8:]), binary.BigEndian.Uint64(v)
			m, err := metaOf(db, id)
			if err != nil {
				return err
			}
			if n <= m.deleted {
				continue
			}
			key := keyOf(keyEvent, id, n)
			value, err := get(db, key)
			if err == nil && value == nil {
				err = fmt.Errorf("%w: event %d of %s is missing", errIndex, n, id)
			}
			if err != nil {
				return err
			}
			e, err := x.readEvent(id, key, value)
			if err != nil {
				return err
			}
			if bytes -= shownBytes(&e); bytes < 0 && len(list) > 0 {
				next, more = e.Offset, true
				break
			}
			list = append(list, e)
		}
		return it.Error()
	})
	return list, next, more, err
}

// ids returns IDs behind one, in order.
func (x *index) ids(after string) (list []string, more bool, err error) {
	err = x.with(func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: append(idKey(keyMeta, after), 0), UpperBound: []byte{keyMeta + 1}})
		if err != nil {
			return err
		}
		defer func() { _ = it.Close() }()
		for ok := it.First(); ok; ok = it.Next() {
			if len(list) == chunkEvents {
				more = true
				break
			}
			list = append(list, string(it.Key()[1:]))
		}
		return it.Error()
	})
	return list, more, err
}

// sweep removes some events that are deleted; false if there are none. The meta is that of their ID afterwards.
func (x *index) sweep() (id string, m meta, found bool, err error) {
	err = x.with(func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keySweep}, UpperBound: []byte{keySweep + 1}})
		if err != nil {
			return err
		}
		if found = it.First(); found {
			id = string(it.Key()[1:])
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil || !found {
			return err
		}
		if m, err = metaOf(db, id); err != nil {
			return err
		}
		b := db.NewBatch()
		defer func() { _ = b.Close() }()
		lower, _ := rangeOf(keyEvent, id, m.swept+1)
		events, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: keyOf(keyEvent, id, m.deleted+1)})
		if err != nil {
			return err
		}
		defer func() { _ = events.Close() }()
		n := 0
		for ok := events.First(); ok && n < 4*chunkEvents; ok = events.Next() {
			n++
			if err := x.removeEvent(b, id, append([]byte{}, events.Key()...), events.Value(), &m); err != nil {
				return err
			}
		}
		if err := events.Error(); err != nil {
			return err
		}
		if n < 4*chunkEvents {
			m.swept = m.deleted
			if err := b.Delete(idKey(keySweep, id), nil); err != nil {
				return err
			}
		}
		if err := b.Set(idKey(keyMeta, id), m.encode(), nil); err != nil {
			return err
		}
		return b.Commit(pebble.NoSync)
	})
	return id, m, found, err
}
