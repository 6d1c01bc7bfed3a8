package keyed

import (
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Keeper is the behaviour of a keeper, for a behaviour around it that decides which keys it has: see [Config.Around]. The
// methods are called within the turns of that behaviour.
type Keeper struct{ h head }

// Start is for Behaviour.Start. moving says of which keys no actor is started while it returns true: what waits for them stays
// in the stash, under the key's name.
func (k *Keeper) Start(ctx *host.Context, cause *abi.Failure, moving func(name string) bool) *abi.Failure {
	k.h.moving = moving
	return k.h.Start(ctx, cause)
}

// Tell has the behaviour around it told what becomes of keys' actors: ended when one has ended, with failed if it was stopped for a failure,
// and before what waits for the key is handled; stays when one that was asked to end is busy, and goes on.
func (k *Keeper) Tell(ended func(ctx *host.Context, name string, failed bool), stays func(name string)) {
	k.h.over, k.h.busy = ended, stays
}

// End is for Behaviour.End.
func (k *Keeper) End(ctx *host.Context, end host.End) { k.h.End(ctx, end) }

// Take handles a message that is no mail for a key: all that is not of KindMessage.
func (k *Keeper) Take(ctx *host.Context, m host.Message) {
	k.h.msg = m
	k.h.take(ctx)
}

// Manages reports whether the message is an order for the keeper itself, and carries it out then.
func (k *Keeper) Manages(ctx *host.Context, m host.Message) bool {
	op, ok := abi.FindHeader(m.Headers, Header)
	if !ok || len(m.Headers) == 0 || ctx.Head().Below() != "" {
		return false
	}
	k.h.msg = m
	k.h.manage(ctx, string(op))
	return true
}

// Name is the name of the key that a message is for; below is the child that it was sent to.
func (k *Keeper) Name(m host.Message, below string) (string, error) {
	k.h.msg = m
	return k.h.nameOf(below)
}

// Pass hands the current message to the actor of a key, which it starts if needed. After an error it is refused, with that.
func (k *Keeper) Pass(ctx *host.Context, m host.Message, name string) error {
	k.h.msg = m
	err := k.h.pass(ctx, name)
	k.h.outcome(ctx, err)
	return err
}

// Knows reports whether the keeper knows of a key: it has an actor, waits for a place, or has failed a while ago.
func (k *Keeper) Knows(name string) bool { return k.h.entries[name] != nil }

// Admits is why Pass would not start the actor of a key for the current message, as far as bounds are concerned; nil: it would.
func (k *Keeper) Admits(ctx *host.Context, m host.Message) error {
	k.h.msg = m
	return k.h.admits(ctx, k.h.maker(ctx))
}

// Refuse says that the current message is not passed on, and why.
func (k *Keeper) Refuse(ctx *host.Context, m host.Message, why error) {
	k.h.msg = m
	k.h.outcome(ctx, why)
}

// Begin starts the actor of a key, without a message for it, if it is not there, and has not failed a moment ago.
func (k *Keeper) Begin(ctx *host.Context, name string) error {
	h := &k.h
	now, e := ctx.Now(), h.entries[name]
	if e != nil && (e.state != failed || now.Before(timeOf(e.until))) {
		return nil
	}
	switch {
	case h.taken() >= h.max:
		return ErrFull
	case !h.room(ctx):
		return errBytes
	case e == nil:
		e = &entry{name: name, pos: -1}
	}
	ref, err := ctx.Spawn(name, h.worker)
	if err == nil {
		err = ctx.Watch(ref)
	}
	if err != nil {
		return err
	}
	h.past.drop(name)
	h.begun(e, ref, now, now.Add(h.idle))
	h.arm(ctx)
	return nil
}

// Has reports whether the key has an actor now, also one that is about to end.
func (k *Keeper) Has(name string) bool {
	e := k.h.entries[name]
	return e != nil && e.used.Listed()
}

// Size is the size of a message as bounds count it.
func Size(m host.Message) int64 { return int64(len(m.Payload) + len(m.Headers)) }

// Leave has the actors of the keys end for which in returns true: each when it has nothing to do, or with now at once. Keys
// that only wait for a place, or for the end of a penalty, are forgotten, and what waits for them stays in the stash. It
// returns the names of those that have an actor still, and of those that were forgotten. Those that were busy go on, so it is
// to be called again, or LeaveOf. It looks at all keys.
func (k *Keeper) Leave(ctx *host.Context, in func(name string) bool, now bool) (left, wait []string) {
	var names []string
	for name := range k.h.entries {
		if in(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return k.LeaveOf(ctx, names, now)
}

// LeaveOf is Leave of the keys with some names, in their order. It looks at those alone.
func (k *Keeper) LeaveOf(ctx *host.Context, names []string, now bool) (left, wait []string) {
	h := &k.h
	for _, name := range names {
		e := h.entries[name]
		if e == nil {
			continue
		}
		switch e.state {
		case awake, leaving:
			left = append(left, name)
			if now {
				ctx.Stop(e.ref)
			} else if e.state == awake {
				h.passivate(ctx, e)
			}
		case waiting:
			wait = append(wait, name)
			h.released(e)
			h.queue = slices.DeleteFunc(h.queue, func(x *entry) bool { return x == e })
			h.unclaim(e)
			delete(h.entries, name)
		case granted, failed:
			wait = append(wait, name)
			h.released(e)
			h.forget(e)
		}
	}
	for len(h.queue) > 0 && h.alive+h.grants < h.max { // places of those that were forgotten
		h.promote(ctx)
	}
	return left, wait
}

// Names are the names of the keys that have an actor, sorted.
func (k *Keeper) Names() (names []string) {
	for name, e := range k.h.entries {
		if e.used.Listed() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Again has what waits in the stash under a key's name handled, before everything that has come since.
func (k *Keeper) Again(ctx *host.Context, name string) int { return ctx.Head().UnstashFor(name) }
