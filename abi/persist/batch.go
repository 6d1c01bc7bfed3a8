package persist

import "github.com/wasmactors/wasmactors/abi"

// Batch is a part of what an actor is fed at its start, the payload of abi.KindRecover. A snapshot is in the first one only.
type Batch struct {
	Done     bool   // nothing follows
	Last     uint64 // the number of the last event that was ever stored
	Snapshot *Snapshot
	Events   []Event // without ID and Offset
}

// AppendBatch appends the encoding of b.
func AppendBatch(dst []byte, b *Batch) []byte {
	w := abi.NewWriter(dst)
	w.Array(4)
	w.Bool(b.Done)
	w.Uint(b.Last)
	if s := b.Snapshot; s != nil {
		w.Array(4)
		w.Uint(s.Number)
		w.Uint(uint64(s.Version))
		w.Int(s.Time)
		w.ByteString(s.Payload)
	} else {
		w.Null()
	}
	w.Array(len(b.Events))
	for i := range b.Events {
		e := &b.Events[i]
		w.Array(6)
		w.Uint(e.Number)
		w.Int(e.Time)
		writeEvent(w, e)
	}
	return w.Bytes()
}

// ReadBatch reads a batch and calls the functions with what is in it, in order; what they get aliases what r reads, and is
// theirs until they return. It ends with the first error of one of them.
func ReadBatch(r *abi.Reader, restore func(*Snapshot) error, apply func(*Event) error) (last uint64, done bool, err error) {
	if r.Array() != 4 && r.OK() {
		r.Fail(abi.ErrArity)
	}
	done, last = r.Bool(), r.Uint()
	if !r.Null() {
		if r.Array() != 4 && r.OK() {
			r.Fail(abi.ErrArity)
		}
		s := Snapshot{Number: number(r), Version: version(r), Time: r.Int(), Payload: payload(r, MaxSnapshot)}
		if r.OK() {
			if err := restore(&s); err != nil {
				return last, done, err
			}
		}
	}
	n := r.Array()
	for i := 0; i < n && r.OK(); i++ {
		var e Event
		if r.Array() != 6 && r.OK() {
			r.Fail(abi.ErrArity)
		}
		e.Number = number(r)
		e.Time = r.Int()
		readEvent(r, &e)
		if r.OK() {
			if err := apply(&e); err != nil {
				return last, done, err
			}
		}
	}
	return last, done, r.Done()
}
