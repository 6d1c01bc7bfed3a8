package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/secret"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// laneOf is where a worker writes its records.
func laneOf(s *System, scr *scratch) *recorder.Lane {
	if scr.lane == nil {
		scr.lane = s.cfg.Tape.NewLane()
	}
	return scr.lane
}

// beginTape begins to record an incarnation, whose instance is in its image's state.
func beginTape(g *guest, scr *scratch) {
	a := g.actor
	if a.sys.cfg.Tape == nil {
		return
	}
	lane := laneOf(a.sys, scr)
	if a.durable || keepsEvents(a) {
		lane.Refuse(a.path, "it is durable")
		return
	}
	x := taped(g, scr, a.turns)
	if g.track = lane.Begin(&x, g.inst.Image); g.track != nil {
		a.looks |= uint8(lookTape)
	}
}

// taped describes the incarnation to the recorder.
func taped(g *guest, scr *scratch, turns uint64) recorder.Incarnation {
	a := g.actor
	in := g.limits(scr, 0)
	return recorder.Incarnation{
		Path: a.path, Type: a.props.typ, Ref: a.uid, Number: a.Incarnation(), Turns: turns, Seed: g.keys.Seed,
		Prepare: secretFor(a).Seed(secret.ForUnfrozen, a.uid, a.Incarnation()), Fuel: in.TurnFuel, Memory: in.MemoryLimit, Outbox: in.OutboxLimit,
	}
}

// endTape ends the record of an incarnation. why is empty if that is over.
func endTape(g *guest, scr *scratch, why string) {
	if g.track == nil {
		return
	}
	if lane := laneOf(g.actor.sys, scr); why == "" {
		lane.End(g.track, g.actor.sys.time.Now())
	} else {
		lane.Leave(g.track, why)
	}
	g.track = nil
	g.actor.looks &^= uint8(lookTape)
}

// tapeOne is tapeTurns for an entry of one turn that has ended well, which nearly all are.
func tapeOne(g *guest, scr *scratch, x *sandbox.Instance, now int64) {
	e, lane := scr.batch[0], scr.lane
	if lane == nil || len(e.Headers) > 0 || g.told && e.Flags&mark.Due != 0 {
		tapeTurns(g, scr, x, now, 1, false, nil, true)
		return
	}
	origin, due := lane.Turn(g.track, now, scr.res.Fuel, x.Written(), e)
	if origin == 0 || due {
		tapeGoesOn(g, scr, x, 1, due)
	} else if scr.ends[0] <= recorder.MostCommands {
		scr.origin = origin
	}
}

// tapeTurns records an entry. own says that it has come to what its turns have led to, parts that its commands are not all at
// hand.
func tapeTurns(g *guest, scr *scratch, x *sandbox.Instance, now int64, done int, parts bool, f *abi.Failure, own bool) {
	if !own {
		endTape(g, scr, "a turn was failed or taken back for a reason that is not its own")
		return
	}
	lane := laneOf(g.actor.sys, scr)
	due := lane.Entry(g.track, g.entry(scr, now, done, f, own))
	if !tapeGoesOn(g, scr, x, done, due) && !parts && (done == 0 || scr.ends[done-1] <= recorder.MostCommands) {
		scr.origin = lane.Origin(g.track)
	}
}

// tapeGoesOn says whether an entry was the last one that is recorded, or begins a further file.
func tapeGoesOn(g *guest, scr *scratch, x *sandbox.Instance, done int, due bool) bool {
	switch {
	case g.track == nil:
	case g.track.Over():
		g.track = nil
		g.actor.looks &^= uint8(lookTape)
	case due:
		tapeAnew(g, scr, x, done)
	default:
		return false
	}
	return true
}

// tapeAnew goes on in a further file, from the present state.
func tapeAnew(g *guest, scr *scratch, x *sandbox.Instance, done int) {
	l := taped(g, scr, g.actor.turns+uint64(done))
	l.Spawned, l.Key = g.ahead, g.keys.Child(secretFor(g.actor), g.actor.uid)
	var s sandbox.Snapshot
	if x.Save(&s) == nil {
		l.Snapshot, _ = sandbox.AppendSnapshot(nil, g.inst.Image, &s) // without one it is not recorded
	}
	scr.lane.Resume(g.track, &l, g.inst.Image)
}

// applyTaped is apply where messages get an origin, for entries of several commands.
func applyTaped(g *guest, scr *scratch, cmds []abi.Command, current *mailbox.Envelope) {
	for i := range cmds {
		g.apply(scr, cmds[i:i+1], current)
		scr.origin++
	}
}
