package durable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// Actors that keep events are in the store's log, too: what their turns have stored is a record of it. An index finds it
// by actor and by tag. It follows what is durable, so that the log, as far as the index has it, can be given back.

// Tags of their records.
const (
	tagEvents  = 6 // a record of package persist
	tagIndexed = 7 // position: the index has all before it, for good
)

// happened and indexed are what decode returns for them.
type (
	happened struct{ data []byte }
	indexed  struct{ before wal.Position }
)

// hasEvents reports whether a record is one of these.
func hasEvents(b []byte) bool {
	return len(b) > 1 && b[0] == version && (b[1] == tagEvents || b[1] == tagIndexed)
}

func decodeEvents(b []byte) (v any, ok bool) {
	switch {
	case b[1] == tagEvents && len(b) > 2:
		return &happened{b[2:]}, true
	case b[1] == tagIndexed && len(b) == 10:
		return &indexed{wal.Position(binary.LittleEndian.Uint64(b[2:]))}, true
	}
	return nil, false
}

// indexDir is the folder of the index; "" if it is in memory.
func (s *Store) indexDir() string { return filepath.Join(s.opt.Dir, "events") }

// Events is the journal of the store's actors that keep events. It is made when it is asked for first.
func (s *Store) Events() (*persist.Journal, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if j := s.events.Load(); j != nil {
		return j, nil
	}
	j, err := persist.Open(persist.Options{Dir: s.indexDir(), Key: s.opt.Key, FS: s.opt.Index, Failed: func(err error) { _ = s.fail(err) }, Manual: s.opt.Sim != nil})
	if err != nil {
		return nil, err
	}
	s.events.Store(j)
	return j, nil
}

// hasEvents reports whether there is an index.
func (s *Store) hasEvents() bool {
	if s.events.Load() != nil {
		return true
	}
	fs := s.opt.Index
	if fs == nil {
		_, err := os.Stat(s.indexDir())
		return !errors.Is(err, os.ErrNotExist)
	}
	_, err := fs.Stat(s.indexDir())
	return err == nil
}

// replays brings the index up to the log while that is read.
type replays struct {
	store  *Store
	had    wal.Position // what the index had before
	before wal.Position // what it has to have

	from, to wal.Position // records that were taken
}

// open opens the index if there is one.
func (x *replays) open() error {
	if !x.store.hasEvents() {
		return nil
	}
	j, err := x.store.Events()
	if err == nil {
		x.had = wal.Position(j.Applied())
	}
	return err
}

// take takes a record of the log.
func (x *replays) take(at wal.Position, v any) error {
	switch v := v.(type) {
	case *indexed:
		if x.before = max(x.before, v.before); x.before > x.had {
			return fmt.Errorf("%w: the folder %s is missing, or older than the log: it had events that the log has not any more", ErrRecord, x.store.indexDir())
		}
	case *happened:
		if x.from <= at && at <= x.to { // the log is read once more
			return nil
		}
		if x.to = at; x.from == 0 {
			x.from = at
		}
		j, err := x.store.Events()
		if err != nil {
			return err
		}
		if err := j.Replay(uint64(at), v.data); err != nil {
			return fmt.Errorf("%w: %w", ErrRecord, err)
		}
	}
	return nil
}

// ReadEvents brings the index up to the log, for a store without a system.
func (s *Store) ReadEvents() (*persist.Journal, error) {
	if err := s.indexAll(); err != nil {
		return nil, err
	}
	return s.Events()
}

// CheckEvents reads all events of a store without a system, and counts the actors that have some.
func (s *Store) CheckEvents(ctx context.Context) (actors, events int, err error) {
	if err := s.indexAll(); err != nil {
		return 0, 0, err
	}
	j := s.events.Load()
	if j == nil {
		return 0, 0, nil
	}
	for id, err := range j.IDs(ctx) {
		if err != nil {
			return 0, 0, err
		}
		actors++
		for _, err := range j.ByID(ctx, id, persist.Query{}) {
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", id, err)
			}
			events++
		}
	}
	return actors, events, nil
}

