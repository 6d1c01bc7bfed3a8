package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Supervisor is an actor in Go that decides itself about failures of its children
// that its strategy answers with [supervision.Ask]. Deciding must be quick, as
// every turn. 0 leaves it to the default decider.
type Supervisor interface {
	Decide(ctx *Context, child Ref, f *abi.Failure) supervision.Directive
}

// ask has the actor itself decide about a failed child, in a turn of its own. What it
// does not decide the default decider decides, also if that turn fails: then when the
// actor goes on, and the result is 0.
func (c *cell) ask(scr *scratch, m *sysMsg) supervision.Directive {
	ask := c.askNative
	if c.props.image != nil {
		ask = c.askGuest
	}
	d, failure := ask(scr, m.child, m.failure)
	if failure != nil || d < supervision.Resume || d > supervision.Suspend {
		d = supervision.DefaultDirective(m.failure.Kind)
	}
	if failure != nil {
		m.directive = d
		c.undecided = append(c.undecided, *m)
		c.fail(scr, failure)
		return 0
	}
	return d
}

func (c *cell) askNative(scr *scratch, child *cell, f *abi.Failure) (d supervision.Directive, failure *abi.Failure) {
	s, ok := c.actor.(Supervisor)
	if !ok {
		return 0, nil
	}
	ctx := Context{cell: c, scr: scr}
	defer ctx.over()
	failure = c.guarded(func() error { d = s.Decide(&ctx, child.ref(), f); return nil })
	if failure != nil {
		c.actor = nil // not to be called any more
	}
	return d, failure
}

// askGuest runs a turn with a child_failed envelope; the guest answers with the
// command decide.
func (c *cell) askGuest(scr *scratch, child *cell, f *abi.Failure) (supervision.Directive, *abi.Failure) {
	x, err := c.instance(scr)
	if err != nil {
		return 0, nil // the default decides
	}
	c.verdict = verdict{asked: true}
	failure := c.hook(scr, x, abi.KindChildFailed, child.uid, abi.AppendFailure(nil, f))
	d := c.verdict.directive
	c.verdict = verdict{}
	return d, failure
}

// verdict is what a guest decides about a child.
type verdict struct {
	asked     bool // within the turn that asks
	directive supervision.Directive
}

// applyDecide takes a guest's decision.
func (c *cell) applyDecide(cmd *abi.Command) {
	if c.verdict.asked {
		c.verdict.directive = supervision.Directive(cmd.Directive)
	}
}
