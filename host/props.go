package host

import (
	"fmt"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/seldom"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// bindMessage decides how large a message may be that an actor with these props is sent; 0: any size.
func (p *Props) bindMessage() {
	l := &p.limits
	l.Message = max(l.Message, 0)
	if p.module == nil {
		return
	}
	image := p.module.Image()
	most := int64(sandbox.InboxCap(image))
	if sandbox.Large(image) {
		if l.Message == 0 {
			l.Message = DefaultMessage
		}
		memory := sandbox.MemoryLimit(image)
		if l.Memory != 0 {
			memory = min(memory, l.Memory)
		}
		most = max(most, int64(memory))
	}
	if most -= overhead; l.Message == 0 || l.Message > most {
		l.Message = most
	}
}

// Child is an actor that the host starts below another.
type Child struct {
	Name  string
	Props Props
}

// Props describe how to make an actor. They are immutable, every With method
// returns a changed copy, and may be used any number of times.
type Props struct {
	make     func(*actor) Behaviour
	factory  func() Actor // of an actor in Go
	module   *Module      // of a guest
	typ      string
	dispatch *Dispatcher // nil: the default
	rare     *seldom.Props
	args     any
	limits   Limits
	caps     Capabilities
	compiled *capabilities   // caps; nil: none
	grants   []mailbox.Grant // sorted by service
	strategy supervision.Strategy
	children []Child

	life        supervision.Lifetime
	significant bool
	crashed     CrashedMessage
	durable     bool  // see WithDurable
	events      bool  // see WithEvents
	keeps       bool  // see WithKeeping
	spawned     bool  // by a guest
	optionBytes int32 // taken by the options of a guest's spawn
}

// WithArgs sets what the actor gets at its start: any value that CBOR can hold.
func (p Props) WithArgs(args any) Props { p.args = args; return p }

// WithLimits sets the limits.
func (p Props) WithLimits(l Limits) Props { p.limits = l; return p }

// WithCapabilities sets what a guest may do.
func (p Props) WithCapabilities(c Capabilities) Props {
	p.caps, p.compiled = c, &capabilities{send: glob.CompilePaths(c.Send), stop: glob.CompilePaths(c.Stop)}
	return p
}

// capabilities are compiled ones, which all actors with the same props share.
type capabilities struct {
	send, stop []glob.Path
}

var noCapabilities = &capabilities{}

func (p *Props) capabilities() *capabilities {
	if p.compiled == nil {
		return noCapabilities
	}
	return p.compiled
}

// WithSupervision sets how the actor treats its children.
func (p Props) WithSupervision(s supervision.Strategy) Props { p.strategy = s; return p }

// WithLifetime sets after which kinds of end the actor's supervisor restarts it.
func (p Props) WithLifetime(l supervision.Lifetime) Props { p.life = l; return p }

// WithSignificant makes the actor's end count for its supervisor's
// [supervision.Shutdown]. The props of a permanent actor that is significant are invalid, since it never
// ends by itself.
func (p Props) WithSignificant(on bool) Props { p.significant = on; return p }

// WithMailbox gives the actor another mailbox than the usual bounded queue; make
// is called once for each actor, with its limits.
func (p Props) WithMailbox(make func(MailboxLimits) Mailbox) Props {
	if make != nil || p.rare.Get().Mailbox != nil {
		p.rare = p.rare.With(func(r *seldom.Props) { r.Mailbox = make })
	}
	return p
}

// WithCrashedMessage sets what happens to a message whose turn fails.
func (p Props) WithCrashedMessage(m CrashedMessage) Props { p.crashed = m; return p }

// WithChildren makes the host start actors below this one, in this order, after
// every start of it.
func (p Props) WithChildren(children ...Child) Props {
	p.children = append([]Child(nil), children...)
	return p
}

// Type is the actor's type; "native" for actors in Go.
func (p Props) Type() string { return p.typ }

// WithError makes p fail: whoever spawns it gets err, as an ErrBadProps. Packages that make props from other values
// refuse invalid ones so, instead of letting each incarnation fail. A nil err changes nothing.
func (p Props) WithError(err error) Props {
	if err != nil && p.rare.Get().Wrong == nil {
		p.rare = p.rare.With(func(r *seldom.Props) { r.Wrong = fmt.Errorf("%w: %w", ErrBadProps, err) })
	}
	return p
}

// Check reports why p cannot become an actor, as spawning it would.
func (p Props) Check() error { return p.check() }

// check reports why p cannot become an actor.
func (p *Props) check() error {
	switch {
	case p.make == nil:
		return fmt.Errorf("%w: they have neither an image nor a factory", ErrBadProps)
	case p.rare.Get().Wrong != nil:
		return p.rare.Wrong
	case p.significant && p.life == supervision.Permanent:
		return fmt.Errorf("%w: a permanent actor cannot be significant: it is always restarted and never ends by itself", ErrBadProps)
	case p.module != nil:
		d := p.module.Image().Description()
		if !d.Has(p.typ) {
			return fmt.Errorf("%w: the module has no actor type %q, it has %s", ErrBadProps, p.typ, strings.Join(d.Types, ", "))
		}
	}
	if p.dispatch != nil {
		if err := workplace.CheckDispatcher(p.dispatch, p.module != nil); err != nil {
			return err
		}
	}
	if len(p.grants) > abi.MaxServices {
		return fmt.Errorf("%w: %d services, at most %d", ErrBadProps, len(p.grants), abi.MaxServices)
	}
	for _, g := range p.grants {
		if !abi.ValidServiceName(g.Service) {
			return fmt.Errorf("%w: %q cannot be the name of a service", ErrBadProps, printable.Clip(g.Service, 100))
		}
	}
	if len(p.children) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, c := range p.children {
		if seen[c.Name] {
			return fmt.Errorf("%w: two children are called %q", ErrBadProps, c.Name)
		}
		seen[c.Name] = true
		if err := c.Props.check(); err != nil {
			return fmt.Errorf("child %q: %w", c.Name, err)
		}
	}
	return nil
}
