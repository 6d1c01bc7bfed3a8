package actor

import (
	"math/bits"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
)

// Kinds of messages; see docs/abi.md.
const (
	KindMessage        = abi.KindMessage
	KindReply          = abi.KindReply
	KindReplyError     = abi.KindReplyError
	KindAskTimeout     = abi.KindAskTimeout
	KindTerminated     = abi.KindTerminated
	KindTimer          = abi.KindTimer
	KindReceiveTimeout = abi.KindReceiveTimeout
	KindSpawnFailed    = abi.KindSpawnFailed
)

// Message is what an actor receives. It and what it refers to are valid until
// Receive returns; copy what is to be kept.
type Message struct {
	sender      Ref
	correlation uint64
	time        uint64 // as it lies in the inbox; see Context.Now
	payload     int    // offset in the inbox
	size        int
	headers     []byte
	kind        abi.Kind
	reader      abi.Reader
}

// read takes the envelope at an offset of the inbox and returns the offset behind it; end is
// where the envelopes end.
func (m *Message) read(at, end int) int {
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(inbox)), at)
	// What nearly all envelopes are: 86 kind 1b time 1b sender correlation f6 length payload,
	// where the correlation is below 24.
	const head = 22
	if end-at <= head || *(*uint32)(p)&0x00ff00ff != 0x001b0086 || *byteAt(p, 11) != 0x1b {
		return m.readAny(at, end)
	}
	tail := *(*uint32)(unsafe.Add(p, 20))
	if tail&0xff00 != 0xf600 || tail&0xff >= 24 {
		return m.readAny(at, end)
	}
	size, from := int(uint8(tail>>16)-0x40), at+head+1
	switch {
	case size < 24:
	case size == 24:
		size, from = int(tail>>24), from+1
	case size == 25:
		size, from = int(*byteAt(p, 23))<<8|int(*byteAt(p, 24)), from+2
	default:
		return m.readAny(at, end)
	}
	m.kind = abi.Kind(*byteAt(p, 1))
	m.time = *(*uint64)(unsafe.Add(p, 3))
	m.sender = Ref(load8(p, 12))
	m.correlation = uint64(tail & 0xff)
	m.payload, m.size = from, size
	if len(m.headers) > 0 {
		m.headers = nil
	}
	return from + size
}

// readAny is read for all envelopes.
func (m *Message) readAny(at, end int) int {
	var e abi.Envelope
	n, err := abi.DecodeEnvelope(&e, inbox[at:end])
	if err != nil {
		panic(err)
	}
	m.kind, m.sender, m.correlation, m.headers = e.Kind, e.Sender, e.Correlation, e.Headers
	m.time = bits.ReverseBytes64(uint64(e.Time))
	m.payload, m.size = 0, len(e.Payload)
	if e.Apart != 0 {
		m.fetch(e.Apart)
	} else if m.size > 0 {
		m.payload = int(uintptr(unsafe.Pointer(unsafe.SliceData(e.Payload))) - uintptr(unsafe.Pointer(unsafe.SliceData(inbox))))
	}
	return at + n
}

// Kind says what the message is: KindMessage for what others have sent, or news
// from the host.
func (m *Message) Kind() abi.Kind { return m.kind }

// Sender is the sender of the message: 0 if there is none. For KindTerminated and
// KindSpawnFailed it is the actor concerned.
func (m *Message) Sender() Ref { return m.sender }

// Correlation ties an answer to its question; for KindTimer it is the key.
func (m *Message) Correlation() uint64 { return m.correlation }

// ID is what to pass to Context.Confirm when the message is done with; "" for a message that is
// not sent again until it is confirmed.
func (m *Message) ID() string { return m.Header(abi.HeaderID) }

// Payload is the content, as CBOR.
//
//go:nocheckptr
func (m *Message) Payload() []byte {
	return bytesAt(unsafe.Add(unsafe.Pointer(unsafe.SliceData(inbox)), m.payload), m.size, 0)
}

// Header is the value of a header, or "".
func (m *Message) Header(key string) string {
	rest := m.headers
	for {
		k, v, more, ok := abi.NextHeader(rest)
		if !ok {
			return ""
		}
		if string(k) == key {
			return string(v)
		}
		rest = more
	}
}

// Headers are all of them as they came, for abi.FindHeader and abi.NextHeader; nil for none.
func (m *Message) Headers() []byte { return m.headers }

