package stream

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/box"
	"github.com/wasmactors/wasmactors/supervision"
)

// side is the actor's side of a stream: a source's or a sink's.
type side interface {
	common() *half
	// serve answers a request. An error is the answer.
	serve(ctx *host.Context, m host.Message, op string, args *abi.Reader) error
	// waits reports whether the guest waits for the world. The lock is held.
	waits() bool
	// fail answers requests that still wait. The lock is held.
	fail(why error)
}

// behaviour is the actor of a stream.
type behaviour struct{ side }

// props makes the props of a stream's actor. They are for one actor.
func props(s side, typ string) host.Props {
	h := s.common()
	return host.Behave(typ, func() host.Behaviour { return behaviour{s} }).
		WithLifetime(supervision.Temporary).
		WithMailbox(func(l host.MailboxLimits) host.Mailbox {
			if lossy, ok := s.(interface{ lost() }); ok {
				return box.New(l, lossy.lost)
			}
			return box.New(l, func() {})
		}).
		WithLimits(host.Limits{
			Mailbox: 4*h.p.Ahead + 16, MailboxBytes: int64(h.p.Window) + 4<<10, Replies: h.p.Ahead + 1,
			Children: 1, Timers: 1, Watches: 1, Asks: 1, Stash: 1,
		})
}

func (b behaviour) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	h := b.common()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sys != nil {
		return &abi.Failure{Kind: abi.FailureInit, Reason: "the props of a stream are for one actor"}
	}
	h.sys, h.self = ctx.System(), ctx.Self()
	h.touch()
	if h.over {
		ctx.Stop(h.self)
		return nil
	}
	if !h.p.Owner.IsZero() {
		if err := ctx.Watch(h.p.Owner); err != nil {
			return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
		}
	}
	if h.p.Idle > 0 {
		ctx.SetReceiveTimeout(h.p.Idle)
	}
	return nil
}

func (b behaviour) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		switch m.Kind {
		case abi.KindMessage:
			b.request(ctx, m)
		case abi.KindTerminated:
			if m.Sender.UID() == b.common().p.Owner.UID() {
				b.end(ErrOwnerEnded)
			}
		case abi.KindReceiveTimeout:
			b.idle(ctx)
		}
	}
}

// request answers a request of the guest's.
func (b behaviour) request(ctx *host.Context, m host.Message) {
	h := b.common()
	var err error
	if h.p.Access == OwnerOnly && m.Sender.UID() != h.p.Owner.UID() {
		err = service.Errorf(service.Denied, "the stream is another actor's")
	} else {
		r := abi.NewReader(m.Payload)
		if r.Array() != 2 || r.Peek() != abi.TypeText {
			err = service.Errorf(service.BadRequest, "a request to a stream is [op, args]")
		} else {
			op := r.TextBytes()
			err = b.serve(ctx, m, string(op), r)
		}
	}
	if err != nil && asked(m) {
		_ = ctx.ReplyError(text(err))
	}
}

// asked reports whether somebody waits for an answer.
func asked(m host.Message) bool { return m.Correlation != 0 && !m.Sender.IsZero() }

// idle ends a stream that its guest does not use.
func (b behaviour) idle(ctx *host.Context) {
	h := b.common()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !b.waits() && ctx.Now().Sub(h.last) >= h.p.Idle {
		b.fail(ErrIdle)
		h.finish(ErrIdle)
	}
}

// end ends the stream for a reason that comes from neither side.
func (b behaviour) end(why error) {
	h := b.common()
	h.mu.Lock()
	defer h.mu.Unlock()
	b.fail(why)
	h.finish(why)
}

func (b behaviour) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

func (b behaviour) CannotRewind() string { return "a stream cannot be resumed" }

func (b behaviour) Rewind(*host.Context) bool { return false }

func (b behaviour) End(ctx *host.Context, _ host.End) {
	h := b.common()
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Self().Equal(h.self) || h.self.IsZero() { // and not a second one of the same props
		b.fail(ErrStopped)
		h.finish(ErrStopped)
	}
}

// nothing reads the args of a request that takes none.
func nothing(op string, r *abi.Reader) error {
	if r.Null(); r.Done() != nil {
		return service.Errorf(service.BadRequest, "%s takes null", op)
	}
	return nil
}
