package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Whoever wants to hear of turns: who records them, who taps an actor, who samples the flow
// of messages or the fuel. One word says whether there is anybody; it is all that a turn
// looks at while there is not.
const (
	lookCommit uint32 = 1 << iota // Config.commit
	lookTap
	lookFlow
	lookFuel
	lookFault // Config.faults
)

// commitment is what an entry, or the turn of an actor in Go, has taken in and is about
// to let out. It is valid until the hook returns.
type commitment struct {
	actor       Ref
	incarnation uint64
	firstTurn   uint64
	now         int64
	mail        []*mailbox.Envelope // an envelope a turn
	commands    func(turn int) []abi.Command
	effects     []effect // of an actor in Go
}

// endTurns tells whoever wants to hear of them of n turns of a guest, before any of it takes
// effect, and returns how many of them count. A failure is that of who records them, or a
// fault of the turn behind those.
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
	c := commitment{actor: a.ref(), incarnation: a.incarnation(), firstTurn: a.turns, now: a.sys.time.now(), effects: ctx.scr.effects}
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

// tell tells them; who records comes first, and what is not recorded has not been.
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
