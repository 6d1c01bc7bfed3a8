package persist

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi"
)

// ErrUnconfirmed is the error of Add while too many deliveries are not confirmed.
var ErrUnconfirmed = errors.New("persist: too many deliveries are not confirmed")

// Defaults of [Deliveries].
const (
	DefaultInterval = int64(5_000_000_000) // ns
	DefaultBurst    = 10_000
	DefaultWarn     = 5
	DefaultMost     = 100_000
)

// Delivery is a message that is sent until it is confirmed.
type Delivery struct {
	ID       uint64
	To       string // the receiver's path
	Payload  []byte // CBOR
	Attempts int    // since the recovery
	due      int64
}

// Deliveries are messages that arrive at least once: a part of an actor's state, which its events bring back. Apply calls Add for
// the event that says what is to be sent, and Confirm for the one that says that it has arrived. The actor's turns call Due, also
// the one of Recovered, and send what it returns, with the ID. The receiver answers with the ID, and may get it twice. Zero
// fields mean the defaults.
type Deliveries struct {
	Interval int64 // ns until a delivery is sent again
	Burst    int   // most that are sent at a time
	Warn     int   // attempts after which Due says that nobody confirms
	Most     int   // unconfirmed ones

	last uint64
	list []Delivery
}

func or[T int | int64](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Add notes a message, and returns its ID: one more than the last one, whoever the receiver is.
func (d *Deliveries) Add(to string, payload []byte) (uint64, error) {
	if len(d.list) >= or(d.Most, DefaultMost) {
		return 0, ErrUnconfirmed
	}
	d.last++
	d.list = append(d.list, Delivery{ID: d.last, To: to, Payload: append([]byte(nil), payload...)})
	return d.last, nil
}

// Full reports whether Add would fail: to be asked before the event is stored.
func (d *Deliveries) Full() bool { return len(d.list) >= or(d.Most, DefaultMost) }

// Waits reports whether a delivery is not confirmed: to be asked before the event that says that it is.
func (d *Deliveries) Waits(id uint64) bool {
	for i := range d.list {
		if d.list[i].ID == id {
			return true
		}
	}
	return false
}

// Confirm drops a delivery; false if it is not waited for any more.
func (d *Deliveries) Confirm(id uint64) bool {
	for i := range d.list {
		if d.list[i].ID == id {
			d.list = append(d.list[:i], d.list[i+1:]...)
			return true
		}
	}
	return false
}

// Len is how many are not confirmed.
func (d *Deliveries) Len() int { return len(d.list) }

// Due calls send with the deliveries that are due at a time, at most a burst; warn says that it was tried so often that
// somebody should know. It returns when the next ones are due: 0, never.
func (d *Deliveries) Due(now int64, send func(x *Delivery, warn bool)) (next int64) {
	sent := 0
	for i := range d.list {
		x := &d.list[i]
		if x.due <= now && sent < or(d.Burst, DefaultBurst) {
			sent++
			x.Attempts++
			x.due = now + or(d.Interval, DefaultInterval)
			send(x, x.Attempts%or(d.Warn, DefaultWarn) == 0)
		}
		if at := max(x.due, now+1); next == 0 || at < next {
			next = at
		}
	}
	return next
}

// MarshalCBOR writes the deliveries, for a snapshot.
func (d *Deliveries) MarshalCBOR(w *abi.Writer) {
	w.Array(2)
	w.Uint(d.last)
	w.Array(len(d.list))
	for i := range d.list {
		w.Array(3)
		w.Uint(d.list[i].ID)
		w.Text(d.list[i].To)
		w.ByteString(d.list[i].Payload)
	}
}

// UnmarshalCBOR reads what MarshalCBOR has written.
func (d *Deliveries) UnmarshalCBOR(r *abi.Reader) {
	if r.Array() != 2 && r.OK() {
		r.Fail(abi.ErrArity)
	}
	d.last, d.list = r.Uint(), nil
	before := uint64(0)
	for n := r.Array(); n > 0 && r.OK(); n-- {
		if r.Array() != 3 && r.OK() {
			r.Fail(abi.ErrArity)
		}
		x := Delivery{ID: number(r), To: r.Text(), Payload: r.Bytes()}
		if r.OK() && (x.ID <= before || x.ID > d.last) {
			r.Fail(abi.ErrRange)
		}
		before = x.ID
		d.list = append(d.list, x)
	}
}
