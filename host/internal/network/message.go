package network

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Marks are what a message is besides its kind, as a set.
type Marks uint16

// The marks.
const (
	NoInfluence Marks = 1 << iota // it does not restart a receive timeout
	Suppressed                    // it is no dead letter
	Lasting                       // it is handled although nobody waits any more
	OfHost                        // an answer that a host gives
	Poison                        // stop when it is reached
	ForGood                       // with Poison: whatever the lifetime
	Kill                          // fail when it is reached
	Identify                      // answer when it is reached
	Bound                         // a question that ends with the incarnation that has taken it

	allMarks = 1<<9 - 1
	control  = Poison | ForGood | Kill | Identify
)

// Message is a message on its way to another node. Its sender's grants, and the values of the Go context that has led to
// it, do not travel.
type Message struct {
	Kind        abi.Kind // KindMessage, KindReply or KindReplyError
	Marks       Marks
	Left        uint64 // nanoseconds until nobody waits for the answer any more; 0: not known
	Sender      abi.Ref
	Correlation uint64
	Via         abi.Ref // who has forwarded it; 0: nobody
	SenderPath  string  // as far as it is known
	Below       string  // for this child of the receiver, or of Root the actor with this path, from the root without '/'; empty: for the receiver
	Headers     []byte  // encoded; empty: none
	Payload     []byte  // encoded; empty: none
}

// Bounds of a frame's parts, in bytes.
const (
	MaxPath    = 64 << 10
	MaxHeaders = 1 + abi.MaxHeaders*(6+abi.MaxHeaderKey+abi.MaxHeaderValue)
	MaxPayload = 16 << 20
)

// What a frame begins with.
const (
	frameMessage byte = 1
	frameSignal  byte = 2
)

// Fits reports whether a message is within the bounds.
func (m *Message) Fits() bool {
	return len(m.SenderPath) <= MaxPath && len(m.Below) <= MaxPath && len(m.Headers) <= MaxHeaders && len(m.Payload) <= MaxPayload
}

// Size is how many bytes AppendMessage appends.
func (m *Message) Size() int {
	n := 2 + len(m.SenderPath) + len(m.Below) + len(m.Headers) + len(m.Payload)
	for _, v := range [...]uint64{uint64(m.Marks), m.Left, uint64(m.Sender), m.Correlation, uint64(m.Via), uint64(len(m.SenderPath)), uint64(len(m.Below)), uint64(len(m.Headers))} {
		n += (bits.Len64(v|1) + 6) / 7
	}
	return n
}

// AppendMessage appends the frame of a message that fits.
func AppendMessage(dst []byte, m *Message) []byte {
	dst = append(dst, frameMessage, byte(m.Kind))
	for _, n := range [...]uint64{uint64(m.Marks), m.Left, uint64(m.Sender), m.Correlation, uint64(m.Via), uint64(len(m.SenderPath)), uint64(len(m.Below)), uint64(len(m.Headers))} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = append(append(dst, m.SenderPath...), m.Below...)
	dst = append(dst, m.Headers...)
	return append(dst, m.Payload...)
}

// AppendSignal appends the frame of a signal.
func AppendSignal(dst []byte, s *signal.Signal) []byte {
	return signal.Append(append(dst, frameSignal), s)
}

// Decode reads a frame: the message or the signal, and the other is nil. The message shares the frame's memory. The error
// is ErrMalformed.
func Decode(frame []byte) (*Message, *signal.Signal, error) {
	return decode(frame, &Message{}, nil)
}

// A Decoder reads frames as Decode does, into memory of its own: a message is valid until the next one. It is for one goroutine
// at a time.
type Decoder struct {
	m     Message
	paths [rememberedPaths]string // of senders
}

const (
	rememberedPaths = 256
	mostRemembered  = 256 // bytes of a path
)

// Decode reads a frame.
func (d *Decoder) Decode(frame []byte) (*Message, *signal.Signal, error) {
	d.m = Message{}
	return decode(frame, &d.m, d)
}

// Forget lets go of the memory of the last frame, which its message shares.
func (d *Decoder) Forget() { d.m = Message{} }

