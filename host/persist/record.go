package persist

import (
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
)

// ErrRecord wraps the reason why bytes are no record of events.
var ErrRecord = errors.New("not a record of events")

// taken is what an actor has stored in the turns of an entry, all of it or nothing: one record of the log.
type taken struct {
	position uint64 // in the log; events are at position, position+1 and so on
	id       string
	time     int64
	entries  []rules.Entry
	raw      [][]byte // the same, encoded
	bytes    int64
	replaces bool // nothing that was stored before counts
	drop     bool // all that there is of the ID is dropped; never in a log
}

// encode is the record as it is in the log.
func (x *taken) encode(dst []byte) []byte {
	w := abi.NewWriter(dst)
	w.Array(3)
	w.Text(x.id)
	w.Int(x.time)
	w.Array(len(x.raw))
	for _, b := range x.raw {
		w.ByteString(b)
	}
	return w.Bytes()
}

// decodeTaken is the inverse of encode. What it returns aliases b, and is checked as far as a record can be without those
// before it.
func decodeTaken(b []byte) (*taken, error) {
	x := &taken{}
	r := abi.NewReader(b)
	if r.Array() != 3 && r.OK() {
		r.Fail(abi.ErrArity)
	}
	x.id, x.time = r.Text(), r.Int()
	n := r.Array()
	if n > rules.MaxTurn {
		r.Fail(abi.ErrTooLong)
	}
	last := uint64(0)
	for i := 0; i < n && r.OK(); i++ {
		raw := r.ByteString()
		if !r.OK() {
			break
		}
		var e rules.Entry
		if err := rules.DecodeEntry(&e, raw); err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", ErrRecord, i, err)
		}
		switch {
		case e.Kind == rules.EntryRecover:
			return nil, fmt.Errorf("%w: entry %d stores nothing", ErrRecord, i)
		case e.Kind == rules.EntryEvent && last != 0 && e.Event.Number != last+1:
			return nil, fmt.Errorf("%w: event %d after event %d", ErrRecord, e.Event.Number, last)
		case e.Kind == rules.EntryEvent:
			last = e.Event.Number
		}
		x.add(e, raw)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if n == 0 || !validID(x.id) {
		return nil, fmt.Errorf("%w: it is about nobody, or nothing", ErrRecord)
	}
	return x, nil
}

func (x *taken) add(e rules.Entry, raw []byte) {
	x.entries, x.raw, x.bytes = append(x.entries, e), append(x.raw, raw), x.bytes+weight(x.id, &e)
}

// measure finds out what the record adds to what an ID has, whose last event had a number: bytes, or whether it takes the place of all that was
// there before. mend has it leave out what it deletes itself, as where several turns of one entry have each kept the state. Numbers stay without gaps.
func (x *taken) measure(last uint64, mend bool) {
	x.bytes, x.replaces = 0, false
	at, gone, events, snapshots := 0, uint64(0), false, false // which of what was before is deleted
	for i := range x.entries {
		e := &x.entries[i]
		switch e.Kind {
		case rules.EntryEvent:
			last, events = e.Event.Number, false
		case rules.EntrySnapshot:
			snapshots = false
		case rules.EntryDeleteEvents:
			events = events || e.To >= last
		case rules.EntryDeleteSnapshots:
			snapshots = snapshots || e.From <= 1 && e.To >= last // of a later event there is none
		}
		x.bytes += weight(x.id, e)
		if events && snapshots {
			x.bytes, x.replaces, at, gone = 0, true, i+1, last
		}
	}
	if mend && at > 2 { // the two that delete
		x.mend(at, gone)
	}
}

// mend leaves out what the entries before one have stored, all of which is deleted: the events up to a number.
func (x *taken) mend(at int, to uint64) {
	var entries []rules.Entry
	var raw [][]byte
	for i := range at {
		if e := &x.entries[i]; e.Kind == rules.EntryEvent {
			gone := rules.Entry{Event: rules.Event{Number: e.Event.Number, Type: e.Event.Type, Version: e.Event.Version, Payload: []byte{0xf6}}}
			entries, raw = append(entries, gone), append(raw, rules.AppendEntry(nil, &gone))
		}
	}
	for _, e := range []rules.Entry{{Kind: rules.EntryDeleteEvents, To: to}, {Kind: rules.EntryDeleteSnapshots, To: to}} {
		entries, raw = append(entries, e), append(raw, rules.AppendEntry(nil, &e))
	}
	x.entries, x.raw = append(entries, x.entries[at:]...), append(raw, x.raw[at:]...)
}

// gone is up to which number the events are deleted when the record was taken, of an ID whose last event had a number before.
func (x *taken) gone(last uint64) (gone uint64) {
	for i := range x.entries {
		switch e := &x.entries[i]; e.Kind {
		case rules.EntryEvent:
			last = e.Event.Number
		case rules.EntryDeleteEvents:
			gone = max(gone, min(e.To, last))
		}
	}
	return gone
}

// validID reports whether a text can be the ID of an actor: its path below the system, whose names are of printable ASCII without spaces.
func validID(id string) bool {
	if id == "" || id[0] != '/' || len(id) > abi.MaxPath {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// weight is about what an entry takes in the index, in bytes: what limits.durable counts.
func weight(id string, e *rules.Entry) int64 {
	switch e.Kind {
	case rules.EntryEvent:
		n := len(id) + len(e.Event.Type) + len(e.Event.Payload) + 48
		for _, tag := range e.Event.Tags {
			n += 2*len(tag) + len(id) + 32
		}
		return int64(n)
	case rules.EntrySnapshot:
		return int64(len(id) + len(e.Snapshot.Payload) + 48)
	}
	return 0
}

// Forget is the record that deletes all events and snapshots of an ID; nil if there are none. Numbers are not used again.
func (j *Journal) Forget(id string) ([]byte, error) {
	m, err := j.index.meta(id)
	if err != nil || m.last == 0 {
		return nil, err
	}
	x := &taken{id: id}
	for _, e := range []rules.Entry{{Kind: rules.EntryDeleteEvents, To: m.last}, {Kind: rules.EntryDeleteSnapshots, To: m.last}} {
		x.add(e, rules.AppendEntry(nil, &e))
	}
	return x.encode(nil), nil
}
