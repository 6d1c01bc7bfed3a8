package persist

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// A journal whose log is elsewhere has the events of living actors only (Options.Living): they are loaded before an actor begins,
// and dropped when it ends. What the log has of an ID is records ([Turn.Record]), before which a whole may stand: one record of all
// that there was at a time ([Journal.Whole]).

// mostWhole bounds the entries of a whole.
const mostWhole = 1 << 20

// ID is what the events of an actor are found by; "" if it keeps none here.
func (j *Journal) ID(r abi.Ref) string {
	if m := j.of(r); m != nil {
		return m.id
	}
	return ""
}

// Bytes is what limits.durable counts of an ID now.
func (j *Journal) Bytes(id string) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.ids[id]; s != nil {
		return s.bytes()
	}
	return 0
}

// Load replaces all that the journal has of an ID. whole is nil if none stands before the records, which are in their order. All of it
// is checked, and nothing changes if it is not what a journal has written. What was stored before is waited for.
func (j *Journal) Load(ctx context.Context, id string, whole []byte, records [][]byte) error {
	if !validID(id) {
		return fmt.Errorf("persist: %.100q cannot be the ID of an actor", id)
	}
	w, err := decodeWhole(id, whole)
	if err != nil {
		return err
	}
	list := make([]*taken, 0, len(records))
	for i, b := range records {
		t, err := decodeTaken(append([]byte(nil), b...))
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if t.id != id {
			return fmt.Errorf("%w: record %d is about %.100q", ErrRecord, i, t.id)
		}
		list = append(list, t)
	}
	if err := j.await(ctx, 1<<64-1); err != nil {
		return err
	}
	j.whole.Lock()
	defer j.whole.Unlock()
	m, err := j.index.load(id, w, list)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.ids[id]; s != nil {
		s.meta, s.last, s.after = m, m.last, 0
	}
	j.ring()
	return nil
}

// Whole is one record of all that there is of an ID: its snapshots, its events that are not deleted, and their numbers.
func (j *Journal) Whole(ctx context.Context, id string) ([]byte, error) {
	if err := j.await(ctx, 1<<64-1); err != nil {
		return nil, err
	}
	w, err := j.index.whole(id)
	if err != nil {
		return nil, err
	}
	return w.encode(), nil
}

// forget has what an ID has dropped, when all that was stored of it is in the index; the caller holds the lock.
func (j *Journal) forget(id string, s *state) {
	t := &taken{id: id, drop: true, position: j.durable}
	if j.durable == 0 {
		t.position = 1
	}
	j.durable = t.position + 1
	j.enqueue(s, t)
	j.ring()
}

// whole is all that there is of an ID.
type whole struct {
	id            string
	last, deleted uint64
	entries       []timed // snapshots, and then events
}

type timed struct {
	time  int64
	raw   []byte
	entry rules.Entry
}

func (x *whole) encode() []byte {
	w := abi.NewWriter(nil)
	w.Array(4)
	w.Text(x.id)
	w.Uint(x.last)
	w.Uint(x.deleted)
	w.Array(2 * len(x.entries))
	for _, e := range x.entries {
		w.Int(e.time)
		w.ByteString(e.raw)
	}
	return w.Bytes()
}

// decodeWhole is the inverse of encode; nil for nil. What it returns is checked, but for what only its events can say.
func decodeWhole(id string, b []byte) (*whole, error) {
	if b == nil {
		return nil, nil
	}
	r := abi.NewReader(append([]byte(nil), b...))
	if r.Array() != 4 && r.OK() {
		r.Fail(abi.ErrArity)
	}
	x := &whole{id: r.Text(), last: r.Uint(), deleted: r.Uint()}
	n := r.Array()
	if n > 2*mostWhole || n%2 != 0 {
		r.Fail(abi.ErrTooLong)
	}
	next, newest := x.deleted+1, uint64(0)
	for i := 0; i < n/2 && r.OK(); i++ {
		t := timed{time: r.Int(), raw: r.ByteString()}
		if !r.OK() {
			break
		}
		if err := rules.DecodeEntry(&t.entry, t.raw); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrRecord, i, err)
		}
		switch e := &t.entry; {
		case e.Kind == rules.EntrySnapshot && next == x.deleted+1 && e.Snapshot.Number > newest && e.Snapshot.Number <= x.last:
			newest = e.Snapshot.Number
		case e.Kind == rules.EntryEvent && e.Event.Number == next && next <= x.last:
			next++
		default:
			return nil, fmt.Errorf("%w: entry %d cannot be where it is", ErrRecord, i)
		}
		x.entries = append(x.entries, t)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if x.id != id || x.deleted > x.last || next != x.last+1 {
		return nil, fmt.Errorf("%w: it is about another actor, or events are missing", ErrRecord)
	}
	return x, nil
}

// dropAll deletes all of an ID.
func (x *index) dropAll(b *pebble.Batch, id string) error {
	for _, kind := range []byte{keyEvent, keySnapshot} {
		lower, upper := rangeOf(kind, id, 0)
		if err := b.DeleteRange(lower, upper, nil); err != nil {
			return err
		}
	}
	for _, kind := range []byte{keyMeta, keySweep} {
		if err := b.Delete(idKey(kind, id), nil); err != nil {
			return err
		}
	}
	return nil
}

// load replaces all of an ID.
func (x *index) load(id string, w *whole, list []*taken) (m meta, err error) {
	err = x.with(func(db *pebble.DB) error {
		b := db.NewIndexedBatch()
		defer func() { _ = b.Close() }()
		if err := x.dropAll(b, id); err != nil {
			return err
		}
		if w != nil {
			m.last, m.deleted, m.swept = w.deleted, w.deleted, w.deleted
			for i := range w.entries {
				e := &w.entries[i]
				t := &taken{id: id, time: e.time, entries: []rules.Entry{e.entry}, raw: [][]byte{e.raw}}
				if err := x.take(b, t, &m); err != nil {
					return err
				}
			}
			m.last = w.last
		}
		for _, t := range list {
			if err := x.take(b, t, &m); err != nil {
				return fmt.Errorf("%w: %w", ErrRecord, err)
			}
		}
		if err := b.Set(idKey(keyMeta, id), m.encode(), nil); err != nil {
			return err
		}
		return b.Commit(pebble.NoSync)
	})
	return m, err
}

// whole reads all of an ID.
func (x *index) whole(id string) (w *whole, err error) {
	w = &whole{id: id}
	err = x.with(func(db *pebble.DB) error {
		m, err := metaOf(db, id)
		if err != nil {
			return err
		}
		w.last, w.deleted = m.last, m.deleted
		for _, part := range []struct {
			kind byte
			from uint64
			skip int
		}{{keySnapshot, 0, 8}, {keyEvent, m.deleted + 1, 16}} {
			lower, upper := rangeOf(part.kind, id, part.from)
			it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
			if err != nil {
				return err
			}
			for ok := it.First(); ok && err == nil; ok = it.Next() {
				var v []byte
				if v, err = x.lock.open(append([]byte{}, it.Key()...), it.Value()); err != nil {
					break
				}
				t := timed{}
				if len(v) < part.skip || rules.DecodeEntry(&t.entry, v[part.skip:]) != nil {
					err = fmt.Errorf("%w: an entry of %s cannot be read", errIndex, id)
					break
				}
				t.time, t.raw = int64(binary.BigEndian.Uint64(v[part.skip-8:])), v[part.skip:]
				w.entries = append(w.entries, t)
			}
			if err == nil {
				err = it.Error()
			}
			if closed := it.Close(); err == nil {
				err = closed
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return w, err
}
