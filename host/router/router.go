// Package router spreads messages over actors. A router is an actor whose behaviour is Go
// code: no guest's turn stands between a sender and a routee, and the message itself is passed on
// with its original sender, so answers do not pass through the router.
//
// [Pool] makes the routees, as the router's children; [Group] uses existing actors, by
// their paths. A [Logic] picks the routees that get a message. [Router] is a logic with its routees as a
// value, without an actor.
package router

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// MaxRoutees bounds the routees of a router.
const MaxRoutees = 10_000

// The errors of messages that a router cannot route. Such messages become dead letters, and questions end with the error at
// once.
var (
	// ErrNoRoutee says that there is no routee to send to. It wraps host.ErrUnknown.
	ErrNoRoutee error = &refusal{"router: there is no routee", host.ErrUnknown}
	// ErrNoKey says that consistent hashing found no key in a message.
	ErrNoKey = errors.New("router: the message has no key")
	// ErrBusy says that a router that asks its routees itself has too many questions in progress. It
	// wraps host.ErrMailboxFull.
	ErrBusy error = &refusal{"router: too many questions are in progress", host.ErrMailboxFull}
)

// refusal is why a message is not passed on.
type refusal struct {
	text string
	is   error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.is }

// Routee is an actor that a router sends to.
type Routee struct {
	// Ref is the actor. It is zero if a keeper (host/keyed) stands for it: then the actor need not exist,
	// and a message to it starts it.
	Ref  host.Ref
	Name string // in a pool its name, in a group its path: the same for every incarnation

	sys    *host.System
	kept   *kept  // nil: no keeper stands for it
	number uint64 // never used for another routee of the router
}

// own reports whether the pool has made it; all others are named by a path.
func (r *Routee) own() bool { return !strings.HasPrefix(r.Name, "/") }

// Load is how busy the routee is; false if it has stopped. A routee that its keeper has to start is
// idle.
func (r *Routee) Load() (host.Load, bool) {
	if r.kept != nil {
		return r.kept.load(r.sys)
	}
	return r.sys.Load(r.Ref)
}

// Router is a logic and its routees as a value: it needs no actor of its own, creates and
// watches no actors, and is immutable. All methods may be called concurrently.
type Router struct {
	sys     *host.System
	shared  *shared
	routees []Routee
}

// shared is the state that a router shares with those that were made from it.
type shared struct {
	mu     sync.Mutex
	logic  Logic
	last   []Routee // the routees that the logic was last told of
	picked []int
	msg    host.Message
}

// New is a router of a system with a logic, which must not be used by anything else.
func New(sys *host.System, logic Logic, routees ...host.Ref) Router {
	r := Router{sys: sys, shared: &shared{logic: logic}}
	for _, ref := range routees {
		r.routees = append(r.routees, Routee{Ref: ref, Name: ref.Path(), sys: sys})
	}
	return r
}

// With is the router with one more routee. Both share the state of the logic.
func (r Router) With(ref host.Ref) Router {
	r.routees = append(slices.Clone(r.routees), Routee{Ref: ref, Name: ref.Path(), sys: r.sys})
	return r
}

// Without is the router without a routee.
func (r Router) Without(ref host.Ref) Router {
	r.routees = slices.DeleteFunc(slices.Clone(r.routees), func(x Routee) bool { return x.Ref.Equal(ref) })
	return r
}

// Routees are the routees of the router.
func (r Router) Routees() []Routee { return slices.Clone(r.routees) }

// Tell sends a message without a sender to the routees that the logic picks, or to all if it is [ToAll]. It
// fails with ErrNoRoutee if there are none, and otherwise like [host.System.Tell].
func (r Router) Tell(v any) error {
	m, all, err := messageOf(&v)
	if err != nil {
		return err
	}
	return r.each(m, all, func(to host.Ref) error { return r.sys.Tell(to, v) })
}

// Forward sends the message that an actor handles to the routees that the logic picks, with its
// original sender.
func (r Router) Forward(ctx *host.Context, m host.Message) error {
	op, _ := abi.FindHeader(m.Headers, Header)
	if all := string(op) == opToAll; all {
		return r.each(m, true, func(to host.Ref) error { return ctx.Head().ForwardWithout(to, Header) })
	}
	return r.each(m, false, ctx.Forward)
}

func (r Router) each(m host.Message, all bool, send func(host.Ref) error) error {
	var errs []error
	if all {
		for i := range r.routees {
			errs = append(errs, send(r.routees[i].Ref))
		}
		if len(errs) == 0 {
			return ErrNoRoutee
		}
		return errors.Join(errs...)
	}
	refs, err := r.pick(m)
	if err != nil {
		return err
	}
	for _, to := range refs {
		errs = append(errs, send(to))
	}
	return errors.Join(errs...)
}

// pick asks the logic, one goroutine at a time.
func (r Router) pick(m host.Message) ([]host.Ref, error) {
	if len(r.routees) == 0 {
		return nil, ErrNoRoutee
	}
	s := r.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) != len(r.routees) || &s.last[0] != &r.routees[0] {
		s.last = r.routees
		changed(s.logic, r.routees)
	}
	s.msg = m
	picked, err := s.logic.Pick(s.picked[:0], &s.msg, r.routees)
	s.picked, s.msg = picked, host.Message{}
	if err == nil && len(picked) == 0 {
		err = ErrNoRoutee
	}
	refs := make([]host.Ref, 0, len(picked))
	for _, i := range picked {
		refs = append(refs, r.routees[i].Ref)
	}
	return refs, err
}

// messageOf is a value as a logic sees it; a message for all routees loses its wrapper.
func messageOf(v *any) (m host.Message, all bool, err error) {
	inner := *v
	if h, ok := inner.(host.Headed); ok {
		if all = h.Headers[Header] == opToAll; all {
			*v = h.Value
		}
		for key, value := range h.Headers {
			if key == HeaderKey {
				m.Headers = abi.AppendHeader(nil, key, value)
			}
		}
		inner = h.Value
	}
	m.Payload, err = host.Encode(inner)
	return m, all, err
}
