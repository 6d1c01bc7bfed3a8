// Package reliable has the rules of reliable delivery: messages are numbered, kept until they are
// acknowledged, sent again, and taken once and in order. It is shared by guest-sdk/reliable for guests
// and host/reliable for actors in Go. There is no clock, no actor and no lock in it.
//
// The rules are those of Akka 2.4's ReliableProxy, see docs/guide/reliable.md.
package reliable

import (
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// Headers of the messages of a stream, and of their acknowledgements.
const (
	Header    = "wasmactors.reliable"     // a Mark
	AckHeader = "wasmactors.reliable.ack" // an Ack

	// OriginHeader is the ref, as a decimal number, of the original sender, whose message another
	// actor has put into its stream.
	OriginHeader = "wasmactors.reliable.origin"
)

// Mark is what a message of a stream says about itself. A stream is all that one actor sends under
// one number; the host says which actor that is.
type Mark struct {
	Stream  uint64 // of the sender's: it may have several
	Session uint64 // the sender's incarnation: numbers start over with each
	Number  uint64 // from 1
	First   uint64 // the first one that the sender still keeps
}

// Ack says that all messages up to a number were taken.
type Ack struct{ Stream, Session, Number uint64 }

// AppendMark appends the value of the header.
func AppendMark(dst []byte, m Mark) []byte {
	return appendNumbers(dst, m.Stream, m.Session, m.Number, m.First)
}

// AppendAck appends the value of the header.
func AppendAck(dst []byte, a Ack) []byte { return appendNumbers(dst, a.Stream, a.Session, a.Number) }

// ParseMark reads a mark; false if there is none, or an invalid one.
func ParseMark(headers []byte) (m Mark, ok bool) {
	v, _ := abi.FindHeader(headers, Header)
	var n [4]uint64
	if !parseNumbers(v, n[:]) {
		return Mark{}, false
	}
	m = Mark{n[0], n[1], n[2], n[3]}
	return m, m.First >= 1 && m.First <= m.Number
}

// ParseAck reads an acknowledgement; false if there is none.
func ParseAck(headers []byte) (a Ack, ok bool) {
	v, _ := abi.FindHeader(headers, AckHeader)
	var n [3]uint64
	if !parseNumbers(v, n[:]) {
		return Ack{}, false
	}
	return Ack{n[0], n[1], n[2]}, true
}

func appendNumbers(dst []byte, ns ...uint64) []byte {
	for i, n := range ns {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendUint(dst, n, 10)
	}
	return dst
}

// parseNumbers reads decimal numbers, single spaces between them.
func parseNumbers(b []byte, ns []uint64) bool {
	for i := range ns {
		digits := 0
		for len(b) > digits && b[digits] >= '0' && b[digits] <= '9' {
			d := uint64(b[digits] - '0')
			if ns[i] > (1<<64-1-d)/10 || digits > 0 && ns[i] == 0 {
				return false
			}
			ns[i] = ns[i]*10 + d
			digits++
		}
		b = b[digits:]
		switch last := i == len(ns)-1; {
		case digits == 0:
			return false
		case last && len(b) == 0:
			return true
		case last || len(b) == 0 || b[0] != ' ':
			return false
		}
		b = b[1:]
	}
	return false
}

// ErrFull is the error for a message for which there is no room.
var ErrFull = errors.New("reliable: the limit of unacknowledged messages is reached")

// Window is what a sender keeps: messages that are numbered and not acknowledged, in order, bounded in
// number and in bytes.
type Window[T any] struct {
	messages, bytes int
	last            uint64 // number given
	ring            []kept[T]
	at, n           int
	held            int
}

type kept[T any] struct {
	v    T
	size int
}

// NewWindow makes a window with bounds.
func NewWindow[T any](messages, bytes int) Window[T] {
	return Window[T]{messages: messages, bytes: bytes}
}

// Len is how many messages are kept, Bytes their size.
func (w *Window[T]) Len() int { return w.n }

// Bytes is the size of what is kept.
func (w *Window[T]) Bytes() int { return w.held }

// First is the number of the first message that is kept, or of the next one if none is.
func (w *Window[T]) First() uint64 { return w.last + 1 - uint64(w.n) }

// Add keeps a message of the given size in bytes and returns its number. It fails with ErrFull.
func (w *Window[T]) Add(v T, size int) (uint64, error) {
	if w.n >= w.messages || size > w.bytes-w.held {
		return 0, ErrFull
	}
	if w.n == len(w.ring) {
		larger := make([]kept[T], max(8, 2*len(w.ring)))
		for i := 0; i < w.n; i++ {
			larger[i] = w.ring[(w.at+i)%len(w.ring)]
		}
		w.ring, w.at = larger, 0
	}
	w.ring[(w.at+w.n)%len(w.ring)] = kept[T]{v, size}
	w.n++
	w.held += size
	w.last++
	return w.last, nil
}

// Get is the message with a number, which must be kept.
func (w *Window[T]) Get(number uint64) T {
	return w.ring[(w.at+int(number-w.First()))%len(w.ring)].v
}

// Ack drops all messages up to a number, and returns how many there were; 0 if the number is not kept,
// or was never given.
func (w *Window[T]) Ack(number uint64) (dropped int) {
	first := w.First()
	if number < first || number > w.last {
		return 0
	}
	for ; first <= number; first++ {
		k := &w.ring[w.at]
		w.held -= k.size
		*k = kept[T]{}
		w.at = (w.at + 1) % len(w.ring)
		w.n--
		dropped++
	}
	return dropped
}

// Verdict is what becomes of a message that has arrived.
type Verdict uint8

// The verdicts.
const (
	Foreign   Verdict = iota // it is of no stream: handle it as any other
	Deliver                  // handle it, and acknowledge it in the same turn
	Duplicate                // it was taken before: acknowledge what was taken
	Gap                      // one before it is missing: drop it, it comes again
	Stale                    // of an incarnation of the sender that is over: drop it
)

// DefaultStreams is how many streams a receiver remembers.
const DefaultStreams = 64

// Receiver remembers how far each stream was taken. If there are more streams than it has room for,
// it forgets the one that was quiet for longest: what is sent again on that one afterwards is taken
// a second time. If the sender of a new stream already has a quarter of the room, one of its own is
// forgotten instead, so that one sender cannot push out the streams of all others. The zero value
// has room for DefaultStreams.
type Receiver struct {
	most    int
	streams []stream
	clock   uint64
}

type stream struct {
	sender  abi.Ref
	stream  uint64
	session uint64
	taken   uint64 // up to this number
	used    uint64
}

// NewReceiver returns a Receiver that remembers at most the given number of streams.
func NewReceiver(streams int) Receiver { return Receiver{most: max(streams, 1)} }

// Accept says what becomes of a message of a sender. A receiver that does not know a stream, because
// it was restarted, begins where the sender does.
func (r *Receiver) Accept(sender abi.Ref, m Mark) (Verdict, Ack) {
	s := r.find(sender, m)
	r.clock++
	s.used = r.clock
	switch {
	case m.Session < s.session:
		return Stale, Ack{}
	case m.Session > s.session:
		s.session, s.taken = m.Session, m.First-1
	case m.First > s.taken+1:
		s.taken = m.First - 1 // the sender has given up what is missing
	}
	v := Deliver
	switch {
	case m.Number <= s.taken:
		v = Duplicate
	case m.Number > s.taken+1:
		return Gap, Ack{}
	default:
		s.taken = m.Number
	}
	return v, Ack{m.Stream, m.Session, s.taken}
}

// find returns the entry of a stream and makes one if needed.
func (r *Receiver) find(sender abi.Ref, m Mark) *stream {
	oldest, own, oldestOwn := 0, 0, -1
	for i := range r.streams {
		s := &r.streams[i]
		if s.sender == sender {
			if s.stream == m.Stream {
				return s
			}
			if own++; oldestOwn < 0 || s.used < r.streams[oldestOwn].used {
				oldestOwn = i
			}
		}
		if s.used < r.streams[oldest].used {
			oldest = i
		}
	}
	fresh := stream{sender: sender, stream: m.Stream, session: m.Session, taken: m.First - 1}
	most := r.most
	if most == 0 {
		most = DefaultStreams
	}
	if len(r.streams) < most {
		r.streams = append(r.streams, fresh)
		return &r.streams[len(r.streams)-1]
	}
	if own > 0 && own >= most/4 {
		oldest = oldestOwn
	}
	r.streams[oldest] = fresh
	return &r.streams[oldest]
}

// Forget drops all streams of a sender that has ended.
func (r *Receiver) Forget(sender abi.Ref) {
	n := 0
	for _, s := range r.streams {
		if s.sender != sender {
			r.streams[n] = s
			n++
		}
	}
	r.streams = r.streams[:n]
}
