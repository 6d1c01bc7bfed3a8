package host

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
)

// Message is what an actor in Go receives, or the answer to an ask. The
// payload is valid until Receive returns; Clone keeps it.
type Message struct {
	Kind        abi.Kind
	Sender      Ref
	Correlation uint64
	Headers     []byte // an encoded map of text to text, nil for none
	Payload     []byte // CBOR

	err error // why an ask was not answered
}

// Decode reads the payload into a value: types with methods by guest-sdk/gen read themselves, all others are read
// as by fxamacker/cbor.
func (m Message) Decode(v any) error {
	if d, ok := v.(ownDecoder); ok {
		return decodeOwn(d, m.Payload)
	}
	return decoder.Unmarshal(m.Payload, v)
}

// Clone is m with a payload of its own.
func (m Message) Clone() Message {
	m.Payload = append([]byte(nil), m.Payload...)
	m.Headers = append([]byte(nil), m.Headers...)
	return m
}

// encoder and decoder are limited to the subset of CBOR that guests understand.
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
// byte string; see [Raw]), types with methods by guest-sdk/gen write themselves, and everything else is
// encoded as by fxamacker/cbor.
func Encode(v any) ([]byte, error) {
	if p, ok := v.(Raw); ok { // inlined: values that are CBOR already cost no call
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

// Err is nil for an answer, and for a message that does not end an ask; otherwise it says why there is
// no answer: a *ReplyError if the actor has answered with an error, a *TurnError if
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
