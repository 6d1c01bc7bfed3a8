// Package router is for actors that send through a router, and for those that manage one: the
// manifest says which may (routing.manage). It is needed only for what is sent by key or to all, and for orders;
// everything else is sent to a router, or asked of it, as of any actor.
package router

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// At is the router at a path, such as "/user/workers", or "./workers" for a child.
type At string

// Keyed is the header of a message with a key for consistent hashing, of at most
// abi.MaxHeaderValue bytes.
func Keyed(key string) actor.Header { return actor.Header{Key: abi.HeaderRouterKey, Value: key} }

func order(what string) actor.Header { return actor.Header{Key: abi.HeaderRouter, Value: what} }

// TellKeyed sends a message to the routee that a key belongs to.
func (r At) TellKeyed(ctx *actor.Context, key string, v actor.Encoder) {
	ctx.TellPathWith(string(r), v, Keyed(key))
}

// AskKeyed asks the routee that a key belongs to, as Context.AskPath.
func (r At) AskKeyed(ctx *actor.Context, key string, v actor.Encoder, timeout time.Duration, then func(*actor.Context, *actor.Message) error) {
	ctx.AskPathWith(string(r), v, timeout, then, Keyed(key))
}

// ToAll sends a message to every routee, with any logic.
func (r At) ToAll(ctx *actor.Context, v actor.Encoder) {
	ctx.TellPathWith(string(r), v, order("broadcast"))
}

// Routees asks for the paths of the routees, in the router's order.
func (r At) Routees(ctx *actor.Context, timeout time.Duration, then func(*actor.Context, []string, error) error) {
	ctx.AskPathWith(string(r), nil, timeout, func(ctx *actor.Context, m *actor.Message) error {
		if err := refusal(m); err != nil {
			return then(ctx, nil, err)
		}
		in := m.Reader()
		var paths []string
		for range in.Array() {
			paths = append(paths, in.Text())
		}
		if err := in.Done(); err != nil {
			return then(ctx, nil, err)
		}
		return then(ctx, paths, nil)
	}, order("routees"))
}

// Add makes the actor at a path a routee, also one that is not there yet; routing.admit says which.
func (r At) Add(ctx *actor.Context, path string, timeout time.Duration, then func(*actor.Context, error) error) {
	r.order(ctx, "add", actor.Text(path), timeout, then)
}

// Remove removes a routee. One that the pool has made stops when it has handled what waits for it.
func (r At) Remove(ctx *actor.Context, path string, timeout time.Duration, then func(*actor.Context, error) error) {
	r.order(ctx, "remove", actor.Text(path), timeout, then)
}

// Adjust adds by routees to a pool, or removes some if by is negative.
func (r At) Adjust(ctx *actor.Context, by int64, timeout time.Duration, then func(*actor.Context, error) error) {
	r.order(ctx, "adjust", actor.Int(by), timeout, then)
}

// StopRoutees has every routee of a pool stop when it has handled what waits for it.
func (r At) StopRoutees(ctx *actor.Context, timeout time.Duration, then func(*actor.Context, error) error) {
	r.order(ctx, "stop", nil, timeout, then)
}

// KillRoutees makes every routee of a pool fail when it comes to this message.
func (r At) KillRoutees(ctx *actor.Context, timeout time.Duration, then func(*actor.Context, error) error) {
	r.order(ctx, "kill", nil, timeout, then)
}

// order asks the router itself to do something. then, which may be nil, gets actor.ErrNoAnswer after the
// timeout, or why the router refuses.
func (r At) order(ctx *actor.Context, what string, v actor.Encoder, timeout time.Duration, then func(*actor.Context, error) error) {
	ctx.AskPathWith(string(r), v, timeout, func(ctx *actor.Context, m *actor.Message) error {
		if then == nil {
			return nil
		}
		return then(ctx, refusal(m))
	}, order(what))
}

// Refusal is why a router has not done what it was asked to do, in its own words.
type Refusal string

func (r Refusal) Error() string { return string(r) }

func refusal(m *actor.Message) error {
	switch m.Kind() {
	case abi.KindAskTimeout:
		return actor.ErrNoAnswer
	case abi.KindReplyError:
		return Refusal(m.Text())
	}
	return nil
}
