package actor

import "github.com/wasmactors/wasmactors/abi"

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
	env    abi.Envelope
	reader abi.Reader
}

// Kind says what the message is: KindMessage for what others have sent, or news
// from the host.
func (m *Message) Kind() abi.Kind { return m.env.Kind }

// Sender is who has sent it: 0 for nobody. For KindTerminated and
// KindSpawnFailed it is the actor concerned.
func (m *Message) Sender() Ref { return m.env.Sender }

// Correlation ties an answer to its question; for KindTimer it is the key.
func (m *Message) Correlation() uint64 { return m.env.Correlation }

// Payload is the content, as CBOR.
func (m *Message) Payload() []byte { return m.env.Payload }

// Header is the value of a header, "" if there is none.
func (m *Message) Header(key string) string {
	rest := m.env.Headers
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

// Reader reads the payload from its start.
func (m *Message) Reader() *abi.Reader {
	m.reader.Reset(m.env.Payload)
	return &m.reader
}

// Decoder is a type that reads itself from CBOR, such as guest-sdk/gen writes.
type Decoder interface{ UnmarshalCBOR(r *abi.Reader) }

// Decode reads the whole payload into d.
func (m *Message) Decode(d Decoder) error {
	r := m.Reader()
	d.UnmarshalCBOR(r)
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

// Int is the payload if it is an integer that fits; ok tells.
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

// Func makes a function that writes one item an Encoder.
type Func func(w *abi.Writer)

// MarshalCBOR implements Encoder.
func (f Func) MarshalCBOR(w *abi.Writer) { f(w) }

// Null is the value for nothing; a nil Encoder is sent as it, too.
var Null Encoder = Raw(nil)
