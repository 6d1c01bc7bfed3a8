package host

import (
	"context"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/outside"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/internal/signal"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// kernel is the system as those outside see it: an outside.Kernel.
type kernel struct{ *System }

// Deliver implements outside.Kernel.
func (k kernel) Deliver(to abi.Ref, e *mailbox.Envelope) error { return k.deliver(nil, to, e) }

// Question implements outside.Kernel.
func (k kernel) Question(to abi.Ref, e *mailbox.Envelope, room context.Context, turns *uint64) error {
	a := k.here(to)
	if a == nil {
		return k.deliver(nil, to, e)
	}
	if *turns = a.tally.Turns.Load(); room != nil {
		return k.offerTo(room, a, e)
	}
	return k.deliverTo(nil, a, e)
}

// Signal implements outside.Kernel.
func (k kernel) Signal(to abi.Ref, m signal.Signal) bool { return k.signal(nil, to, m) }

// Identify implements outside.Kernel.
func (k kernel) Identify(path string, by abi.Ref, correlation uint64, expect func(abi.Ref) bool) (asked int, nobody bool) {
	return identifyAll(k.System, path, by, correlation, expect)
}

// RefOf implements outside.Kernel.
func (k kernel) RefOf(uid abi.Ref) Ref { return k.refOf(uid) }

// Look implements outside.Kernel.
func (k kernel) Look(uid abi.Ref) (d outside.Doing, ok bool) {
	a := k.here(uid)
	if a == nil {
		return d, false
	}
	d.Info = (*shown)(a).Info()
	d.Since, d.Running, d.Turns = a.place.Since(), a.place.Running(), a.tally.Turns.Load()
	return d, true
}

// Incarnation implements outside.Kernel.
func (k kernel) Incarnation(uid abi.Ref) (n uint64, ok bool) {
	if a := k.here(uid); a != nil {
		return a.Incarnation(), true
	}
	return 0, false
}

// Attached implements outside.Kernel.
func (k kernel) Attached(uid abi.Ref) *mailbox.Attached {
	if a := k.here(uid); a != nil {
		return a.rules.Load().attached
	}
	return nil
}

// Letter implements outside.Kernel.
func (k kernel) Letter(reason DeadReason, to abi.Ref, e *mailbox.Envelope) {
	path := ""
	if a := k.here(to); a != nil {
		path = a.path
	}
	k.deadLetter(reason, to, path, e)
}

// Begin implements outside.Kernel.
func (k kernel) Begin(ctx context.Context, kind SpanKind, to Ref, e *mailbox.Envelope) Span {
	return k.fromOutside(ctx, kind, to, e)
}

// Sent implements outside.Kernel.
func (k kernel) Sent(s Span, err error) { k.tracing.Sent(s, err) }

// In implements outside.Kernel.
func (k kernel) In(parent context.Context, headers []byte) context.Context {
	return k.tracing.In(parent, headers)
}

// Values implements outside.Kernel.
func (k kernel) Values(ctx context.Context) *mailbox.Attached { return k.carry(ctx) }

// Random implements outside.Kernel.
func (k kernel) Random(uid abi.Ref, n uint64) []byte {
	v := k.secret.Derive(secret.ForRetries, uid, n)
	return v[:]
}
