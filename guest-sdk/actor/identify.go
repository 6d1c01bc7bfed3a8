package actor

import (
	"errors"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Identity is an actor that was found by a path with patterns.
type Identity = abi.Identity

// ErrNoActor says that no actor was identified: no actor has the path, the capability send does not allow it, or the actor
// has stopped or takes no more messages.
var ErrNoActor = errors.New("actor: " + abi.NoSuchActor)

// naming is an Identify that waits. Its slot among the asks has no function, so that slots stay small.
type naming struct {
	correlation uint64
	then        func(*Context, Ref, error) error
}

// takeName removes an Identify and returns its function, or nil.
func (a *asks) takeName(correlation uint64) func(*Context, Ref, error) error {
	for i := range a.names {
		if a.names[i].correlation == correlation {
			then := a.names[i].then
			last := len(a.names) - 1
			a.names[i], a.names[last] = a.names[last], naming{}
			a.names = a.names[:last]
			return then
		}
	}
	return nil
}

// Identify asks for the actor at a path, see TellPath, and calls then in a later turn: with the ref, when
// the actor there has handled what it was sent before; with ErrNoActor; with ErrNoAnswer when the time is
// over; or with another error if the ask was refused. The actor sees nothing of it. Timeouts are 1 ms to
// 24 h. It counts as an ask, and is forgotten by a restart.
//
// A module that calls it says Need(abi.FeatureIdentify).
func (c *Context) Identify(path string, timeout time.Duration, then func(ctx *Context, who Ref, err error) error) {
	switch {
	case path == "":
		c.nowhere("Identify")
		return
	case hasPattern(path):
		c.refuse("actor: Identify of a path with patterns: IdentifyPath is for those")
		return
	}
	correlation := c.asks.add(nil)
	c.asks.names = append(c.asks.names, naming{correlation, then})
	wrote(abi.AppendIdentify(appendix(usualHead+len(path)), path, correlation, uint64(timeout)))
}

func hasPattern(path string) bool {
	for i := 0; i < len(path); i++ {
		if path[i] == '*' || path[i] == '?' {
			return true
		}
	}
	return false
}

// IdentifyPath asks for the actors at a path with patterns, and calls then in a later turn: with those that were
// there, and that the actor may send to, at the end of its turn. total is how many there are; found has as many as
// fit into one message, abi.MaxIdentities at most. Finding no actor is not an error. The host answers it alone, so it
// does not wait for the actors; all else is as with Identify.
func (c *Context) IdentifyPath(path string, timeout time.Duration, then func(ctx *Context, found []Identity, total int, err error) error) {
	if path == "" {
		c.nowhere("IdentifyPath")
		return
	}
	correlation := c.asks.add(func(c *Context, m *Message) error {
		who, err := identified(m)
		switch {
		case err != nil:
			return then(c, nil, 0, err)
		case who != 0: // a path without patterns
			return then(c, []Identity{{Ref: who, Path: path}}, 1, nil)
		}
		found, total, err := abi.DecodeIdentities(m.Payload())
		return then(c, found, total, err)
	})
	wrote(abi.AppendIdentify(appendix(usualHead+len(path)), path, correlation, uint64(timeout)))
}

// identified is what an answer says.
func identified(m *Message) (Ref, error) {
	switch m.Kind() {
	case KindReply:
		return m.Sender(), nil
	case KindAskTimeout:
		return 0, ErrNoAnswer
	}
	text := m.Text()
	if text == abi.NoSuchActor {
		return 0, ErrNoActor
	}
	return 0, errors.New("actor: " + text)
}
