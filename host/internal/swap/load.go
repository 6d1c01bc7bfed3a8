package swap

import (
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Code is code that an actor goes on with, and its state. How it has come to the state is for records.
type Code struct {
	Image *sandbox.Image
	State *sandbox.Snapshot

	Saved *abi.State // that the state was loaded from; nil: it is recorded itself, unless Same is set
	Fuel  uint64     // that loading has taken
	Time  int64      // in the header of that turn, ns since 1970
	Same  bool       // it is the same state of the same code
	Again bool       // the state comes from all its messages, which the code has handled again
}

// EntryOf is what a turn that is none of the actor's own may spend. Its random numbers are not those of the actor's turns.
func EntryOf(of sandbox.Entry) *sandbox.Entry {
	of.FirstTurn = math.MaxUint64 - of.FirstTurn
	return &of
}

// Load has a fresh instance load a state, which start has, and returns the state that it comes to, with the fuel that it has taken.
// The same state, start and entry lead to the same. The instance is the caller's.
func Load(x *sandbox.Instance, start *abi.Start, entry *sandbox.Entry) (*sandbox.Snapshot, uint64, error) {
	cmds, fuel, err := Turn(x, entry, &abi.Envelope{Kind: abi.KindStart, Time: entry.Now, Payload: abi.AppendStart(nil, start)})
	if err == nil && len(cmds) > 0 {
		err = fmt.Errorf("it has asked for %s, and may only read", cmds[0].Op)
	}
	if err != nil {
		return nil, 0, err
	}
	state := &sandbox.Snapshot{}
	if err := x.Save(state); err != nil {
		return nil, 0, err
	}
	return state, fuel, nil
}

// Turn has an instance handle one envelope, and returns its commands, which are valid until the next turn, and the fuel.
func Turn(x *sandbox.Instance, entry *sandbox.Entry, e *abi.Envelope) ([]abi.Command, uint64, error) {
	if !x.Push(e) {
		return nil, 0, fmt.Errorf("the envelope has %d bytes, the inbox %d", abi.EnvelopeSize(e), sandbox.InboxCap(x.Image()))
	}
	var res sandbox.Result
	x.Run(entry, &res)
	if res.Failure != nil {
		f := *res.Failure
		return nil, res.Fuel, &f
	}
	_, cmds, _, err := x.NextTurn(nil)
	if err != nil {
		return nil, res.Fuel, err
	}
	if n := len(cmds); n > 0 && cmds[n-1].Op == abi.OpFail {
		return nil, res.Fuel, &abi.Failure{Kind: abi.FailureGuestError, Reason: string(cmds[n-1].Reason), Turn: entry.FirstTurn}
	}
	return cmds, res.Fuel, nil
}
