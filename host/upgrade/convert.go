package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/swap"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// longest bounds the turns of an upgrade where the actor's own limits do not: all of them run outside of the dispatcher.
const longest = 5 * time.Second

// convert has a copy of the actor saved by its code, and loaded by the image. It then hands the last inputs to the loaded copy,
// whose state from before them is the result. Nothing of it touches the actor.
func convert(_ context.Context, t *swap.Taken, image *sandbox.Image, try int) (to *swap.Code, tried int, err error) {
	if alike(t.Image, image) {
		state, err := carry(t, image)
		return &swap.Code{Image: image, State: state, Same: true}, 0, err
	}
	swap.Passes(t.Ref, swap.Saving)
	saved, err := save(t)
	if err != nil {
		return nil, 0, fmt.Errorf("save: %w", err)
	}
	x, err := sandbox.Get(image)
	if err != nil {
		return nil, 0, fmt.Errorf("load: %w", err)
	}
	defer x.Put()
	start := t.Start
	start.State = saved
	swap.Passes(t.Ref, swap.Loading)
	entry := entryOf(t)
	to = &swap.Code{Image: image, Saved: saved, Time: entry.Now}
	if to.State, to.Fuel, err = swap.Load(x, &start, entry); err != nil {
		return nil, 0, fmt.Errorf("load: %w", err)
	}
	inputs := t.Inputs[max(0, len(t.Inputs)-try):]
	for i := range inputs {
		in := &inputs[i]
		swap.Passes(t.Ref, swap.Trying)
		entry.Now, entry.FirstTurn = in.Envelope.Time, in.Turn
		var f *abi.Failure
		_, _, err := swap.Turn(x, entry, &in.Envelope)
		if errors.As(err, &f) && f.Kind == abi.FailureGuestError {
			continue // the old code has handled it in another state
		}
		if err != nil {
			return nil, tried, fmt.Errorf("trial: a message like that of turn %d: %w", in.Turn, err)
		}
		tried++
	}
	return to, tried, nil
}

// carry takes a state to the same code under other limits.
func carry(t *swap.Taken, image *sandbox.Image) (*sandbox.Snapshot, error) {
	if t.Why != nil {
		return nil, t.Why
	}
	b, err := sandbox.AppendSnapshot(nil, t.Image, t.State)
	if err != nil {
		return nil, err
	}
	return sandbox.DecodeSnapshot(image, b, t.Entry.MemoryLimit)
}

// entryOf is what a turn of the upgrade may spend. Its random numbers are not those of the actor's turns. In a simulation it has no deadline.
func entryOf(t *swap.Taken) *sandbox.Entry {
	entry := swap.EntryOf(t.Entry)
	if !t.Timeless && (entry.Deadline == 0 || entry.Deadline > longest) {
		entry.Deadline = longest
	}
	return entry
}

// save has a copy of the actor answer the envelope save.
func save(t *swap.Taken) (*abi.State, error) {
	if t.Why != nil {
		return nil, t.Why
	}
	x, err := sandbox.GetSaved(t.Image, t.State.Clone())
	if err != nil {
		return nil, err
	}
	defer x.Put()
	entry := entryOf(t)
	cmds, _, err := swap.Turn(x, entry, &abi.Envelope{Kind: abi.KindSave, Time: entry.Now, Payload: []byte{0xf6}})
	switch {
	case err != nil:
		return nil, err
	case len(cmds) != 1 || cmds[0].Op != abi.OpSaved:
		for i := range cmds {
			if cmds[i].Op != abi.OpSaved {
				return nil, fmt.Errorf("it has asked for %s, and may only answer with saved", cmds[i].Op)
			}
		}
		return nil, fmt.Errorf("it has answered with saved %d times", len(cmds))
	}
	c := &cmds[0]
	if err := abi.Valid(c.Payload); err != nil {
		return nil, fmt.Errorf("the state is not one item of CBOR: %w", err)
	}
	if r := abi.NewReader(c.Options); r.Peek() != abi.TypeMap {
		return nil, errors.New("what the SDK has saved is no map")
	} else if err := abi.Valid(c.Options); err != nil {
		return nil, fmt.Errorf("what the SDK has saved is not one item of CBOR: %w", err)
	}
	return &abi.State{Version: c.Key, Payload: append([]byte{}, c.Payload...), Own: append([]byte{}, c.Options...)}, nil
}
