//go:build !wasip1

package actortest

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Call is a request that a [Fake] has received.
type Call struct {
	Service string
	Op      string
	Args    []byte // CBOR
	Sender  actor.Ref
	Path    string        // of the sender: /user/name
	Wanted  bool          // false: it was a tell, nobody gets an answer
	Timeout time.Duration // 0 for a tell
	At      time.Time     // when it came

	fake        *Fake
	sent        Sent
	incarnation uint64 // of the sender
	answered    bool
}

// Decode reads the arguments into d. If they are something else the test fails.
func (c *Call) Decode(d actor.Decoder) {
	c.fake.w.t.Helper()
	r := c.Reader()
	if d.UnmarshalCBOR(r); r.Done() != nil {
		c.fake.w.t.Fatalf("actortest: the arguments of %s %s: %v: % x", c.Service, c.Op, r.Err(), c.Args)
	}
}

// Reader reads the arguments from their start.
func (c *Call) Reader() *abi.Reader { return abi.NewReader(c.Args) }

// Text is the arguments if they are a text, else "".
func (c *Call) Text() string { return Sent{Payload: c.Args}.Text() }

// Field is the encoding of one of the arguments, if they are a map with texts as keys; nil if there
// is none of that name.
func (c *Call) Field(name string) []byte {
	r := c.Reader()
	for range r.Map() {
		key := r.TextBytes()
		if v := r.Raw(); r.OK() && string(key) == name {
			return v
		}
	}
	return nil
}

// Answer answers. An answer that is no longer waited for is among [World.Dead].
func (c *Call) Answer(v actor.Encoder) { c.answer(Reply, encode(v)) }

// Fail answers with an error.
func (c *Call) Fail(code service.Code, text string) {
	c.answer(ReplyError, encode(actor.Text(string(code)+": "+text)))
}

func (c *Call) answer(kind SentKind, payload []byte) {
	w := c.fake.w
	w.t.Helper()
	if c.answered {
		w.t.Fatalf("actortest: %s %s is answered twice", c.Service, c.Op)
	}
	c.answered = true
	if !c.Wanted {
		return
	}
	answer := Sent{Target: Target{To: c.Sender}, Kind: kind, From: c.fake.ref, Correlation: c.sent.Correlation, Payload: payload}
	if a := w.actors[c.Sender]; a != nil && a.start.Incarnation != c.incarnation {
		w.dead = append(w.dead, answer) // the question was the incarnation's before
		return
	}
	w.send(answer)
	w.goOn()
}

// Answered reports whether the request was answered.
func (c *Call) Answered() bool { return c.answered }

// Cancelled reports whether the asker no longer waits for the answer: its time is over, or the
// asker has ended or was restarted. A real service ends its work then.
func (c *Call) Cancelled() bool {
	a := c.fake.w.actors[c.Sender]
	return c.Wanted && !c.answered && (a == nil || a.start.Incarnation != c.incarnation || a.asks[c.sent.Correlation] == nil)
}