// HasHeader reports whether there is a header, which may be empty.
func (m *Message) HasHeader(key string) bool {
	_, ok := abi.FindHeader(m.headers, key)
	return ok
}

// Reader reads the payload from its start.
//
//go:nocheckptr
func (m *Message) Reader() *abi.Reader {
	m.reader.Reset(bytesAt(unsafe.Add(unsafe.Pointer(unsafe.SliceData(inbox)), m.payload), m.size, spare))
	return &m.reader
}

// Decoder is a type that reads itself from CBOR, such as guest-sdk/gen writes.
type Decoder interface{ UnmarshalCBOR(r *abi.Reader) }

// Decode reads the whole payload into d, which need not be allocated for it: its UnmarshalCBOR must not keep the receiver.
func (m *Message) Decode(d Decoder) error {
	r := m.Reader()
	unescapedDecoder(d).UnmarshalCBOR(r)
	if r.OK() && !r.More() { // both without a call
		return nil
	}
	return r.Done()
}

// Text is the payload if it is a text, else "".
func (m *Message) Text() string {
	r := m.Reader()
	s := r.TextBytes()
	if r.Done() != nil {
		return ""
	}
	return string(s)
}

// Is reports whether the payload is this text. It does not allocate.
func (m *Message) Is(text string) bool {
	r := m.Reader()
	s := r.TextBytes()
	return r.Done() == nil && string(s) == text
}

// Int is the payload if it is an integer that fits; ok tells whether it is.
func (m *Message) Int() (v int64, ok bool) {
	r := m.Reader()
	v = r.Int()
	return v, r.Done() == nil
}

// Encoder is a value that can be sent: it writes exactly one item of CBOR.
type Encoder interface{ MarshalCBOR(w *abi.Writer) }

// Values that can be sent as they are.
type (
	Text  string  // a text
	Int   int64   // an integer
	Uint  uint64  // an integer that is not negative
	Bool  bool    // a truth value
	Float float64 // a number
	Bytes []byte  // a byte string
	Raw   []byte  // CBOR that is encoded already
)

// MarshalCBOR implements Encoder.
func (v Text) MarshalCBOR(w *abi.Writer) { w.Text(string(v)) }

// UnmarshalCBOR implements Decoder.
func (v *Text) UnmarshalCBOR(r *abi.Reader) { *v = Text(r.Text()) }

// MarshalCBOR implements Encoder.
func (v Int) MarshalCBOR(w *abi.Writer) { w.Int(int64(v)) }

// UnmarshalCBOR implements Decoder.
func (v *Int) UnmarshalCBOR(r *abi.Reader) { *v = Int(r.Int()) }

// MarshalCBOR implements Encoder.
func (v Uint) MarshalCBOR(w *abi.Writer) { w.Uint(uint64(v)) }

// UnmarshalCBOR implements Decoder.
func (v *Uint) UnmarshalCBOR(r *abi.Reader) { *v = Uint(r.Uint()) }

// MarshalCBOR implements Encoder.
func (v Bool) MarshalCBOR(w *abi.Writer) { w.Bool(bool(v)) }

// UnmarshalCBOR implements Decoder.
func (v *Bool) UnmarshalCBOR(r *abi.Reader) { *v = Bool(r.Bool()) }

// MarshalCBOR implements Encoder.
func (v Float) MarshalCBOR(w *abi.Writer) { w.Float(float64(v)) }

// UnmarshalCBOR implements Decoder.
func (v *Float) UnmarshalCBOR(r *abi.Reader) { *v = Float(r.Float()) }

// MarshalCBOR implements Encoder.
func (v Bytes) MarshalCBOR(w *abi.Writer) { w.ByteString(v) }

// UnmarshalCBOR implements Decoder.
func (v *Bytes) UnmarshalCBOR(r *abi.Reader) { *v = append(Bytes{}, r.ByteString()...) }

// MarshalCBOR implements Encoder.
func (v Raw) MarshalCBOR(w *abi.Writer) { w.Raw(v) }

// UnmarshalCBOR implements Decoder.
func (v *Raw) UnmarshalCBOR(r *abi.Reader) { *v = append(Raw{}, r.Raw()...) }

// Func is a function that writes one item, as an Encoder.
type Func func(w *abi.Writer)

// MarshalCBOR implements Encoder.
func (f Func) MarshalCBOR(w *abi.Writer) { f(w) }

// Null is the value for nothing; a nil Encoder is sent as it, too.
var Null Encoder = Raw(nil)
