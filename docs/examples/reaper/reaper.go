// Package reaper ends a system in order: groups of actors one after the other, each when the one before it has
// ended, and the system when the last one has.
package reaper

import (
	"context"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Reaper is the props of an actor that begins to end the groups when it is told "end", and then calls done,
// which may close the system from a goroutine of its own. An actor that ends earlier counts as ended.
func Reaper(done func(), groups ...[]host.Ref) host.Props {
	return host.Native(func() host.Actor { return &reaper{done: done, groups: groups} })
}

// CloseWhenDone is a done that closes a system.
func CloseWhenDone(sys *host.System) func() {
	return func() { go func() { _ = sys.Close(context.Background()) }() }
}

type reaper struct {
	done   func()
	groups [][]host.Ref
	left   []host.Ref // of the group that is ending
	phase  phase
}

type phase uint8

const (
	waiting phase = iota // to be told
	ending
	ended
)

// Receive implements host.Actor.
func (r *reaper) Receive(ctx *host.Context, m host.Message) error {
	var text string
	switch _ = m.Decode(&text); {
	case m.Kind == abi.KindTerminated:
		r.left = slices.DeleteFunc(r.left, func(x host.Ref) bool { return x.UID() == m.Sender.UID() })
	case text == "end" && r.phase == waiting:
		r.phase = ending
	default:
		return host.ErrUnhandled
	}
	return r.next(ctx)
}

// next ends the next group, when this one has ended. What its actors have in their mailboxes they still handle.
func (r *reaper) next(ctx *host.Context) error {
	for r.phase == ending && len(r.left) == 0 {
		if len(r.groups) == 0 {
			r.phase = ended
			r.done()
			return nil
		}
		r.left, r.groups = slices.Clone(r.groups[0]), r.groups[1:]
		for _, ref := range r.left {
			if err := ctx.Watch(ref); err != nil {
				return err
			}
			_ = ctx.System().PoisonPill(ref) // an error says that it has ended, and the watch says so, too
		}
	}
	return nil
}
