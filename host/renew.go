package host

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/family"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
)

// A renewal is a restart that is asked for from outside, because the code of an actor or its
// props have changed. Messages that wait for the actor, and actors that know it, notice nothing but the
// new behaviour.

// renewedByHand is the cause of the incarnation that a renewal begins, unless the previous one
// has failed.
var renewedByHand = &abi.Failure{Kind: abi.FailureKilled, Reason: "its code or its props have changed"}

// renew asks the supervisor to restart the actor; n is nil if nothing of it changes. It is false
// if either has ended. The supervisor decides in a run of its own: until then the actor handles
// no message, so that the present incarnation gets none that was sent after this.
func (a *actor) renew(why *abi.Failure, n *renewal) bool {
	m := sysmail.Msg{Kind: sysmail.Renew, Kin: sysmail.Kin{Ref: a.uid, Failure: why}}
	if n != nil {
		m.Detail = n
	}
	if !a.post(nil, sysmail.Msg{Kind: sysmail.AwaitRenewal}) {
		return false
	}
	if !a.parent.post(nil, m) {
		a.post(nil, sysmail.Msg{Kind: sysmail.Renewed})
		return false
	}
	a.killFor(why.Reason)
	return true
}

// renewCode has an actor begin anew with the code that its module has now. It is false if it has ended.
func renewCode(a *actor) bool {
	if a.parent.props.module == nil && a.parent.props.typ == resenderType {
		return a.stop(nil, "its code has changed")
	}
	return a.renew(renewedByHand, &renewal{})
}

// actorsOf are the actors of a module that are not ending, sorted by path.
func actorsOf(s *System, m *Module) (all []*actor) {
	away(s).ReturnAll()
	s.table.Each(func(a *actor) {
		if a.props.module == m && a.parent != nil && !a.life.State().Ending() {
			all = append(all, a)
		}
	})
	slices.SortFunc(all, func(a, b *actor) int { return strings.Compare(a.path, b.path) })
	return all
}

// covered reports whether the renewal of an actor above a covers a as well, or but excludes a or an
// actor above it.
func (a *actor) covered(m *Module, but []Ref) bool {
	for at := a; at != nil; at = at.parent {
		if at != a && at.props.module == m || slices.Contains(but, at.ref()) {
			return true
		}
	}
	return false
}

// alike reports whether an actor with props p can go on with q.
func alike(p, q *Props) bool { return p.module != nil && p.module == q.module && p.typ == q.typ }

// usable is check, including the arguments.
func (p Props) usable() error {
	if err := p.check(); err != nil {
		return err
	}
	if p.args != nil {
		if _, err := Encode(p.args); err != nil {
			return fmt.Errorf("%w: the arguments: %w", ErrBadProps, err)
		}
	}
	for _, c := range p.children {
		if err := c.Props.usable(); err != nil {
			return fmt.Errorf("child %q: %w", c.Name, err)
		}
	}
	return nil
}

// adopt applies what a renewal changes, between two incarnations, and returns the children
// of the old props.
func (a *actor) adopt(n *renewal) (before []Child) {
	before = a.rules.Load().children
	p := n.props
	if p == nil {
		return before
	}
	args, l := argsOf(p), limitsAfter(a, p)
	old, was := a.rules.Load().limits, ruledBy(a, false)
	changeRules(a, func(r *Props) {
		r.limits, r.children, r.grants = l, p.children, p.grants
		r.caps, r.compiled = p.caps, p.capabilities()
		r.bindMessage()
	})
	if is := ruledBy(a, false); a.rules.Load().limits != old || !is.Equal(&was) {
		noteLife(a, record.Changed)
	}
	a.account.Note(account.Base, a.account.Of(account.Base)+int64(len(args)-len(a.args)))
	a.args = args
	return before
}

// named finds the props of a child.
func named(children []Child, name string) *Props {
	for i := range children {
		if children[i].Name == name {
			return &children[i].Props
		}
	}
	return nil
}

// renewChild tells a child what the renewal of its parent means for it; false: the child stops.
func (a *actor) renewChild(scr *scratch, k *family.Member[*actor], before []Child, o renewOrder) bool {
	p := named(a.rules.Load().children, k.Name())
	order := restartOrder(o.cause)
	order.Keep, order.Delay, order.Now, order.Renewal = o.keep, o.owed, true, &renewal{p}
	stays := p != nil && alike(k.Child.props, p) ||
		p == nil && o.keep && named(before, k.Name()) == nil // one that it has spawned itself
	if p := a.sys.repeats.Load().of(a); p != nil {
		stays = p.stays(k.Child, stays)
	}
	if !stays {
		watching{a, scr}.dropRef(k.Child.uid)
		a.super.Order(a.in(scr), k, stopOrder(rebuild.RemovedReason))
		return false
	}
	a.super.Order(a.in(scr), k, order)
	return true
}

// hasten turns a restart under way into a renewal, without further delay.
func (a *actor) hasten(scr *scratch, r *restarting, n *renewal) {
	before := a.adopt(n)
	if !r.keep && r.leave == nil {
		return // all children are about to stop
	}
	for _, k := range a.super.Family.Members() {
		if !r.leave[k.Child] && !a.renewChild(scr, k, before, renewOrder{cause: r.cause, keep: r.keep}) {
			r.leaves(k.Child)
		}
	}
}

// leaves notes a child that the next incarnation waits for.
func (r *restarting) leaves(k *actor) {
	if r.leave == nil {
		r.leave = map[*actor]bool{}
	}
	r.leave[k] = true
}

// waits reports whether children are still to stop before the next incarnation.
func (r *restarting) waits(f *family.Family[*actor]) bool {
	switch {
	case r.leave != nil:
		for _, k := range f.Children() {
			if r.leave[k] {
				return true
			}
		}
		return false
	case r.keep:
		return false
	}
	return f.Len() > 0
}

// renewOrder is what a renewal hands down.
type renewOrder struct {
	cause *abi.Failure
	keep  bool
	owed  time.Duration
}
