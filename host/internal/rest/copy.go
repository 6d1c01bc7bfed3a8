package rest

import (
	"context"
	"errors"
	"strings"

	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Actor is an actor as a checkpoint sees it.
type Actor interface {
	// Visit calls f in the place of a run; false if ctx ends before it can.
	Visit(ctx context.Context, f func()) bool
	// Save copies the state, within Visit.
	Save(s *saved.State) error
	// Most is how many bytes the state may have; 0: any number.
	Most() int64
	// Unsaved is called of one whose state cannot be saved, and TooLarge of one with too many bytes.
	Unsaved(why string)
	TooLarge(bytes int)
}

// Copy calls each with the states of actors that rest, encoded. It fails if ctx ends, or if one cannot be saved.
func Copy[A Actor](ctx context.Context, all []A, each func([]byte) error) error {
	type excess struct {
		a     A
		bytes int
	}
	var tooLarge []excess
	for _, a := range all {
		var state saved.State
		var err error
		if !a.Visit(ctx, func() { err = a.Save(&state) }) {
			return context.Cause(ctx)
		}
		if errors.Is(err, sandbox.ErrNotSaved) {
			a.Unsaved("its state cannot be kept: " + strings.TrimPrefix(err.Error(), "runtime: "))
		}
		var b []byte
		if err == nil {
			b, err = saved.Encoder.Marshal(&state)
		}
		if err != nil {
			return err
		}
		if most := a.Most(); most > 0 && int64(len(b)-state.Whole.Trial.Bytes()) > most {
			tooLarge = append(tooLarge, excess{a, len(b)})
		}
		if err := each(b); err != nil {
			return err
		}
	}
	for _, x := range tooLarge { // after the checkpoint: they do not keep others from theirs
		x.a.TooLarge(x.bytes)
	}
	return nil
}
