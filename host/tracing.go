package host

import (
	"bytes"
	"context"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// How a trace gets from the message that is handled to what its turn sends: in headers of
// the envelopes, which the host writes when the turn has ended. Guests need do nothing.
// Without a tracer none of this runs; with one, a message without a
// trace costs a look at its headers.
//
// The headers of a trace come before all others, so that one look is enough, and they are
// the host's: what guests write under these names is dropped, unless it names a trace that
// is recorded and under way. The ID of a trace is 128 random bits, so only a guest that was given
// the ID can do that.

// carried is the trace that a worker's present call of a behaviour belongs to.
type carried struct {
	on      bool   // what is sent now belongs to a trace
	fixed   bool   // for the whole call; else each message of a batch has its own
	head    []byte // the headers of what is sent, encoded
	span    Span   // nil: nothing is recorded
	context TraceContext
	start   SpanStart
	end     SpanEnd
}

// Layout of the headers of a trace, as the host writes them: a map whose first entry is
// the traceparent.
const (
	traceKeyAt   = 1
	traceValueAt = traceKeyAt + 1 + len(HeaderTraceParent) + 2
	traceHeadMin = traceValueAt + traceParentSize
)

const traceHead = "\x6btraceparent\x78\x37" // a text of 11 bytes, then one of 55

// hasTrace reports whether headers are those of a message within a trace.
func hasTrace(headers []byte) bool {
	return len(headers) >= traceHeadMin && string(headers[traceKeyAt:traceValueAt]) == traceHead
}

// isSampled reports whether the headers say that the trace is recorded.
func isSampled(headers []byte) bool {
	return hasTrace(headers) && (headers[traceHeadMin-1]-'0')&traceSampled != 0
}

// traceOf is the place that headers name.
func traceOf(headers []byte) TraceContext {
	if !hasTrace(headers) {
		return TraceContext{}
	}
	t, _ := ParseTraceParent(headers[traceValueAt:traceHeadMin])
	if key, value, _, ok := abi.NextHeader(headers[traceHeadMin:]); ok && string(key) == HeaderTraceState {
		t.State = string(value)
	}
	return t
}

// appendTrace writes the headers of a place.
func appendTrace(dst []byte, t *TraceContext) []byte {
	dst = append(append(dst, 0xa1), traceHead...)
	dst = t.AppendTraceParent(dst)
	if t.State != "" && len(t.State) <= MaxTraceState {
		dst = abi.AppendHeader(dst, HeaderTraceState, t.State)
	}
	return dst
}

// traceHeadOf is the part of headers that names a trace; its first
// byte, the count, is too large if there are others.
func traceHeadOf(headers []byte) []byte {
	if !hasTrace(headers) {
		return nil
	}
	if key, _, rest, ok := abi.NextHeader(headers[traceHeadMin:]); ok && string(key) == HeaderTraceState {
		return headers[:len(headers)-len(rest)]
	}
	return headers[:traceHeadMin]
}

// headCount is the number of entries in headers that traceHeadOf has returned.
func headCount(head []byte) int {
	switch {
	case len(head) == 0:
		return 0
	case len(head) == traceHeadMin:
		return 1
	}
	return 2
}

// traceHeaders is how many headers a message within a trace may have: one less than the maximum,
// to leave room for the number that a resender may add.
const traceHeaders = abi.MaxHeaders - 1

// appendMarked appends headers with the trace of head, and without any other trace. If there is
// no room for the trace it is left out.
func appendMarked(dst, head, headers []byte) []byte {
	others, kept := 0, 0
	for rest := headers; ; {
		key, _, next, ok := abi.NextHeader(rest)
		if !ok {
			break
		}
		if !isTraceKey(key) {
			others++
		}
		rest = next
	}
	switch kept = headCount(head); {
	case kept+others <= traceHeaders:
	case kept > 1 && others < traceHeaders: // the tracestate can be left out
		kept, head = 1, head[:traceHeadMin]
	default:
		kept = 0
	}
	if kept+others == 0 {
		return dst
	}
	at := len(dst)
	if kept > 0 {
		dst = append(dst, head...)
	} else {
		dst = append(dst, 0)
	}
	dst[at] = 0xa0 | byte(kept+others)
	for rest := headers; ; {
		key, _, next, ok := abi.NextHeader(rest)
		if !ok {
			return dst
		}
		if !isTraceKey(key) {
			entry := rest[:len(rest)-len(next)]
			if len(rest) == len(headers) {
				entry = entry[1:] // the head of the map
			}
			dst = append(dst, entry...)
		}
		rest = next
	}
}

func isTraceKey(key []byte) bool {
	return string(key) == HeaderTraceParent || string(key) == HeaderTraceState
}

// mark puts headers that an actor has chosen into an envelope, with the trace of
// the turn.
func (s *System) mark(scr *scratch, e *mailbox.Envelope, headers []byte) {
	head := scr.trace.present()
	if own, ok := abi.FindHeader(headers, HeaderTraceParent); ok {
		if t, ok := ParseTraceParent(own); ok && t.TraceID != scr.trace.context.TraceID && s.cfg.tracer.Knows(t.TraceID) {
			t.Flags |= traceSampled // that is why it is known
			head = appendTrace(make([]byte, 0, traceHeadMin), &t)
		}
	}
	e.Headers = appendMarked(e.Headers[:0], head, headers)
}

// present is the trace headers of what is sent now, nil if it belongs to no trace.
func (c *carried) present() []byte {
	if !c.on {
		return nil
	}
	return c.head
}

// stamp puts an envelope of the host's, or of an actor in Go, into the present trace.
func (c *carried) stamp(e *mailbox.Envelope) {
	if !c.on {
		return
	}
	if len(e.Headers) == 0 {
		e.SetHeaders(c.head)
		return
	}
	e.Headers = appendMarked(nil, c.head, e.Headers)
}

// keep is the present trace, for an answer or a timer that comes later, nil if there is
// none: the tracestate is not kept.
func (s *scratch) keep() []byte {
	if s == nil || !s.trace.on {
		return nil
	}
	head := bytes.Clone(s.trace.head[:traceHeadMin])
	head[0] = 0xa1
	return head
}

// set makes a place in a trace the parent of what is sent.
func (c *carried) set(t TraceContext) {
	c.on, c.context = true, t
	c.head = appendTrace(c.head[:0], &t)
}

// clear ends a call.
func (c *carried) clear() {
	c.on, c.fixed = false, false
	if c.span != nil {
		c.span = nil
	}
	c.context = TraceContext{}
}

// enterTurn is called where a message's turn begins to take effect. A message of a batch
// that is in an unrecorded trace passes that on.
func (c *carried) enterTurn(headers []byte) {
	if c.fixed {
		return
	}
	c.on = false
	if head := traceHeadOf(headers); head != nil && !isSampled(headers) {
		c.on = true
		c.head = append(c.head[:0], head...)
		c.head[0] = 0xa0 | byte(headCount(head))
	}
}

// markCommands puts what a turn sends into its trace.
func (c *carried) markCommands(cmds []abi.Command) {
	if !c.on {
		return
	}
	for i := range cmds {
		if op := cmds[i].Op; (op == abi.OpSend || op == abi.OpAsk) && cmds[i].Headers == nil {
			cmds[i].Headers = c.head
		}
	}
}

// beginTurn begins the span of the turn of a message, if it gets one: it belongs to
// a trace that is recorded, or begins one. It is followed by endCall.
func (a *actor) beginTurn(scr *scratch, e *mailbox.Envelope) {
	c := &scr.trace
	a.endCall(scr, nil, 0) // of the message before, within one call of Handle
	parent := TraceContext{}
	switch {
	case hasTrace(e.Headers):
		if !isSampled(e.Headers) {
			c.enterTurn(e.Headers)
			c.fixed = true
			return
		}
		parent = traceOf(e.Headers)
	case e.Kind != abi.KindTimer && e.Kind != abi.KindReceiveTimeout:
		return
	}
	c.start = SpanStart{
		Kind: TurnSpan, Parent: parent, At: a.Now(), Ref: a.ref(), Type: a.props.typ, Incarnation: a.incarnation(),
		Message: e.Kind, Sender: newRef(e.Sender, e.SenderPath), Bytes: len(e.Payload),
		Question: e.Kind == abi.KindMessage && e.Correlation != 0 && e.Sender != 0,
	}
	a.beginSpan(c)
}

// beginSpan begins the span that c.start describes.
func (a *actor) beginSpan(c *carried) {
	c.fixed = true
	if c.span = a.sys.cfg.tracer.Begin(&c.start); c.span != nil {
		c.set(c.span.Context())
	}
}

// endCall ends what beginTurn or beginStart has begun.
func (a *actor) endCall(scr *scratch, f *abi.Failure, fuel uint64) {
	c := &scr.trace
	if c.span != nil {
		if f != nil {
			a.sys.origins.put(a.uid, origin{c.context, true})
		}
		c.end = SpanEnd{At: a.Now(), Failure: a.sys.redacted(f), Fuel: fuel}
		c.span.End(&c.end)
		c.end.Failure = nil
	}
	c.clear()
}

// beginStart begins the span of a start.
func (a *actor) beginStart(scr *scratch) {
	c := &scr.trace
	c.clear()
	from := a.sys.origins.take(a.uid)
	c.start = SpanStart{Kind: StartSpan, Parent: from.at, At: a.Now(), Ref: a.ref(), Type: a.props.typ, Incarnation: a.incarnation()}
	if from.failed {
		c.start.Link = from.at
	}
	a.beginSpan(c)
}

// markEffects puts what a turn in Go has sent into its trace.
func (c *carried) markEffects(effects []effect) {
	for i := range effects {
		if e := effects[i].Env; e != nil && (effects[i].Kind == turn.Forward || !hasTrace(e.Headers)) {
			c.stamp(e)
		}
	}
}

// origin is the turn that leads to an incarnation.
type origin struct {
	at     TraceContext
	failed bool // the turn has failed; else it has spawned the actor
}

// maxOrigins bounds how many are remembered, some 150 bytes each. Beyond it an incarnation
// begins a trace of its own.
const maxOrigins = 4096

// origins remembers them until the incarnation begins. It is safe for concurrent use.
type origins struct {
	mu sync.Mutex
	of map[abi.Ref]origin
}

func (o *origins) put(uid abi.Ref, at origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[abi.Ref]origin{}
	}
	if _, known := o.of[uid]; known || len(o.of) < maxOrigins {
		o.of[uid] = at
	}
}

