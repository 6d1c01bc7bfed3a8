package flow

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// Mail is what the runner of a graph does for its connections with other actors. The functions take effect when the
// runner's turn ends.
type Mail interface {
	// Send sends a message, whose payload is valid until Send returns.
	Send(to abi.Ref, payload []byte)
	// Watch tells the runner to call [Graph.Terminated] when the actor ends.
	Watch(ref abi.Ref) error
	// Unwatch ends a watch.
	Unwatch(ref abi.Ref)
	// Incarnation is that of the actor.
	Incarnation() uint64
}

// The messages of streams are arrays of four: "flow", an operation, the number of the stream, and
//
//	offer    null      the name                    to the actor that may take it; the number is 0
//	take     number    [credit, name]              the taker chooses the number
//	more     number    credit                      in all, since the stream began: elements, or [elements, bytes]
//	cancel   number    null or a reason            with the number 0 and a name: an offer is refused
//	elements number    [how many before, ...]      as many as there is credit for
//	end      number    null or a reason            with the number 0: the end of an [Inbox]
//	stop     0         null or a reason            turns the graph's switch
//
// Credit and elements are counted from the beginning of the stream, so a message that got lost is noticed. The bytes of an
// element are those of its encoding. With credit for some bytes the giver sends one element more, whatever its size.
const (
	opOffer = iota + 1
	opTake
	opMore
	opCancel
	opElements
	opEnd
	opStop
)

// Bounds of connections.
const (
	MaxName   = 255     // bytes
	MaxReason = 1 << 10 // bytes
	MaxCredit = 1 << 16 // elements that a taker may have asked for and not got
	MaxBatch  = 32 << 10
	MaxPorts  = 1024 // streams of one graph with others
	MaxPeer   = 64   // with one other actor
)

// Errors about other actors. A peer that breaks the rules ends the stream for both.
var (
	ErrCredit    = errors.New("flow: the peer asks for more than 65536 elements")
	ErrNoCredit  = errors.New("flow: the peer has sent elements that it was not asked for")
	ErrLost      = errors.New("flow: elements got lost")
	ErrElement   = errors.New("flow: an element cannot be decoded")
	ErrTooLarge  = errors.New("flow: an element is larger than a message may be")
	ErrUnknown   = errors.New("flow: no such stream")
	ErrCrowded   = errors.New("flow: too many streams")
	ErrRestarted = errors.New("flow: the peer was restarted")
	ErrMessage   = errors.New("flow: not a message of a stream")
	ErrForbidden = errors.New("flow: only the parent may stop a stream")
	ErrAlone     = errors.New("flow: the graph is not connected to other actors")
)

// PeerError is a failure that another actor has reported, or its end.
type PeerError struct {
	Peer   abi.Ref
	Reason string
}

func (e *PeerError) Error() string {
	return "flow: from " + strconv.FormatUint(uint64(e.Peer), 10) + ": " + e.Reason
}

// Codec writes and reads elements that travel between actors. Get must copy what it keeps of the reader's memory, and report
// errors by the reader.
type Codec[T any] struct {
	Put func(w *abi.Writer, v T)
	Get func(r *abi.Reader) T
}

// Codecs of elements.
var (
	Ints  = Codec[int64]{(*abi.Writer).Int, (*abi.Reader).Int}
	Texts = Codec[string]{(*abi.Writer).Text, (*abi.Reader).Text}
	Bytes = Codec[[]byte]{(*abi.Writer).ByteString, func(r *abi.Reader) []byte { return append([]byte{}, r.ByteString()...) }}
	// Raw is one item of CBOR, as it is.
	Raw = Codec[[]byte]{(*abi.Writer).Raw, func(r *abi.Reader) []byte { return append([]byte{}, r.Raw()...) }}
)

// Encoded is the codec of a type that writes and reads itself, as types do that guest-sdk/gen has made methods for:
// Encoded[order, *order]().
func Encoded[T interface{ MarshalCBOR(w *abi.Writer) }, P interface {
	*T
	UnmarshalCBOR(r *abi.Reader)
}]() Codec[T] {
	return Codec[T]{func(w *abi.Writer, v T) { v.MarshalCBOR(w) }, func(r *abi.Reader) (v T) { P(&v).UnmarshalCBOR(r); return v }}
}

// The operations of a [Message].
const (
	OpOffer, OpTake, OpMore, OpCancel, OpElements, OpEnd = opOffer, opTake, opMore, opCancel, opElements, opEnd
)

// Message is one of a stream's messages, for probes of tests and for peers without this package.
type Message struct {
	Op, Stream uint64
	Name       string   // of an offer, and of a take
	Count      uint64   // of credit in all, or of the elements before these
	Bytes      uint64   // of credit in all; 0: any number
	Elements   [][]byte // each one item of CBOR
	Failed     bool     // the end, or cancel, has a reason
	Reason     string
}