// indexAll brings the index up to the log; it makes one only if there are events.
func (s *Store) indexAll() error {
	x := replays{store: s}
	if err := x.open(); err != nil {
		return err
	}
	for r, err := range s.log.Read(0) {
		if err != nil {
			return err
		}
		if len(r.Data) < 2 || r.Data[0] >= compact || r.Data[1] != tagEvents && r.Data[1] != tagIndexed {
			continue
		}
		v, err := decode(r.Data)
		if err == nil {
			err = x.take(r.At, v)
		}
		if err != nil {
			return fmt.Errorf("position %d: %w", r.At, err)
		}
	}
	return nil
}

// turnOfEvents is Turn for an actor that keeps events.
func (s *Store) turnOfEvents(j *persist.Journal, t *record.Turn, x *persist.Turn, err error) {
	if err != nil {
		t.Answer(err)
		return
	}
	waits, broken := false, false
	s.mu.Lock()
	if err = s.err; err == nil {
		at := wal.Position(0)
		if x.Record != nil {
			at, err = s.appendEvents(x.Record)
			if broken = err != nil && !noRoom(err); err != nil && !broken {
				err = record.Refuse(abi.FailureMemoryLimit, err)
			}
		}
		if err == nil {
			t.After = j.Stored(x, uint64(at))
			waits = t.After != 0 && (s.behind() || x.Waits && wal.Position(t.After) >= s.log.Durable() || x.Record != nil && j.Busy())
		}
		if waits {
			s.put(waiting{wal.Position(t.After), 0, t.Answer})
		}
	}
	s.mu.Unlock()
	if broken {
		err = s.fail(err)
	}
	if !waits {
		t.Answer(err)
	} else if s.opt.Sim != nil && t.Waits { // nobody else runs meanwhile
		for s.Work() {
		}
	}
}

// noRoom reports whether an error of the log is about one record: later ones may find room.
func noRoom(err error) bool {
	for _, e := range []error{ErrFull, wal.ErrFull, wal.ErrNoFile, wal.ErrBusy, wal.ErrTooLarge} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// appendEvents writes a record of events; the caller holds the lock. They are not given back, so they must leave room for
// everything else.
func (s *Store) appendEvents(b []byte) (wal.Position, error) {
	if s.used() > s.opt.Size/8*7 {
		return 0, ErrFull
	}
	s.count(len(b)+2, 0)
	return s.append([]byte{version, tagEvents}, b)
}

// settle has the index keep all before a position of the log, which is about to be given back.
func (s *Store) settle(at wal.Position) error {
	j := s.events.Load()
	if j == nil {
		return nil
	}
	applied, err := j.Settle(s.stop, uint64(at))
	if err != nil {
		return err
	}
	p, err := s.append(binary.LittleEndian.AppendUint64([]byte{version, tagIndexed}, applied))
	if err != nil {
		return err
	}
	return s.log.Await(s.stop, p)
}

// forgetEvents deletes the events and snapshots of an actor below /user; false if it has none.
func (s *Store) forgetEvents(ctx context.Context, name string) (bool, error) {
	if !s.hasEvents() {
		return false, nil
	}
	j, err := s.ReadEvents()
	if err != nil {
		return false, err
	}
	b, err := j.Forget("/user/" + name)
	if b == nil || err != nil {
		return false, err
	}
	s.mu.Lock()
	at, err := s.append([]byte{version, tagEvents}, b)
	s.mu.Unlock()
	if err == nil {
		err = s.log.Await(ctx, at)
	}
	if err == nil {
		err = j.Replay(uint64(at), b)
	}
	if err == nil {
		err = j.Idle(ctx)
	}
	return true, err
}

// stopEvents stops the actors that keep events: nothing of what they do can be stored.
func (x *Starting) stopEvents() {
	j := x.store.events.Load()
	if j == nil {
		return
	}
	for _, r := range j.Actors() {
		x.system.Stop(r)
	}
}
