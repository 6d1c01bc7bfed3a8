package message

import (
	"fmt"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// The methods that guest-sdk/gen writes for a struct, so that both ends may share it.
type (
	ownEncoder     interface{ MarshalCBOR(w *abi.Writer) }
	ownDecoder     interface{ UnmarshalCBOR(r *abi.Reader) }
	versionDecoder interface {
		UnmarshalVersion(r *abi.Reader, version uint16)
	}
	typedMessage interface{ MessageType() string }
)

// codec is what reads and writes values with methods of their own. It keeps its memory from one message to the next.
type codec struct {
	w   abi.Writer
	r   abi.Reader
	buf []byte
}

var codecs = sync.Pool{New: func() any { return new(codec) }}

// Stock keeps the codec of one goroutine from one message to the next, which takes less than the pool does. The zero value is
// ready. Where it is nil, or its codec is in use because a value sends another one while it is written, there is the pool.
type Stock struct{ c *codec }

func (s *Stock) take() *codec {
	if s == nil || s.c == nil {
		return codecs.Get().(*codec)
	}
	c := s.c
	s.c = nil
	return c
}

func (s *Stock) giveBack(c *codec) {
	if s == nil || s.c != nil {
		codecs.Put(c)
		return
	}
	s.c = c
}

// mostKeptBuffer is the capacity up to which a codec keeps its buffer, in bytes.
const mostKeptBuffer = 64 << 10

// write calls a value's MarshalCBOR. What it returns is valid until the codec is given back. What cannot be written (a nil
// pointer, a year that does not fit) panics, and is an error here; then the codec must not be given back.
func (c *codec) write(v ownEncoder) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("host: the value of type %T cannot be a message: %v", v, p)
		}
	}()
	c.w.Reset(c.buf[:0])
	v.MarshalCBOR(&c.w)
	b = c.w.Bytes()
	if c.buf = b; cap(b) > mostKeptBuffer {
		c.buf = nil
	}
	return b, nil
}

// encodeOwn is the encoding of a value with methods of its own.
func encodeOwn(v ownEncoder) ([]byte, error) {
	c := codecs.Get().(*codec)
	b, err := c.write(v)
	if err != nil {
		return nil, err
	}
	b = append(make([]byte, 0, len(b)+spareBehind), b...)
	codecs.Put(c)
	return b, nil
}

// spareBehind is the room behind a payload with which generated code reads it the quick way.
const spareBehind = 8

// fillOwn writes a value with methods of its own into an envelope.
func fillOwn(s *Stock, e *mailbox.Envelope, v ownEncoder) error {
	c := s.take()
	b, err := c.write(v)
	if err != nil {
		return err
	}
	if len(b) <= smallPayload && cap(e.Payload) < len(b)+spareBehind {
		e.Payload = make([]byte, 0, len(b)+spareBehind)
	}
	e.SetPayload(b)
	s.giveBack(c)
	return nil
}

// smallPayload is the length up to which an envelope has its own buffer.
const smallPayload = 4 << 10

// decodeOwn calls a value's UnmarshalCBOR.
func decodeOwn(v ownDecoder, payload []byte) error {
	c := codecs.Get().(*codec)
	c.r.Reset(payload)
	v.UnmarshalCBOR(&c.r)
	err := c.r.Done()
	c.r.Reset(nil)
	codecs.Put(c)
	return err
}

// Typed is a message with its type in the header abi.HeaderType, if the value has a method MessageType, as structs with
// //wasmactors:message have; other values are returned as they are.
func Typed(v any) any {
	t, ok := v.(typedMessage)
	if !ok {
		return v
	}
	return Headed{Value: v, Headers: map[string]string{abi.HeaderType: t.MessageType()}}
}

// Type is the name and the version that the message states, see abi.HeaderType; ok is false if it states none. It
// is a claim of the sender's.
func (m Message) Type() (name string, version uint16, ok bool) {
	return abi.CutMessageType(header.Type(m.Headers))
}

// DecodeTyped is Decode for a message whose header may state its type: an older version is converted to v's, and
// another type, or a version that cannot be converted, is abi.ErrMessageType. Without the header, or if v is not a
// pointer to a message with a type, it is Decode.
func (m Message) DecodeTyped(v any) error {
	t, typed := v.(typedMessage)
	name, version, ok := m.Type()
	if !typed || !ok {
		return m.Decode(v)
	}
	own, now, _ := abi.CutMessageType(t.MessageType())
	if name == own && version == now {
		return m.Decode(v)
	}
	d, versions := v.(versionDecoder)
	if name != own || !versions {
		return fmt.Errorf("host: %s@%d is not %s: %w", name, version, t.MessageType(), abi.ErrMessageType)
	}
	r := abi.NewReader(m.Payload)
	d.UnmarshalVersion(r, version)
	return r.Done()
}
