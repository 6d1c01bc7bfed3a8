package record

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Exchange is other code for an actor, between two turns. It has what the actor's state follows from: what the old code has
// saved and the new code loads, or a snapshot.
type Exchange struct {
	Code []byte `cbor:"1,keyasint"` // fingerprint of the image that it goes on with, see sandbox.Fingerprint
	Way  Way    `cbor:"2,keyasint"`

	// Of Loaded: what the old code has written, and the fuel that the new code has taken to read it.
	Version uint64 `cbor:"3,keyasint,omitempty"`
	Saved   []byte `cbor:"4,keyasint,omitempty"` // CBOR, and so is Own
	Own     []byte `cbor:"5,keyasint,omitempty"` // of the SDK
	Fuel    uint64 `cbor:"6,keyasint,omitempty"`

	// Of Copied: what [Pack] has made of a snapshot (sandbox.AppendSnapshot), in one record or several.
	State []byte `cbor:"7,keyasint,omitempty"`
	More  bool   `cbor:"8,keyasint,omitempty"` // a further one of these records goes on with it
	Part  uint64 `cbor:"9,keyasint,omitempty"` // how many of them come before it
}

// Way is how an actor has come to other code. A number never gets another meaning.
type Way uint8

// The ways.
const (
	Loaded Way = iota + 1 // the new code has loaded what the old code has saved
	Copied                // its state is a snapshot of that code: it has gone back, or has handled all its messages again
	Anew                  // its next incarnation begins with that code
)

// Bounds of an exchange, bytes.
const (
	FingerprintBytes = 32
	MostState        = 4 << 20   // of State, in one record
	MostStates       = 256 << 20 // of a snapshot
)

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20)) // the options are valid
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(MostStates))
)

// Pack compresses a snapshot, which is mostly zeros. It is safe for concurrent use, as Unpack is.
func Pack(snapshot []byte) []byte { return packer.EncodeAll(snapshot, nil) }

// Unpack is the inverse of Pack. It fails for what Pack has not made, and for more than MostStates bytes.
func Unpack(b []byte) ([]byte, error) { return unpacker.DecodeAll(b, nil) }

// Wrong says why x is no exchange of code; empty: it may be one.
func (x *Exchange) Wrong() string {
	own := x.Version != 0 || len(x.Saved)+len(x.Own) > 0 || x.Fuel != 0
	copied := len(x.State) > 0 || x.More || x.Part != 0
	switch {
	case len(x.Code) != FingerprintBytes:
		return fmt.Sprintf("code with a fingerprint of %d bytes", len(x.Code))
	case x.Way < Loaded || x.Way > Anew:
		return fmt.Sprintf("an exchange in a way %d", x.Way)
	case x.Way != Loaded && own, x.Way != Copied && copied:
		return "an exchange with what another way has"
	case x.Way == Loaded && (len(x.Saved) == 0 || len(x.Own) == 0), x.Way == Copied && len(x.State) == 0:
		return "an exchange without a state"
	case x.Part >= MostStates:
		return "a part of a state behind more parts than there can be"
	case len(x.State) > MostState:
		return fmt.Sprintf("a part of a state of %d bytes", len(x.State))
	}
	return ""
}