func (o *origins) take(uid abi.Ref) origin {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.of[uid]
	if ok {
		delete(o.of, uid)
	}
	return at
}

// fromOutside puts a message that comes from outside into the trace of its Go context, or
// begins one, if it is recorded. The span is nil if it is not.
func (s *System) fromOutside(ctx context.Context, kind SpanKind, to Ref, e *mailbox.Envelope) Span {
	in, _ := e.Value.(traced)
	if in.ctx != nil {
		ctx, e.Value = in.ctx, nil
		if in.bound {
			e.Value = boundMark{}
		}
	}
	if s.cfg.tracer == nil {
		return nil
	}
	start := &SpanStart{Kind: kind, Parent: s.cfg.tracer.Of(ctx), At: s.cfg.clock.Now(), Ref: to, Bytes: len(e.Payload)}
	if a := s.here(to.UID()); a != nil {
		start.Ref, start.Type, start.Incarnation = a.ref(), a.props.typ, a.incarnation()
	}
	span := s.cfg.tracer.Begin(start)
	if span != nil {
		t := span.Context()
		headTrace(e, &t)
		return span
	}
	if t := start.Parent; t.IsValid() { // not recorded, but somebody's
		t.Flags &^= traceSampled
		headTrace(e, &t)
	}
	return nil
}

