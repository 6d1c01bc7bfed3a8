package persist

import "github.com/wasmactors/wasmactors/abi"

// EntryKind says what an entry is.
type EntryKind uint8

// The kinds. Their numbers are in stores and never change their meaning.
const (
	EntryEvent           EntryKind = 0 // Event: number, type, version, tags, payload
	EntrySnapshot        EntryKind = 1 // Snapshot: number, version, payload
	EntryDeleteEvents    EntryKind = 2 // To: all events up to it are deleted
	EntryDeleteSnapshots EntryKind = 3 // From, To: the snapshots of these numbers are deleted
	EntryRecover         EntryKind = 4 // Recovery: what the actor wants to be fed at its start
)

// Recovery says what an actor is fed at its start. The zero value is all: the last snapshot, and the events after it.
type Recovery struct {
	Off             bool   // neither a snapshot nor events
	NoSnapshot      bool   // events only
	SnapshotTo      uint64 // the snapshot's number is at most this; 0: any
	SnapshotVersion uint16 // the snapshot's version is at least this
	To              uint64 // the number of the last event; 0: all
	Most            uint64 // how many events; 0: all
}

// Entry is what an actor has its log take up, the payload of abi.OpPersist. Which fields count depends on Kind.
type Entry struct {
	Kind     EntryKind
	Event    Event
	Snapshot Snapshot
	From, To uint64
	Recovery Recovery
}

const (
	offBit        = 1
	noSnapshotBit = 2
)

// AppendEntry appends the encoding of e.
func AppendEntry(dst []byte, e *Entry) []byte {
	w := abi.NewWriter(dst)
	switch e.Kind {
	case EntryEvent:
		w.Array(6)
		w.Uint(uint64(EntryEvent))
		w.Uint(e.Event.Number)
		writeEvent(w, &e.Event)
	case EntrySnapshot:
		w.Array(4)
		w.Uint(uint64(EntrySnapshot))
		w.Uint(e.Snapshot.Number)
		w.Uint(uint64(e.Snapshot.Version))
		w.ByteString(e.Snapshot.Payload)
	case EntryDeleteEvents:
		w.Array(2)
		w.Uint(uint64(e.Kind))
		w.Uint(e.To)
	case EntryDeleteSnapshots:
		w.Array(3)
		w.Uint(uint64(e.Kind))
		w.Uint(e.From)
		w.Uint(e.To)
	case EntryRecover:
		w.Array(6)
		w.Uint(uint64(e.Kind))
		bits := uint64(0)
		if e.Recovery.Off {
			bits |= offBit
		}
		if e.Recovery.NoSnapshot {
			bits |= noSnapshotBit
		}
		w.Uint(bits)
		w.Uint(e.Recovery.SnapshotTo)
		w.Uint(uint64(e.Recovery.SnapshotVersion))
		w.Uint(e.Recovery.To)
		w.Uint(e.Recovery.Most)
	}
	return w.Bytes()
}

// writeEvent writes type, version, tags and payload.
func writeEvent(w *abi.Writer, e *Event) {
	w.Text(e.Type)
	w.Uint(uint64(e.Version))
	w.Array(len(e.Tags))
	for _, tag := range e.Tags {
		w.Text(tag)
	}
	w.ByteString(e.Payload)
}

// DecodeEntry reads exactly one entry. The payloads alias src. Everything of it is checked but the numbers, which depend on
// what was stored before; what it refuses is an *abi.At or a *Rejected.
func DecodeEntry(e *Entry, src []byte) error {
	*e = Entry{}
	r := abi.NewReader(src)
	n := r.Array()
	kind := r.Uint()
	want := [...]int{EntryEvent: 6, EntrySnapshot: 4, EntryDeleteEvents: 2, EntryDeleteSnapshots: 3, EntryRecover: 6}
	if kind >= uint64(len(want)) {
		r.Fail(abi.ErrRange)
		return r.Done()
	}
	if n != want[kind] {
		r.Fail(abi.ErrArity)
	}
	switch e.Kind = EntryKind(kind); e.Kind {
	case EntryEvent:
		e.Event.Number = number(r)
		readEvent(r, &e.Event)
	case EntrySnapshot:
		e.Snapshot.Number = number(r)
		e.Snapshot.Version = version(r)
		e.Snapshot.Payload = payload(r, MaxSnapshot)
	case EntryDeleteEvents:
		e.To = r.Uint()
	case EntryDeleteSnapshots:
		e.From, e.To = r.Uint(), r.Uint()
	case EntryRecover:
		bits := r.Uint()
		if bits > offBit|noSnapshotBit {
			r.Fail(abi.ErrRange)
		}
		e.Recovery = Recovery{Off: bits&offBit != 0, NoSnapshot: bits&noSnapshotBit != 0, SnapshotTo: r.Uint(), SnapshotVersion: version(r), To: r.Uint(), Most: r.Uint()}
	}
	if err := r.Done(); err != nil {
		return err
	}
	switch why := ""; e.Kind {
	case EntryEvent:
		if why = e.Event.check(); why != "" {
			return &Rejected{why}
		}
	case EntrySnapshot:
		if abi.Valid(e.Snapshot.Payload) != nil {
			return &Rejected{"the snapshot is not valid CBOR"}
		}
	}
	return nil
}

// number reads a number that is not 0.
func number(r *abi.Reader) uint64 {
	n := r.Uint()
	if n == 0 && r.OK() {
		r.Fail(abi.ErrRange)
	}
	return n
}

func version(r *abi.Reader) uint16 {
	n := r.Uint()
	if n > 1<<16-1 {
		r.Fail(abi.ErrRange)
		return 0
	}
	return uint16(n)
}

func payload(r *abi.Reader, most int) []byte {
	b := r.ByteString()
	if len(b) > most {
		r.Fail(abi.ErrTooLong)
	}
	return b
}

func readEvent(r *abi.Reader, e *Event) {
	e.Type = r.Text()
	e.Version = version(r)
	n := r.Array()
	if n > MaxTags {
		r.Fail(abi.ErrTooLong)
		return
	}
	for i := 0; i < n && r.OK(); i++ {
		e.Tags = append(e.Tags, r.Text())
	}
	e.Payload = payload(r, MaxEvent)
}

// AppendEvent appends an event with all that is known of it, as queries answer it.
func AppendEvent(dst []byte, e *Event) []byte {
	w := abi.NewWriter(dst)
	w.Array(8)
	w.Text(e.ID)
	w.Uint(e.Offset)
	w.Uint(e.Number)
	w.Int(e.Time)
	writeEvent(w, e)
	return w.Bytes()
}

// ReadEvent reads what AppendEvent has written. The payload aliases what r reads.
func ReadEvent(r *abi.Reader, e *Event) {
	*e = Event{}
	if r.Array() != 8 && r.OK() {
		r.Fail(abi.ErrArity)
	}
	if e.ID = r.Text(); len(e.ID) > abi.MaxPath {
		r.Fail(abi.ErrTooLong)
	}
	e.Offset = r.Uint()
	e.Number = number(r)
	e.Time = r.Int()
	readEvent(r, e)
}
