// Package once has what services keep of the requests of durable actors, so that one that comes again has no second effect: the key
// and the answer, beside the effect and in its transaction.
//
// What is kept of a life is dropped when a later request says that it is settled. The rest is dropped after [Keep]. Of one life at
// most [MostOpen] are kept: beyond that its requests are refused until earlier ones are settled.
package once

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

const (
	// Keep is how long a key is kept that is not settled. A guest's ask is over after 24 hours and not sent again, so that a key
	// is not needed for longer; the rest is for clocks that are set.
	Keep = 48 * time.Hour
	// MostOpen is how many keys are kept of one life, in one place.
	MostOpen = 1024
	// Overhead is what a kept key takes besides its answer, in bytes, as it is counted.
	Overhead = 128
)

// Request is a request that has a key.
type Request struct {
	Life   abi.Ref
	Effect *host.Effect
}

// Of is the request of an actor; nil: it has no key.
func Of(sender host.Ref, x *host.Effect) *Request {
	if x == nil {
		return nil
	}
	return &Request{sender.UID(), x}
}

// Kept is what is kept of a request. Number counts within its life.
type Kept struct {
	Number uint64
	Key    [16]byte
	At     int64 // when it was done, ns since 1970
	Answer []byte
}

// Is reports whether it is of that request. One of the same number may have another key where the end of a log was lost.
func (k *Kept) Is(r *Request) bool { return k.Number == r.Effect.Number && k.Key == r.Effect.Key }

// Dropped reports whether it is dropped with another request of its life, at a time: it is settled, too old, or of the same number.
func (k *Kept) Dropped(by *Request, now int64) bool {
	return k.Number < by.Effect.Settled || k.Number == by.Effect.Number || k.Expired(now)
}

// Expired reports whether it is dropped at a time, in ns since 1970.
func (k *Kept) Expired(now int64) bool { return now-k.At > int64(Keep) }

// TooMany refuses a request beyond MostOpen.
func TooMany() error {
	return service.Errorf(service.Busy, "%d requests of the actor have come since one that is not answered yet: it may be sent again, so that all of them must be kept", MostOpen)
}

// version is of Append.
const version = 1

// Append appends all but the number.
func (k *Kept) Append(dst []byte) []byte {
	dst = append(append(dst, version), k.Key[:]...)
	return append(binary.LittleEndian.AppendUint64(dst, uint64(k.At)), k.Answer...)
}

// ErrKept says that what was kept cannot be read.
var ErrKept = errors.New("what was kept of a request cannot be read")

// Decode is the inverse of Append. The answer is a part of b.
func Decode(b []byte) (k Kept, err error) {
	if len(b) < 25 || b[0] != version || int64(binary.LittleEndian.Uint64(b[17:])) < 0 {
		return Kept{}, ErrKept
	}
	copy(k.Key[:], b[1:])
	k.At, k.Answer = int64(binary.LittleEndian.Uint64(b[17:])), b[25:]
	return k, nil
}
