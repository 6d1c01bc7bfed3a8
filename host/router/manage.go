package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Headers that a router reads. A message with [Header] is for the router itself and for no
// routee: its value says what to do. Only Go code that has the system, the router's
// parent, and the actors that [Config.WithManagers] names may send it; the sender is the one that the host
// states, never what the message says. Every answer except that to "broadcast" is the router's.
//
//	broadcast  the message goes to all routees, with any logic, without this header
//	routees    answered with the paths of the routees, a list of texts
//	add        the payload is the path of an additional routee
//	remove     the payload is the path of a routee; a pool's own stops when it has handled what waits
//	adjust     the payload is by how many routees a pool grows, or (below 0) shrinks
//	stop       every routee that is there gets a poison pill: it stops when it has handled what waits for it
//	kill       every routee that is there fails when it comes to this message
//
// Actors cannot have a group's routees stopped or killed, nor add routees that
// [Config.WithAdmitted] does not allow.
const (
	Header    = abi.HeaderRouter
	HeaderKey = abi.HeaderRouterKey // the key of consistent hashing
)

const (
	opToAll   = "broadcast"
	opRoutees = "routees"
	opAdd     = "add"
	opRemove  = "remove"
	opAdjust  = "adjust"
	opStop    = "stop"
	opKill    = "kill"
)

// ToAll is a message for all routees of a router, with any logic.
func ToAll(v any) host.Headed { return headed(v, Header, opToAll) }

// Keyed is a message with a key for consistent hashing, of at most abi.MaxHeaderValue bytes.
func Keyed(key string, v any) host.Headed { return headed(v, HeaderKey, key) }

func headed(v any, key, value string) host.Headed {
	h, ok := v.(host.Headed)
	if !ok {
		return host.Headed{Value: v, Headers: map[string]string{key: value}}
	}
	headers := map[string]string{key: value}
	for k, x := range h.Headers {
		if k != key {
			headers[k] = x
		}
	}
	return host.Headed{Value: h.Value, Headers: headers}
}

// Routees are the paths of a router's routees, in its order. What the same caller has asked of the router
// before is done by then.
func Routees(ctx context.Context, sys *host.System, router host.Ref) ([]string, error) {
	return host.AskAs[[]string](ctx, sys, router, headed(nil, Header, opRoutees))
}

// Add makes the actor at a path a routee, even if it does not exist yet.
func Add(ctx context.Context, sys *host.System, router host.Ref, path string) error {
	return order(ctx, sys, router, opAdd, path)
}

// Remove removes a routee. One that the pool has made stops when it has handled what waits for it.
func Remove(ctx context.Context, sys *host.System, router host.Ref, path string) error {
	return order(ctx, sys, router, opRemove, path)
}

// Adjust adds by routees to a pool, or removes some if by is negative.
func Adjust(ctx context.Context, sys *host.System, router host.Ref, by int) error {
	return order(ctx, sys, router, opAdjust, by)
}

// StopRoutees sends every routee a poison pill. A pool without a resizer stops with the last.
// [host.System.PoisonPill] to a router is for the router: its children stop after their current
// turns.
func StopRoutees(ctx context.Context, sys *host.System, router host.Ref) error {
	return order(ctx, sys, router, opStop, nil)
}

// KillRoutees makes every routee fail. [host.Operator.Kill] of a router makes the router fail.
func KillRoutees(ctx context.Context, sys *host.System, router host.Ref) error {
	return order(ctx, sys, router, opKill, nil)
}

func order(ctx context.Context, sys *host.System, router host.Ref, op string, v any) error {
	_, err := sys.Ask(ctx, router, headed(v, Header, op))
	return err
}

// rank is what a sender may ask of a router.
type rank uint8

const (
	anyActor rank = iota
	manager       // an actor that may manage
	goCode        // Go code with the system
)

// rankOf uses the sender that the host has written into the message.
func (h *head) rankOf(ctx *host.Context, m host.Message) rank {
	path := m.Sender.Path()
	switch {
	case m.Sender.IsZero(), path == "/temp":
		return goCode // no actor has sent it
	case m.Sender.UID() == ctx.Parent().UID():
		return manager
	case glob.MatchAnyPath(h.managed, strings.Split(path[1:], "/")):
		return manager
	}
	return anyActor
}

var (
	errDenied     = errors.New("router: the sender may not manage the router")
	errGoCodeOnly = errors.New("router: actors may not do this")
)

