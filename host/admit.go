package host

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/instance"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// A guest starts when there is room for its instance, and no checkpoint is being made. Until then it waits as one does that cannot be
// woken: what comes for it waits in its mailbox, and its supervisor has nothing to decide.

// admit gets the incarnation that begins its instance, unless the one before has left it: a fresh one, or one in
// the state that the actor is to be restored to. If there is no room at the moment the actor waits, and begins as s says
// when there is. A failure says that there will never be.
func (g *guest) admit(scr *scratch, s starting) (f *abi.Failure, waits bool) {
	a := g.actor
	if restsFirst(a) {
		g.start = &starting{s.cause, s.held}
		a.life.Hold(life.Starved)
		return nil, true
	}
	g.setImage()
	if p := a.sys.repeats.Load().of(a); p != nil && a.rules.Load().rare.Get().State == nil && !p.expects(a) {
		g.start = &starting{s.cause, s.held} // no record has a turn of it: there was no room, or it has failed before it had one
		a.life.Hold(life.Starved)
		return nil, true
	}
	if g.inst.Load() != nil {
		return nil, false
	}
	weight, snap := sandbox.Weight(g.inst.Image), (*sandbox.Snapshot)(nil)
	if a.rules.Load().rare.Get().State != nil {
		was, err := saved.Decode(*a.rules.Load().rare.State)
		if err == nil {
			snap, err = sandbox.DecodeSnapshot(g.inst.Image, was.Guest, a.rules.Load().limits.Memory)
		}
		if err != nil {
			return errs.AsFailure(abi.FailureInit, err), false
		}
		weight = sandbox.SavedWeight(g.inst.Image, snap)
	}
	_, err := g.inst.Obtain(scr.w, weight, snap)
	switch {
	case err == nil:
		return nil, false
	case instance.NoRoom(err) && !instance.Hopeless(err):
		g.start = &starting{s.cause, s.held} // s itself would always be on the heap
		a.life.Hold(life.Starved)
		g.inst.TryAgain("start", err, sysmail.Msg{Kind: sysmail.Instance})
		return nil, true
	case instance.NoRoom(err):
		a.crowded = true
		memoryRefused(a, "start", err)
	}
	return errs.AsFailure(abi.FailureInit, err), false
}

// setImage has the incarnation that begins run the image that the module has now, that of a durable actor the one that records say.
func (g *guest) setImage() {
	image := g.module.Image()
	if g.own != nil {
		image = g.own
	} else if image == g.pin.of && image != nil {
		image = g.pin.image
	}
	if image != g.inst.Image {
		g.inst.Release()
		for !sandbox.Use(image) && image != g.module.Image() {
			image = g.module.Image() // the one before was closed meanwhile
		}
		setCode(g, image)
	}
}

// setCode has the guest run an image, which the caller has taken into use.
func setCode(g *guest, image *sandbox.Image) {
	passOn(g, image)
	d := image.Description()
	g.pin = pin{}
	g.inst.Image, g.inst.Sleeps, g.told, g.silent = image, sandbox.CannotSave(image) == "", slices.Contains(d.Needs, abi.FeatureAsks), slices.Contains(d.Silent, g.actor.props.typ)
}

// startsLater begins the incarnation again in a while, where there were too many long turns for its start to go on. That
// says nothing about the start, which is as long as the machine is busy.
func (g *guest) startsLater(f *abi.Failure, s starting) bool {
	if !sandbox.IsCrowded(f) {
		return false
	}
	g.inst.Release()
	g.start = &starting{s.cause, s.held}
	g.actor.life.Hold(life.Starved)
	g.inst.TryAgain("start", f, sysmail.Msg{Kind: sysmail.Instance})
	return true
}
