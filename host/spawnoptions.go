package host

import (
	"fmt"
	"math"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/internal/glob"
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

	Elsewhere *Elsewhere // nil: the child runs here
}

// MaxSpawnWait bounds how long the mailbox of a child that a guest has spawned may make senders from
// Go wait.
const MaxSpawnWait = 10 * time.Second

// childProps are the props of a child that the guest has spawned here, but for its arguments. They are whole also if the error is that the
// parent may not give so much.
func (g *guest) childProps(typ string, options []byte) (Props, error) {
	o, err := readOptions(g.actor.sys, options)
	if o.Elsewhere != nil {
		err = errElsewhere
	}
	if err != nil {
		return Props{}, err
	}
	return propsOfChild(g, typ, options, &o)
}

// readOptions reads the options of a spawn.
func readOptions(s *System, options []byte) (o SpawnOptions, err error) {
	switch {
	case options == nil:
	case s.cfg.Options == nil:
		err = fmt.Errorf("%w: this host does not support spawn options", ErrBadProps)
	default:
		if o, err = s.cfg.Options(options); err != nil {
			err = fmt.Errorf("%w: %w", ErrBadProps, err)
		}
	}
	return o, err
}

// propsOfChild are the props of a child that the guest spawns here, with options that were read. They are whole also with an error.
func propsOfChild(g *guest, typ string, options []byte, o *SpawnOptions) (Props, error) {
	a, own := g.actor, g.actor.rules.Load()
	p := GuestOf(g.module, declared(g.module, typ)).WithLimits(own.limits.ForChildren())
	if p.make != nil {
		p.make = a.props.make // of the same module: children of one type are made with the same words, and share their rules
	}
	p.caps, p.compiled, p.grants = own.caps, own.compiled, own.grants
	p, err := withOptions(a, p, options, o)
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
// their parent supervises its own, unless the options say otherwise. The error is that they give the child more than its parent has.
func withOptions(a *actor, p Props, options []byte, o *SpawnOptions) (Props, error) {
	p = p.WithSupervision(a.props.strategy)
	if options == nil {
		return p, nil
	}
	err := o.within(a)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadProps, err)
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
		WithMailbox(o.Mailbox).WithDispatcher(o.Dispatcher), err
}

// within reports an option that gives the child more than its parent has.
func (o *SpawnOptions) within(parent *actor) error {
	l, d := parent.rules.Load().limits, o.Dispatcher
	most := max(int(parent.throughput), -int(parent.throughput), parent.sys.cfg.Throughput)
	switch {
	case o.MailboxLimits.Messages > l.Mailbox:
		return fmt.Errorf("mailbox.messages: %d, but the parent's own mailbox holds %d, see limits.mailbox", o.MailboxLimits.Messages, l.Mailbox)
	case o.MailboxLimits.Bytes > l.MailboxBytes:
		return fmt.Errorf("mailbox.bytes: %d, but the parent's own mailbox holds %d, see limits.mailbox-bytes", o.MailboxLimits.Bytes, l.MailboxBytes)
	case o.MailboxWait > MaxSpawnWait:
		return fmt.Errorf("mailbox.wait: %v, at most %v for the children of guests", o.MailboxWait, MaxSpawnWait)
	case d.Throughput() > most:
		return fmt.Errorf("dispatcher.throughput: %d, at most %d below this parent", d.Throughput(), most)
	}
	return nil
}

// Elsewhere has a child that a guest spawns run on another node. In its place an actor in Go is the guest's child, with
// the name and the ref, and stands for it: see package remote of host/cluster.
type Elsewhere struct {
	// May reports whether the guest, with what Capabilities.Spawn says, may spawn the type there.
	May func(spawn []string, typ string) bool
	// Props makes the actor that stands for the child. It must not block.
	Props func(Spawning) (Props, error)
}

// Spawning is a spawn of a guest whose child runs elsewhere. Args and Options are valid during the call.
type Spawning struct {
	Parent       Ref
	Module       *Module // of the parent, and of the child
	Type         string
	Args         []byte // CBOR; empty: none
	Options      []byte // as the guest has written them
	Limits       Limits // that children of the guest have here
	Capabilities Capabilities
	Supervision  supervision.Strategy // of the guest, for its children
}

var (
	errElsewhere = fmt.Errorf("%w: the child of another node cannot be brought back", ErrBadProps)
	errLasting   = fmt.Errorf("%w: a durable actor cannot have children on other nodes, which would not come back with it", ErrBadProps)
)

// may reports whether a guest with these capabilities may spawn the type, here or elsewhere.
func (o *SpawnOptions) may(spawn []string, typ string) bool {
	if o.Elsewhere != nil {
		return o.Elsewhere.May(spawn, typ)
	}
	return glob.MatchAny(spawn, typ)
}

// standIn is the props of the actor that stands for a child elsewhere.
func standIn(g *guest, cmd *abi.Command, o *SpawnOptions) (Props, error) {
	a, own := g.actor, g.actor.rules.Load()
	if a.durable && a.sys.durable != nil {
		return Props{}, errLasting
	}
	if err := a.box.Crowded(0); err != nil { // with spawns that have failed: nothing else bounds how many there are
		return Props{}, err
	}
	if err := o.within(a); err != nil {
		return Props{}, fmt.Errorf("%w: %w", ErrBadProps, err)
	}
	p, err := o.Elsewhere.Props(Spawning{
		Parent: a.ref(), Module: g.module, Type: string(cmd.Type), Args: cmd.Payload, Options: cmd.Options,
		Limits: own.limits.ForChildren(), Capabilities: own.caps, Supervision: a.props.strategy,
	})
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrBadProps, err)
	}
	return p.WithLifetime(supervision.Temporary), nil
}