// Encode returns the payload.
func (m *Message) Encode() []byte {
	w := abi.NewWriter(nil)
	begin(w, m.Op, m.Stream)
	switch m.Op {
	case opOffer:
		w.Text(m.Name)
	case opTake:
		w.Array(2)
		credit(w, m.Count, m.Bytes)
		w.Text(m.Name)
	case opMore:
		credit(w, m.Count, m.Bytes)
	case opElements:
		w.Array(1 + len(m.Elements))
		w.Uint(m.Count)
		for _, v := range m.Elements {
			w.Raw(v)
		}
	default:
		reasoned(w, m.Reason)
	}
	return w.Bytes()
}

// Decode reads a payload; the elements are parts of it.
func (m *Message) Decode(payload []byte) error {
	d, err := decode(payload)
	*m = Message{Op: d.op, Stream: d.id, Name: d.name, Count: d.count, Bytes: d.bytes, Failed: d.failed, Reason: d.reason}
	for range d.n {
		m.Elements = append(m.Elements, d.r.Raw())
	}
	if err == nil && d.r.Done() != nil {
		err = ErrMessage
	}
	return err
}

// EndOf is the message that ends an [Inbox]: a failure unless the reason is empty.
func EndOf(reason string) []byte { return word(opEnd, reason) }

// StopOf is the message that turns the switch of a graph: Shutdown, or Abort unless the reason is empty.
func StopOf(reason string) []byte { return word(opStop, reason) }

func word(op uint64, reason string) []byte {
	w := abi.NewWriter(nil)
	begin(w, op, 0)
	reasoned(w, reason)
	return w.Bytes()
}

func begin(w *abi.Writer, op, id uint64) {
	w.Array(4)
	w.Text("flow")
	w.Uint(op)
	w.Uint(id)
}

func reasoned(w *abi.Writer, reason string) {
	if reason == "" {
		w.Null()
	} else {
		w.Text(clip(reason))
	}
}

// clip shortens a reason, and cuts no character in two.
func clip(s string) string {
	if len(s) <= MaxReason {
		return s
	}
	n := MaxReason
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// IsMessage reports whether a payload is a message of a stream, by its beginning.
func IsMessage(payload []byte) bool {
	return len(payload) > 6 && payload[0] == 0x84 && payload[1] == 0x64 && string(payload[2:6]) == "flow"
}

// Late reports whether a message of a stream is one that may come when its receiver has ended, without a loss: the runner marks
// it as suppressed, so that it makes no dead letter that somebody looks at.
func Late(payload []byte) bool {
	return IsMessage(payload) && (payload[6] == opMore || payload[6] == opCancel)
}

// message is one that was read, except for its elements.
type message struct {
	op, id uint64
	name   string // offer, take, and cancel of an offer
	count  uint64 // credit; elements before these
	bytes  uint64 // credit; 0: any number
	n      int    // elements that r has
	failed bool
	reason string
	r      *abi.Reader
}

// credit writes credit for elements, and for bytes unless that is 0.
func credit(w *abi.Writer, elements, bytes uint64) {
	if bytes > 0 {
		w.Array(2)
	}
	if w.Uint(elements); bytes > 0 {
		w.Uint(bytes)
	}
}

func (m *message) credit(r *abi.Reader) {
	if r.Peek() != abi.TypeArray {
		m.count = r.Uint()
		return
	}
	if r.Array() != 2 {
		r.Fail(abi.ErrArity)
	}
	m.count, m.bytes = r.Uint(), r.Uint()
}

func decode(payload []byte) (m message, err error) {
	r := abi.NewReader(payload)
	m.r = r
	if r.Array() != 4 || string(r.TextBytes()) != "flow" {
		return m, ErrMessage
	}
	m.op, m.id = r.Uint(), r.Uint()
	switch m.op {
	case opOffer:
		m.name = r.Text()
	case opTake:
		if r.Array() != 2 {
			return m, ErrMessage
		}
		m.credit(r)
		m.name = r.Text()
	case opMore:
		m.credit(r)
	case opCancel, opEnd, opStop:
		if m.failed = r.Peek() != abi.TypeNull; m.failed {
			m.reason = r.Text()
		} else {
			r.Skip()
		}
	case opElements:
		n := r.Array()
		if m.n, m.count = n-1, r.Uint(); n < 1 || r.Err() != nil {
			return m, ErrMessage
		}
		return m, nil
	default:
		return m, ErrMessage
	}
	if r.Done() != nil || len(m.name) > MaxName || len(m.reason) > MaxReason {
		return m, ErrMessage
	}
	return m, nil
}
