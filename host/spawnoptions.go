package host

import (
	"fmt"
	"math"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/supervision"
)

// SpawnOptions are what a guest says about a child that it spawns. Zero fields mean the defaults.
type SpawnOptions struct {
	Lifetime    supervision.Lifetime
	Significant bool
	Crashed     CrashedMessage
	Supervision *supervision.Strategy // of the child's own children; nil: as its parent's

	Mailbox       func(MailboxLimits) Mailbox // nil: the usual one
	MailboxLimits MailboxLimits               // 0: as its parent's, which they must not exceed
	MailboxWait   time.Duration               // for how long senders from Go may wait for it, at most MaxSpawnWait
	Dispatcher    Dispatcher

	// Held is how many bytes the host keeps of the options as long as the child lives: they are on the
	// child's account.
	Held int64
}

// MaxSpawnWait bounds how long the mailbox of a child that a guest has spawned may make senders from
// Go wait.
const MaxSpawnWait = 10 * time.Second

// childProps are the props of a child that the guest spawns, but for its arguments.
func (g *guest) childProps(typ string, options []byte) (Props, error) {
	a, own := g.actor, g.actor.rules.Load()
	p := GuestOf(g.module, declared(g.module, typ)).WithLimits(own.limits.ForChildren())
	if p.make != nil {
		p.make = a.props.make // of the same module: children of one type are made with the same words, and share their rules
	}
	p.caps, p.compiled, p.grants = own.caps, own.compiled, own.grants
	p, err := g.withOptions(p, options)
	if p.spawned = true; a.durable && a.sys.durable != nil && options != nil { // a checkpoint has them
		kept := append([]byte{}, options...)
		p.rare = p.rare.With(func(r *seldom.Props) { r.Options = &kept })
		p.optionBytes += int32(len(options))
	}
	return p, err
}

// declared is the module's own text of one of its types; typ if it has no such type.
func declared(m *Module, typ string) string {
	if image := m.Image(); image != nil {
		for _, t := range image.Description().Types {
			if t == typ {
				return t
			}
		}
	}
	return typ
}

// withOptions applies the options of a spawn. Children of guests are supervised as
// their parent supervises its own, unless the options say otherwise.
func (g *guest) withOptions(p Props, options []byte) (Props, error) {
	a := g.actor
	p = p.WithSupervision(a.props.strategy)
	if options == nil {
		return p, nil
	}
	if a.sys.cfg.options == nil {
		return p, fmt.Errorf("%w: this host does not support spawn options", ErrBadProps)
	}
	o, err := a.sys.cfg.options(options)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrBadProps, err)
	}
	if err := o.within(a); err != nil {
		return p, fmt.Errorf("%w: %w", ErrBadProps, err)
	}
	if o.Supervision != nil {
		p = p.WithSupervision(*o.Supervision)
	}
	if o.MailboxLimits.Messages > 0 {
		p.limits.Mailbox = o.MailboxLimits.Messages
	}
	if o.MailboxLimits.Bytes > 0 {
		p.limits.MailboxBytes = o.MailboxLimits.Bytes
	}
	p.optionBytes = int32(min(max(o.Held, 0), math.MaxInt32))
	return p.WithLifetime(o.Lifetime).WithSignificant(o.Significant).WithCrashedMessage(o.Crashed).
		WithMailbox(o.Mailbox).WithDispatcher(o.Dispatcher), nil
}

// within reports an option that gives the child more than its parent has.
func (o *SpawnOptions) within(parent *actor) error {
	l, d := parent.rules.Load().limits, o.Dispatcher
	most := max(int(parent.throughput), -int(parent.throughput), parent.sys.cfg.throughput)
	switch {
	case o.MailboxLimits.Messages > l.Mailbox:
		return fmt.Errorf("mailbox.messages: %d, but the parent's own mailbox holds %d, see limits.mailbox", o.MailboxLimits.Messages, l.Mailbox)
	case o.MailboxLimits.Bytes > l.MailboxBytes:
		return fmt.Errorf("mailbox.bytes: %d, but the parent's own mailbox holds %d, see limits.mailbox-bytes", o.MailboxLimits.Bytes, l.MailboxBytes)
	case o.MailboxWait > MaxSpawnWait:
		return fmt.Errorf("mailbox.wait: %v, at most %v for the children of guests", o.MailboxWait, MaxSpawnWait)
	case d.throughput > most:
		return fmt.Errorf("dispatcher.throughput: %d, at most %d below this parent", d.throughput, most)
	}
	return nil
}
