package host

import (
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/supervision"
)

// SpawnOptions are what a guest says about a child that it spawns. Zero fields mean the defaults. Package spawning describes them.
type SpawnOptions = spawning.Options[Props]

// Elsewhere has a child that a guest spawns run on another node, see package spawning.
type Elsewhere = spawning.Elsewhere[Props]

// Spawning is a spawn of a guest whose child runs elsewhere. Args and Options are valid during the call.
type Spawning = spawning.Spawning

// MaxSpawnWait bounds how long the mailbox of a child that a guest has spawned may make senders from
// Go wait.
const MaxSpawnWait = spawning.MaxWait

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
	err := within(o, a)
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
func within(o *SpawnOptions, parent *actor) error {
	most := max(int(parent.throughput), -int(parent.throughput), parent.sys.cfg.Throughput)
	return spawning.Within(o, &parent.rules.Load().limits, most)
}

var (
	errElsewhere = fmt.Errorf("%w: the child of another node cannot be brought back", ErrBadProps)
	errLasting   = fmt.Errorf("%w: a durable actor cannot have children on other nodes, which would not come back with it", ErrBadProps)
)

// standIn is the props of the actor that stands for a child elsewhere.
func standIn(g *guest, cmd *abi.Command, o *SpawnOptions) (Props, error) {
	a, own := g.actor, g.actor.rules.Load()
	if a.durable && a.sys.durable != nil {
		return Props{}, errLasting
	}
	if err := a.box.Crowded(0); err != nil { // with spawns that have failed: nothing else bounds how many there are
		return Props{}, err
	}
	if err := within(o, a); err != nil {
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
