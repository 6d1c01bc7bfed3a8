package host

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
)

// Message is what an actor in Go receives, or what has answered an ask. The
// payload is valid until Receive returns; Clone keeps it.
type Message struct {
	Kind        abi.Kind
	Sender      Ref
	Correlation uint64
	Headers     []byte // an encoded map of text to text, nil for none
	Payload     []byte // CBOR

	err error // why an ask was not answered
}

// Decode reads the payload into a value: what guest-sdk/gen has written methods for reads itself, all else is read
// as fxamacker/cbor does.
func (m Message) Decode(v any) error {
	if d, ok := v.(ownDecoder); ok {
		r := abi.NewReader(m.Payload)
		d.UnmarshalCBOR(r)
		return r.Done()
	}
	return decoder.Unmarshal(m.Payload, v)
}

// Clone is m with a payload of its own.
func (m Message) Clone() Message {
	m.Payload = append([]byte(nil), m.Payload...)
	m.Headers = append([]byte(nil), m.Headers...)
	return m
}

// encoder and decoder keep to the subset of CBOR that guests understand.
var encoder, decoder = func() (cbor.EncMode, cbor.DecMode) {
	enc, err := cbor.EncOptions{
		Sort: cbor.SortCoreDeterministic, ShortestFloat: cbor.ShortestFloatNone,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, Time: cbor.TimeRFC3339Nano,
	}.EncMode()
	if err != nil {
		panic(err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxNestedLevels: abi.MaxNesting, DefaultMapType: nil,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return enc, dec
}()

// Encode turns a value into a payload: CBOR is taken as it is ([]byte would be a
// byte string; see [Raw]), what guest-sdk/gen has written methods for writes itself, and everything else is
// encoded as fxamacker/cbor does.
func Encode(v any) ([]byte, error) {
	if p, ok := v.(Raw); ok { // inlined: what is CBOR already costs no call
		return p, nil
	}
	return encodeOther(v)
}

func encodeOther(v any) ([]byte, error) {
	if v, ok := v.(ownEncoder); ok {
		return encodeOwn(v)
	}
	b, err := encoder.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("host: the value cannot be a message: %w", err)
	}
	return b, nil
}

// Raw is a payload that is CBOR already.
type Raw []byte

// Err is nil if the message is not what an ask has ended with, or an answer; else why
// there is none: a *ReplyError if that is what the actor has answered, a *TurnError if
// its turn has failed, or why the question was not delivered.
func (m Message) Err() error {
	if m.err != nil {
		return m.err
	}
	if m.Kind == abi.KindReplyError {
		return &ReplyError{reasonOf(m.Payload)}
	}
	return nil
}
