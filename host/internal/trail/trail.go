// Package trail carries traces from the message that is handled to what its turn sends: in headers of envelopes, which the
// host writes when the turn has ended.
package trail

import (
	"bytes"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Trail is the trace that a worker's present call of a behaviour belongs to.
type Trail struct {
	On      bool      // what is sent now belongs to a trace
	Fixed   bool      // for the whole call; else each message of a batch has its own
	head    []byte    // the headers of what is sent, encoded
	span    span.Span // nil: nothing is recorded
	Context span.Context
	start   span.Begun
	end     span.Ended
}

// Present is the trace headers of what is sent now, nil if it belongs to no trace.
func (c *Trail) Present() []byte {
	if !c.On {
		return nil
	}
	return c.head
}

// Stamp puts an envelope of the host's, or of an actor in Go, into the present trace.
func (c *Trail) Stamp(e *mailbox.Envelope) {
	if !c.On {
		return
	}
	if len(e.Headers) == 0 {
		e.SetHeaders(c.head)
		return
	}
	e.Headers = Mark(nil, c.head, e.Headers)
}

// Set makes a place in a trace the parent of what is sent.
func (c *Trail) Set(t span.Context) {
	c.On, c.Context = true, t
	c.head = Append(c.head[:0], &t)
}

// Clear ends a call.
func (c *Trail) Clear() {
	c.On, c.Fixed = false, false
	if c.span != nil {
		c.span = nil
	}
	c.Context = span.Context{}
}

// EnterTurn is called where a message's turn begins to take effect. A message of a batch
// that is in an unrecorded trace passes that on.
func (c *Trail) EnterTurn(headers []byte) {
	if c.Fixed {
		return
	}
	c.On = false
	if head := headOf(headers); head != nil && !IsSampled(headers) {
		c.On = true
		c.head = append(c.head[:0], head...)
		c.head[0] = 0xa0 | byte(headCount(head))
	}
}

// Begin begins the span of the whole call.
func (c *Trail) Begin(t span.Tracer, s span.Begun) {
	c.Fixed, c.start = true, s
	if c.span = t.Begin(&c.start); c.span != nil {
		c.Set(c.span.Context())
	}
}

// Finish ends the span of the call, if it has one, and the call.
func (c *Trail) Finish(e span.Ended) {
	if c.span != nil {
		c.end = e
		c.span.End(&c.end)
		c.end.Failure = nil
	}
	c.Clear()
}

// Recorded reports whether the call has a span.
func (c *Trail) Recorded() bool { return c.span != nil }

// Parent is the place that the span of a message's turn follows. No span begins if the message is in no trace, unless a
// timer has made it, or in one that is not recorded, which is passed on.
func (c *Trail) Parent(e *mailbox.Envelope) (parent span.Context, begins bool) {
	switch {
	case Has(e.Headers):
		if !IsSampled(e.Headers) {
			c.EnterTurn(e.Headers)
			c.Fixed = true
			return parent, false
		}
		return Of(e.Headers), true
	case e.Kind != abi.KindTimer && e.Kind != abi.KindReceiveTimeout:
		return parent, false
	}
	return parent, true
}

// Place is where the present call is in a trace, nil if it is in none.
func (c *Trail) Place() *span.Context {
	if c.On {
		if t := Of(c.head); t.IsValid() {
			return &t
		}
	}
	return nil
}

// Keep is the present trace, for an answer or a timer that comes later, nil if there is
// none: the tracestate is not kept.
func (c *Trail) Keep() []byte {
	if !c.On {
		return nil
	}
	head := bytes.Clone(c.head[:HeadSize])
	head[0] = 0xa1
	return head
}

// MarkCommands puts what a turn sends into its trace.
func (c *Trail) MarkCommands(cmds []abi.Command) {
	if !c.On {
		return
	}
	for i := range cmds {
		if op := cmds[i].Op; (op == abi.OpSend || op == abi.OpAsk) && cmds[i].Headers == nil {
			cmds[i].Headers = c.head
		}
	}
}

// MarkEffects puts what a turn in Go has sent into its trace.
func (c *Trail) MarkEffects(effects []turn.Effect) {
	for i := range effects {
		if e := effects[i].Env; e != nil && (effects[i].Kind == turn.Forward || !Has(e.Headers)) {
			c.Stamp(e)
		}
	}
}

// Origin is the turn that leads to an incarnation.
type Origin struct {
	At     span.Context
	Failed bool // the turn has failed; else it has spawned the actor
}

// MaxOrigins bounds how many are remembered, some 150 bytes each. Beyond it an incarnation
// begins a trace of its own.
const MaxOrigins = 4096

// Origins remembers them until the incarnation begins. It is safe for concurrent use.
type Origins struct {
	mu sync.Mutex
	of map[abi.Ref]Origin
}

func (o *Origins) Put(uid abi.Ref, at Origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[abi.Ref]Origin{}
	}
	if _, known := o.of[uid]; known || len(o.of) < MaxOrigins {
		o.of[uid] = at
	}
}

// Len is how many are remembered.
func (o *Origins) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.of)
}

func (o *Origins) Take(uid abi.Ref) Origin {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.of[uid]
	if ok {
		delete(o.of, uid)
	}
	return at
}
