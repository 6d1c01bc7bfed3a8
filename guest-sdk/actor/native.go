//go:build !wasip1

package actor

import "github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"

// instance is what a guest's memory holds of one actor. Native tests have several
// in one process.
type instance struct{ ctx Context }

func init() {
	makeMemory()
	received := inbox
	bridge.Loop.Types = func() (names []string) {
		for i := range registry {
			names = append(names, registry[i].name)
		}
		return names
	}
	bridge.Loop.Turn = func(state any, envelope []byte) (any, []byte) {
		x, _ := state.(*instance)
		if x == nil {
			x = &instance{}
		}
		mem.ctx = x.ctx
		inbox = received // a turn that has panicked may have left another one
		turn(uint32(copy(inbox[:InboxSize], envelope)))
		x.ctx = mem.ctx
		return x, outbox[:mem.ctx.written]
	}
	bridge.Loop.Actor = func(state any) any {
		if x, _ := state.(*instance); x != nil {
			return x.ctx.current
		}
		return nil
	}
}