// headTrace puts a trace before the headers of a message.
func headTrace(e *mailbox.Envelope, t *TraceContext) {
	if len(e.Headers) == 0 {
		e.Headers = appendTrace(e.Headers, t)
		return
	}
	e.Headers = appendMarked(nil, appendTrace(nil, t), e.Headers)
}

// sent ends the span of a message from outside.
func (s *System) sent(span Span, err error) {
	if span != nil {
		span.End(&SpanEnd{At: s.cfg.clock.Now(), Err: s.redactedError(err)})
	}
}

// Trace is parent with the span of the running turn, or with the trace that it
// is part of, for calls of code that uses OpenTelemetry. It is parent if there is none.
func (h Head) Trace(parent context.Context) context.Context {
	if h.ctx.scr == nil || !h.ctx.scr.trace.on {
		return parent
	}
	return h.ctx.actor.sys.in(parent, h.ctx.scr.trace.present())
}

// Trace is like [Head.Trace], for the turn that has made the handle.
func (r *Reply) Trace(parent context.Context) context.Context {
	return r.actor.sys.in(parent, r.trace)
}

func (s *System) in(parent context.Context, head []byte) context.Context {
	if t := traceOf(head); t.IsValid() && s.cfg.tracer != nil {
		return s.cfg.tracer.In(parent, t)
	}
	return parent
}

// trace is where the present call is in a trace, nil if it is in none; for events.
func (a *actor) trace() *TraceContext {
	if scr := a.ctx.scr; scr != nil && scr.trace.on {
		if t := traceOf(scr.trace.head); t.IsValid() {
			return &t
		}
	}
	return nil
}

// chosen puts a message of an actor in Go into the trace of the Go context that was
// given with it, instead of that of the turn.
func (s *System) chosen(e *mailbox.Envelope) {
	in, ok := e.Value.(traced)
	if !ok {
		return
	}
	e.Value = nil
	if s.cfg.tracer == nil {
		return
	}
	if t := s.cfg.tracer.Of(in.ctx); t.IsValid() {
		headTrace(e, &t)
	}
}

// dropTrace removes the trace from a message that is too large for the inbox only because of it;
// false: it is still too large.
func (a *actor) dropTrace(e *mailbox.Envelope) bool {
	if a.sys.cfg.tracer == nil || !hasTrace(e.Headers) {
		return false
	}
	e.Headers = appendMarked(nil, nil, e.Headers)
	return int64(e.Size()) <= a.props.limits.Message
}