// path is a sender's path. Senders say many things, and their paths do not change.
func (d *Decoder) path(of abi.Ref, b []byte) string {
	if d == nil || len(b) > mostRemembered {
		return string(b)
	}
	last := &d.paths[of%rememberedPaths]
	if *last != string(b) {
		*last = string(b)
	}
	return *last
}

func decode(frame []byte, into *Message, d *Decoder) (*Message, *signal.Signal, error) {
	if len(frame) == 0 {
		return nil, nil, ErrMalformed
	}
	switch frame[0] {
	case frameSignal:
		if s, err := signal.Decode(frame[1:]); err == nil && (s.Path == "" || isPath(s.From, s.Path)) {
			return nil, &s, nil
		}
	case frameMessage:
		if into.decode(frame[1:], d) {
			return into, nil, nil
		}
	}
	return nil, nil, ErrMalformed
}

// isPath reports whether a text may be the full path of an actor: one that says the actor's node.
func isPath(of abi.Ref, path string) bool {
	node, elements, uid, ok := ref.Far(path)
	if !ok || uid != 0 || node != of.Node() || len(elements) == 0 {
		return false
	}
	for _, x := range elements {
		if !abi.ValidName([]byte(x)) {
			return false
		}
	}
	system, _, _ := strings.Cut(strings.TrimPrefix(path, ref.Scheme), "@")
	return abi.ValidName([]byte(system))
}

func (m *Message) decode(b []byte, d *Decoder) bool {
	if len(b) < 1 {
		return false
	}
	m.Kind = abi.Kind(b[0])
	rest := b[1:]
	var marks, path, below, headers uint64
	for _, into := range [...]*uint64{&marks, &m.Left, (*uint64)(&m.Sender), &m.Correlation, (*uint64)(&m.Via), &path, &below, &headers} {
		v, n := binary.Uvarint(rest)
		if n <= 0 || n > 1 && rest[n-1] == 0 { // a longer encoding of the same number
			return false
		}
		*into, rest = v, rest[n:]
	}
	if marks > allMarks || path > MaxPath || below > MaxPath || headers > MaxHeaders || path+below+headers > uint64(len(rest)) {
		return false
	}
	m.Marks = Marks(marks)
	m.SenderPath, rest = d.path(m.Sender, rest[:path]), rest[path:]
	m.Below, rest = string(rest[:below]), rest[below:]
	m.Headers, m.Payload = rest[:headers:headers], rest[headers:]
	return m.whole()
}

// whole reports whether a message from another node is one that a host sends.
func (m *Message) whole() bool {
	switch m.Kind {
	case abi.KindMessage:
		if m.Marks&OfHost != 0 {
			return false
		}
	case abi.KindReply, abi.KindReplyError:
		if m.Marks&(control|Bound) != 0 {
			return false
		}
	default:
		return false
	}
	if m.Marks&ForGood != 0 && m.Marks&Poison == 0 || m.Left > 1<<62 || len(m.Payload) > MaxPayload || m.SenderPath != text(m.SenderPath) || m.Below != text(m.Below) {
		return false
	}
	if m.Marks&control != 0 {
		return len(m.Payload) == 0 && (m.Marks&Identify != 0 && wholeHeaders(m.Headers) || len(m.Headers) == 0)
	}
	return wholeHeaders(m.Headers) && abi.Valid(m.Payload) == nil
}

// text is the part of s that is text.
func text(s string) string {
	for i, r := range s {
		if r < ' ' || r == 0xfffd {
			return s[:i]
		}
	}
	return s
}

// wholeHeaders reports whether b is the encoding of headers, or empty.
func wholeHeaders(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if abi.Valid(b) != nil || b[0]>>5 != 5 { // a map
		return false
	}
	want, n := int(b[0]&31), 0
	rest := b
	for ; ; n++ {
		_, _, next, more := abi.NextHeader(rest)
		if !more {
			break
		}
		rest = next
	}
	return want <= abi.MaxHeaders && n == want && (n == 0 || len(rest) == 0)
}
