package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Observers of turns: those that record them, tap an actor, or sample the flow
// of messages or the fuel. One word says whether there are any; if there are none, it is all that a turn
// looks at.
const (
	lookCommit uint32 = 1 << iota // Config.commit
	lookTap
	lookFlow
	lookFuel
	lookFault // Config.faults
)

// commitment is what an entry, or the turn of an actor in Go, has taken in and is about
// to send. It is valid until the hook returns.
type commitment struct {
	actor       Ref
	incarnation uint64
	firstTurn   uint64
	now         int64
	mail        []*mailbox.Envelope // an envelope a turn
	commands    func(turn int) []abi.Command
	effects     []effect // of an actor in Go
}

// endTurns reports n turns of a guest to the observers, before anything of them takes
// effect, and returns how many of them count. A failure is that of the recorder, or a
// fault injected into the turn after those.
func (g *guest) endTurns(scr *scratch, base, n int, now int64) (int, *abi.Failure) {
	if n == 0 {
		return 0, nil
	}
	a := g.actor
	if a.sys.looks.Load()&lookFuel != 0 {
		if x := g.inst.Load(); x != nil {
			x.Profiled()
		}
	}
	c := commitment{
		actor: a.ref(), incarnation: a.incarnation(), firstTurn: a.turns + uint64(base), now: now,
		mail: scr.batch[base : base+n], commands: scr.turn,
	}
	var fault *abi.Failure
	if a.sys.looks.Load()&lookFault != 0 {
		if n, fault = a.fault(&c); n == 0 {
			return 0, fault
		}
		c.mail = c.mail[:n]
	}
	if f := a.tell(scr, &c); f != nil {
		return 0, f
	}
	return n, fault
}

// endTurn is endTurns for the turn of an actor in Go.
func (a *actor) endTurn(ctx *Context) *abi.Failure {
	if a.sys.looks.Load() == 0 {
		return nil
	}
	c := commitment{actor: a.ref(), incarnation: a.incarnation(), firstTurn: a.turns, now: a.sys.time.Now(), effects: ctx.scr.effects}
	if ctx.env != nil {
		c.mail = []*mailbox.Envelope{ctx.env}
	}
	if a.sys.looks.Load()&lookFault != 0 {
		if _, f := a.fault(&c); f != nil {
			return f
		}
	}
	return a.tell(ctx.scr, &c)
}

// tell tells the observers; the recorder comes first, and a turn that it does not record has no effect.
func (a *actor) tell(scr *scratch, c *commitment) *abi.Failure {
	if hook := a.sys.cfg.commit; hook != nil {
		if err := hook(c); err != nil {
			return &abi.Failure{Kind: abi.FailureHost, Reason: "the turn could not be recorded: " + err.Error()}
		}
	}
	looks := a.sys.looks.Load()
	if looks&lookTap != 0 {
		if taps := a.tapped.Load(); taps != nil {
			a.tap(*taps, c)
		}
	}
	if looks&lookFlow != 0 {
		a.flow(scr, c)
	}
	return nil
}
