package turn

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Speaker is whose commands are examined.
type Speaker interface {
	// Self is its ref.
	Self() abi.Ref
	// Persists reports whether it keeps events.
	Persists() bool
	// NextChild is the ref that its next child has to have; each call is about the next one.
	NextChild() abi.Ref
}

// Examine checks what the decoder cannot: a turn's commands as a whole. turn is its index in the entry that has led to res.
// costly says that there are commands that cost more than their bytes.
func Examine(cmds []abi.Command, turn int, res *sandbox.Result, by Speaker) (costly bool, f *abi.Failure) {
	stashed := false
	for i := range cmds {
		if cmds[i].ToPath != nil {
			costly = true
		}
		switch cmd := &cmds[i]; cmd.Op {
		case abi.OpSend: // nearly all are
		case abi.OpForward:
			costly = true
		case abi.OpFail:
			return costly, &abi.Failure{Kind: abi.FailureGuestError, Reason: string(cmd.Reason)}
		case abi.OpPersist:
			if !by.Persists() {
				return costly, violation("persist: the actor keeps no events, see durable: events")
			}
		case abi.OpSpawn:
			if cmd.Ref != by.NextChild() {
				return costly, violation("spawn: the child's ref is not the next one")
			}
			costly = true
		case abi.OpStash, abi.OpUnstash:
			if cmd.Op == abi.OpStash {
				if stashed {
					return costly, violation("stash: the message is stashed already")
				}
				stashed = true
			}
			if !res.LastTurn(turn) {
				return costly, violation("the batch went on after " + cmd.Op.String())
			}
		case abi.OpSaved:
			return costly, violation("saved: nothing was to be saved")
		case abi.OpStop:
			if !res.LastTurn(turn) && cmd.ToRef == by.Self() {
				return costly, violation("the batch went on after stop")
			}
		}
	}
	return costly, nil
}

func violation(reason string) *abi.Failure {
	return &abi.Failure{Kind: abi.FailureABIViolation, Reason: reason}
}
