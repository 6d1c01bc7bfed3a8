// Package message has what actors receive and send as values: payloads, headers and marks, and the envelopes that are made of
// them.
package message

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/printable"
)

func ReasonOf(payload []byte) string {
	r := abi.NewReader(payload)
	text := r.Text()
	if r.Done() != nil {
		return "(not a text)"
	}
	return text
}

// ReplyError is an error that the asked actor has sent as its answer.
type ReplyError struct{ Reason string }

func (e *ReplyError) Error() string { return "host: the actor replied with an error: " + e.Reason }

// Message is what an actor in Go receives, or the answer to an ask. The
// payload is valid until Receive returns; Clone keeps it.
type Message struct {
	Kind        abi.Kind
	Sender      ref.Ref
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
	return Decoder.Unmarshal(m.Payload, v)
}

// Clone is m with a payload of its own.
func (m Message) Clone() Message {
	m.Payload = append([]byte(nil), m.Payload...)
	m.Headers = append([]byte(nil), m.Headers...)
	return m
}

// Encoder and decoder are limited to the subset of CBOR that guests understand.
var Encoder, Decoder = func() (cbor.EncMode, cbor.DecMode) {
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
	b, err := Encoder.Marshal(v)
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
		return &ReplyError{ReasonOf(m.Payload)}
	}
	return nil
}

// Unanswered is m as what ends an ask without an answer, and why.
func Unanswered(m Message, err error) Message { m.err = err; return m }

// Failure is why a result has not come, if that is what the message says.
func (m Message) Failure() (reason string, failed bool) {
	v, ok := abi.FindHeader(m.Headers, abi.HeaderFailure)
	return string(v), ok
}

// ID is the number that a [Resender] has given the message, 0 if it comes from none.
func (m Message) ID() uint64 {
	id, _ := header.Number(m.Headers, abi.HeaderID)
	return id
}

// Null is the payload of what says nothing.
var Null = []byte{0xf6}

// maxNews bounds texts that the host itself puts into envelopes, in bytes.
const maxNews = 512

// MaxRestartReason bounds what an envelope says about the failure before a start, or a restart, in bytes, so that it fits any inbox.
const MaxRestartReason = 256

// AppendText appends a text of the host's own as a payload, clipped to 512 bytes.
func AppendText(dst []byte, s string) []byte {
	w := abi.NewWriter(dst)
	w.Text(printable.Clip(s, maxNews))
	return w.Bytes()
}