// manage handles a message for the router itself.
func (h *head) manage(ctx *host.Context, m host.Message, op string) {
	rank := h.rankOf(ctx, m)
	if rank == anyActor {
		h.complain(ctx, errDenied)
		return
	}
	answer, err := any(nil), error(nil)
	switch op {
	case opToAll:
		if err = h.toAll(ctx); err == nil {
			return
		}
	case opRenew:
		h.renew(ctx)
	case opRoutees:
		h.present(ctx)
		paths := []string{}
		for _, r := range h.routees {
			paths = append(paths, r.path())
		}
		answer = paths
	case opAdd:
		err = h.add(ctx, m, rank)
	case opRemove:
		err = h.remove(ctx, m)
	case opAdjust:
		err = h.adjust(ctx, m)
	case opStop, opKill:
		err = h.endAll(ctx, op == opKill, rank)
	default:
		err = fmt.Errorf("router: there is no order %q", clip(op))
	}
	switch {
	case err != nil:
		h.complain(ctx, err)
	case m.Correlation != 0:
		_ = ctx.Reply(answer)
	}
}

func (h *head) toAll(ctx *host.Context) error {
	h.refresh(ctx)
	h.present(ctx)
	if len(h.routees) == 0 {
		return ErrNoRoutee
	}
	for i := range h.routees {
		if err := ctx.Head().ForwardTo(h.routees[i].address(), Header); err != nil {
			return err
		}
	}
	return nil
}

func pathIn(m host.Message) (path string, err error) {
	if err := m.Decode(&path); err != nil || !strings.HasPrefix(path, "/") || glob.HasMeta(path) {
		return "", errors.New("router: the payload is not the path of one actor")
	}
	return path, nil
}

func (h *head) add(ctx *host.Context, m host.Message, rank rank) error {
	path, err := pathIn(m)
	switch {
	case err != nil:
		return err
	case rank < goCode && !glob.MatchAnyPath(h.admits, strings.Split(path[1:], "/")):
		return errGoCodeOnly
	case h.queue != nil:
		return errors.New("router: no routees can be added to a balancing pool")
	case len(h.routees)+len(h.missing) >= MaxRoutees:
		return fmt.Errorf("router: there are %d routees, which is the limit", MaxRoutees)
	case path == ctx.Self().Path():
		return errors.New("router: a router cannot be its own routee")
	case slices.Contains(h.missing, path), h.find(path) >= 0:
		return fmt.Errorf("router: %s is a routee already", path)
	}
	h.paths = append(slices.Clip(h.paths), path)
	h.missing = append(h.missing, path)
	h.refresh(ctx)
	return nil
}

// find is the index of the routee at a path, -1 for none.
func (h *head) find(path string) int {
	return slices.IndexFunc(h.routees, func(r Routee) bool { return r.Name == path || r.path() == path })
}

func (h *head) remove(ctx *host.Context, m host.Message) error {
	path, err := pathIn(m)
	if err != nil {
		return err
	}
	h.paths = slices.DeleteFunc(slices.Clone(h.paths), func(p string) bool { return p == path })
	if i := slices.Index(h.missing, path); i >= 0 {
		h.missing = slices.Delete(h.missing, i, i+1)
		return nil
	}
	i := h.find(path)
	if i < 0 {
		return fmt.Errorf("router: %s is not a routee", path)
	}
	r := h.routees[i]
	if r.own() {
		h.size-- // or one over several nodes begins another
		h.leave(ctx, r.Ref)
		return nil
	}
	h.routees = slices.Delete(h.routees, i, i+1)
	h.changed()
	return nil
}

func (h *head) adjust(ctx *host.Context, m host.Message) error {
	var by int
	if err := m.Decode(&by); err != nil {
		return errors.New("router: the payload is not a number of routees")
	}
	switch {
	case !h.pool:
		return errors.New("router: a group has no size")
	case by > MaxRoutees || by < -MaxRoutees || len(h.routees)+by > MaxRoutees:
		return fmt.Errorf("router: at most %d routees", MaxRoutees)
	}
	return h.resize(ctx, by)
}

// endAll ends the routees, or makes them fail.
func (h *head) endAll(ctx *host.Context, kill bool, rank rank) error {
	if rank < goCode && !h.pool {
		return errGoCodeOnly
	}
	for _, r := range slices.Clone(h.routees) {
		ref, there := r.there()
		switch {
		case rank < goCode && !r.own(), !there:
		case kill:
			_ = ctx.System().Operate().Kill(ref)
		default:
			_ = ctx.System().PoisonPill(ref)
		}
	}
	return nil
}

// clip shortens a text of an actor for an error.
func clip(s string) string { return s[:min(len(s), 40)] }
