package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Selection is the actors that a path names: that of one actor, or with patterns those of several. It may be relative:
// ./child, ../sibling, ../*. A Selection is used as its [Context] is.
type Selection struct {
	ctx  *Context
	path string
}

// At selects actors by their path. They are looked for when a method of the selection is called.
func (c *Context) At(path string) Selection { return Selection{c, path} }

// Tell is [System.TellPath] from the actor, at once. Paths may be relative:
// ./child, ../sibling, ../*, which includes the actor itself.
func (s Selection) Tell(v any) error {
	p, ok := s.ctx.actor.parsePath(s.path)
	return s.ctx.actor.sys.tellPath(s.ctx.scr, s.ctx.actor, p, ok, s.path, v)
}

// Identify asks the actor at a path, which may be relative, who it is. The answer is that
// of an ask: a Message of KindReply whose Sender is the actor, KindReplyError if there is
// none, KindAskTimeout.
func (s Selection) Identify(correlation uint64, timeout time.Duration) error {
	a := s.ctx.actor
	p, ok := a.parsePath(s.path)
	var at []*actor
	if ok && !glob.HasMeta(s.path) {
		at, _ = a.sys.selected(p, s.path)
	}
	target := abi.Ref(0)
	if len(at) > 0 {
		target = at[0].uid
	}
	uid, below, remote := a.sys.far.Elsewhere(s.path)
	if remote {
		target = uid
	}
	if _, err := s.ctx.enterAsk(correlation, target, timeout); err != nil {
		return err
	}
	e := message.Identify(a.uid, correlation, below)
	if remote {
		return a.sys.deliver(s.ctx.scr, target, e)
	}
	if len(at) == 0 {
		a.sys.unidentified(s.ctx.scr, 0, e)
		e.Free()
		return nil
	}
	_ = a.sys.deliverTo(s.ctx.scr, at[0], e) // if refused, it is answered, too
	return nil
}

// Watch watches all actors that a path with patterns names, see [System.TellPath]: those of now, or also those
// of the future, except the actor itself. The end of each is told once. It returns how many are newly watched. It
// fails with ErrUnknown if the path is not valid, or if no actor has it and the scope is Present; with ErrLimit if
// there are more than may be watched, of which some are watched then.
func (s Selection) Watch(scope Scope) (n int, err error) {
	p, ok := s.ctx.actor.parsePath(s.path)
	if !ok || p.UID != 0 && scope != Present {
		return 0, notAPath(s.path)
	}
	return watching{s.ctx.actor, s.ctx.scr}.addPath(p, s.path, scope)
}

// Unwatch ends the watches of all actors that a path with patterns matches, however they were
// made, and the watch of future actors that was made with the same path.
func (s Selection) Unwatch() {
	if p, ok := s.ctx.actor.parsePath(s.path); ok {
		watching{s.ctx.actor, s.ctx.scr}.dropPath(p, s.path)
	}
}

// IdentifyAll asks every actor that a path with patterns names who it is; all are asked, or none.
// Each answer is that of an ask of its own, see [Selection.Identify], with the correlations first,
// first+1 and so on in the order of their start. It returns how many it has asked. It fails with
// ErrLimit if these are too many asks, or if one of the correlations is in use.
func (s Selection) IdentifyAll(first uint64, timeout time.Duration) (n int, err error) {
	a := s.ctx.actor
	p, ok := a.parsePath(s.path)
	if !ok {
		return 0, notAPath(s.path)
	}
	at, _ := a.sys.selected(p, s.path)
	if len(at) > a.rules.Load().limits.Asks-a.work.Asks.Len() || first == 0 {
		return 0, ErrLimit
	}
	for i := range at {
		if a.work.Asks.Get(first+uint64(i)) != nil {
			return 0, ErrLimit
		}
	}
	for i, t := range at {
		if _, err := s.ctx.enterAsk(first+uint64(i), t.uid, timeout); err != nil {
			for j := range i {
				a.sys.abandoned(s.ctx.scr, a.work.DropAsk(a, first+uint64(j))...)
			}
			return 0, err
		}
	}
	for i, t := range at {
		_ = a.sys.deliverTo(s.ctx.scr, t, message.Identify(a.uid, first+uint64(i), ""))
	}
	return len(at), nil
}
