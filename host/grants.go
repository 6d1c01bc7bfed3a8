package host

import (
	"context"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What an actor may use of services, and how a service learns of it: by what the host
// attaches to each message that the actor itself sends, never by what the message says. No
// guest sees the attachment, and a message that a guest forwards has lost it.

// WithGrant lets the actor use the service of this name below /system: the ref of the service
// is in its start payload, and each of its messages carries the grant, which the service gets by
// [Head.Grant]. What a grant contains is defined by the service. Children that a guest spawns have the
// grants of their parent.
func (p Props) WithGrant(service string, grant any) Props {
	grants := slices.DeleteFunc(slices.Clone(p.grants), func(g mailbox.Grant) bool { return g.Service == service })
	grants = append(grants, mailbox.Grant{Service: service, Value: grant})
	slices.SortFunc(grants, func(a, b mailbox.Grant) int { return strings.Compare(a.Service, b.Service) })
	p.grants = grants
	return p
}

// Grant is what the sender of the current message may use of a service: the value given to
// [Props.WithGrant] for it. It is nil if there is no grant, if no actor has sent the message, or if
// a guest has forwarded it.
func (h Head) Grant(service string) any {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return nil
	}
	for _, g := range h.ctx.env.Attached.Grants {
		if g.Service == service {
			return g.Value
		}
	}
	return nil
}

// Values has the values of the Go context of the ask from outside that has led to the current
// message, see [Config.WithContextValues]. It never ends.
func (h Head) Values() context.Context {
	if h.ctx.env == nil || h.ctx.env.Attached == nil || h.ctx.env.Attached.Context == nil {
		return context.Background()
	}
	return h.ctx.env.Attached.Context
}

// Service is the ref of a service that the actor has a grant for, if the service has been started.
func (c *Context) Service(name string) (Ref, bool) {
	a := c.actor
	if !granted(a, name) {
		return Ref{}, false
	}
	s := a.sys.service(name)
	if s == nil {
		return Ref{}, false
	}
	return s.ref(), true
}

// granted reports whether the actor has a grant for a service.
func granted(a *actor, name string) bool {
	return slices.ContainsFunc(a.rules.Load().grants, func(g mailbox.Grant) bool { return g.Service == name })
}

// services are those that the actor has grants for and that have been started.
func (a *actor) services() (out []abi.Service) {
	if p := a.sys.repeats.Load().of(a); p != nil {
		if then := p.then[a.uid]; then != nil && !then.Inherits {
			return p.services(a, then.Services)
		}
	}
	for _, g := range a.rules.Load().grants {
		if s := a.sys.service(g.Service); s != nil {
			out = append(out, abi.Service{Name: g.Service, Ref: s.uid})
		}
	}
	return out
}

// services are those that an actor had a grant for. One that is not there now has the ref that it had, unless the actor has the grant still:
// then it was not there either.
func (p *repeats) services(a *actor, names []string) (out []abi.Service) {
	for _, name := range names {
		if s := p.sys.service(name); s != nil {
			out = append(out, abi.Service{Name: name, Ref: s.uid})
		} else if d := p.sys.durable; d != nil && !granted(a, name) {
			out = append(out, abi.Service{Name: name, Ref: d.lives.First(p.sys.services.uid, p.sys.services.path+"/"+name)})
		}
	}
	return out
}

// service is the living actor of a name below /system.
func (s *System) service(name string) *actor { return s.nodes.Find([]string{"system", name}) }

// attachedIn is the attachment of a message that is sent in the turn of another.
func (r *rules) attachedIn(turn *mailbox.Envelope) *mailbox.Attached {
	if turn == nil || turn.Attached == nil || turn.Attached.Context == nil {
		return r.attached
	}
	return &mailbox.Attached{Grants: r.grants, Context: turn.Attached.Context}
}

// carry is the attachment of an ask from Go.
func (s *System) carry(ctx context.Context) *mailbox.Attached {
	return message.Values(ctx, s.cfg.Values)
}
