package host

import (
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
)

// setPaused carries Pause and Unpause out.
func (a *actor) setPaused(scr *scratch, on, below bool) {
	what := life.Paused
	if below {
		what |= life.Below
	}
	before := a.life.Held(life.Paused)
	if on {
		a.life.Hold(what)
	} else {
		a.life.LetGo(life.Paused | life.Below)
	}
	if below { // after the flag: a child that comes now has it
		order := sysmail.Msg{Kind: sysmail.Unpause, Kin: sysmail.Kin{How: sysmail.Below}}
		if on {
			order.Kind = sysmail.Pause
		}
		for _, k := range a.kids() {
			k.post(scr, order)
		}
	}
	if before != on {
		a.sys.seen.Paused(a, on)
	}
}
