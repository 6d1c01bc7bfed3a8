package host

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// A keeper stands for its children: it makes them when they are needed and ends them when
// they are not, so that senders to the path of a child need not know whether it is there. For
// that, messages to such paths come to the keeper, and messages that reach a child too late come
// back to it.

// WithKeeping makes the actor the keeper of its children, see [Head.Below],
// [Head.Hand] and [Head.Passivate]. It is for behaviours that were made with [Behave]
// and call these: messages that are sent to the paths of its children, by path and not by
// ref, then come to the keeper.
func (p Props) WithKeeping() Props { p.keeps = true; return p }

// quiet reports whether nothing is under way in the actor: no message, no timer, no open ask
// of its own, nothing stashed, no child. An actor that waits for its delayed restart is quiet,
// too.
func (a *actor) quiet() bool {
	switch a.life.State() {
	case life.Running:
		if !a.life.Begun.Load() || !a.life.Free() {
			return false
		}
	case life.Restarting:
		if a.restart == nil || !a.restart.delay || a.restart.hold {
			return false
		}
	default:
		return false
	}
	return a.box.Empty() && a.work.Idle() && a.super.Family.Len() == 0 && a.replies.Load() == 0
}

// Rest returns since when a keeper's child has been idle: the end of its last turn. ok is
// false if it has something to do (a message, an open ask, a handle of [Context.Later] or a
// timer of its own, a stashed message, a child), or has stopped. A pending receive timeout does not
// count, but its turn does. Any goroutine may call it; it takes no lock.
func (s *System) Rest(ref Ref) (since time.Time, ok bool) {
	a := s.here(ref.UID())
	if a == nil {
		return time.Time{}, false
	}
	if a.kept == nil {
		return time.Time{}, false
	}
	at := a.kept.Rest.Load()
	if at == 0 || a.replies.Load() != 0 || a.box.Len() != 0 || a.place.Running() {
		return time.Time{}, false
	}
	return time.Unix(0, at), true
}

// Answered implements outside.Owner: it is called when a handle of Context.Later was used, or its asker does not wait for the answer any
// more. After the last handle a kept actor may be idle, and has no turn in which this would be noted.
func (a *actor) Answered() {
	if a.replies.Add(-1) == 0 && a.kept != nil {
		a.place.Wake(nil)
	}
}

// Passivate asks a child of a keeper to end, after everything that waits for it. If it has something
// to do by then, see [System.Rest], it goes on, and a Message of KindReply says so, or one of
// KindAskTimeout if the child has not got to it in time; the correlation is the child's UID. Watchers
// are told of its end. A child that waits for a delayed restart ends without being asked. It
// fails with ErrUnknown if it is no longer a child, and with ErrLimit if too many asks are open, or one
// for this child.
func (h Head) Passivate(child Ref, timeout time.Duration) error {
	a := h.ctx.actor
	t := a.sys.here(child.UID())
	if t == nil || t.parent != a || t.kept == nil {
		return ErrUnknown
	}
	if t.due.Load() != 0 {
		t.post(h.ctx.scr, sysmail.Msg{Kind: sysmail.Stop, Kin: sysmail.Kin{Reason: "idle"}})
		return nil
	}
	if _, err := h.ctx.enterAsk(uint64(t.uid), t.uid, timeout); err != nil {
		return err
	}
	e := h.ctx.scr.newEnvelope()
	e.Flags, e.Sender, e.Correlation = mark.Poison|mark.IfIdle, a.uid, uint64(t.uid)
	t.insist(h.ctx.scr, e)
	return nil
}

// handed delivers what a keeper hands to a child; false if to is not that child.
func (a *actor) handed(scr *scratch, to abi.Ref, e *mailbox.Envelope) bool {
	if a.keeping == nil || to != a.keeping.to {
		return false
	}
	below := e.Attached
	e.Attached = message.NotBelow(below)
	if t := a.sys.here(to); t != nil {
		reason, err := t.accept(scr, e, 0)
		if err == nil {
			return true
		}
		if reason != DeadStopped {
			a.sys.refuse(scr, reason, err, t.uid, t.path, e)
			e.Free()
			return true
		}
	}
	e.Attached = below
	a.work.Keep(a, a.keeping.toName, e)
	return true
}

// StashFor is Stash under a name, for UnstashFor. Unstash brings back
// the messages without a name first, and then those of each name.
func (h Head) StashFor(name string) error {
	return h.ctx.stashUnder(name)
}

// UnstashFor puts what was stashed under a name back to the front of the mailbox, in order, and
// returns how many messages that were.
func (h Head) UnstashFor(name string) int {
	n := h.ctx.actor.work.Stash.LenFor(name)
	if h.ctx.scr != nil {
		for i := range h.ctx.scr.changes {
			if x := &h.ctx.scr.changes[i]; x.kind == stashEmptiedFor && x.name == name {
				return 0
			}
		}
	}
	h.ctx.stage(change{kind: stashEmptiedFor, name: name})
	return n
}

// Below is the name of the keeper's child that the current message was sent to by its path;
// empty if it was sent to the keeper itself.
func (h Head) Below() string {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return ""
	}
	return h.ctx.env.Attached.Below
}

// findDoor is the actor that gets messages to a path: the actor there, or the keeper whose child has
// the name, whether that child is there or not.
func (s *System) findDoor(elements []string) (a *actor, name string) {
	if n := len(elements) - 1; n > 0 {
		if p := s.nodes.Find(elements[:n]); p == nil {
			return nil, ""
		} else if p.props.keeps {
			return p, elements[n]
		}
	}
	return s.nodes.Find(elements), ""
}

// door is findDoor for an actor that is there.
func (a *actor) door() (to *actor, name string) {
	if a.kept != nil {
		return a.parent, a.Name()
	}
	return a, ""
}

// Kept is the name under which the current message was stashed before ([Head.StashFor]), also by the host because the
// child with the name has ended; empty if it was not.
func (h Head) Kept() string {
	if h.ctx.env == nil || h.ctx.env.Attached == nil {
		return ""
	}
	return h.ctx.env.Attached.Kept
}

// Hold sets how many bytes of messages the actor keeps in structures of its own, as a
// router keeps questions that it may have to send again. They are on its account beside its
// stash, and count for limits.held, limits.tree and system.memory. An increase may be
// refused with an error that wraps ErrLimit; then nothing has changed. A new incarnation
// begins with 0. It is for code in Go, within a turn.
func (h Head) Hold(bytes int64) error {
	return h.ctx.actor.work.HoldAside(h.ctx.actor, max(bytes, 0))
}

// TreeHeld is what the host holds for the actor and all below it, in bytes, if it has limits as a
// tree ([Limits.Tree]); otherwise for the tree of the nearest actor above it that has such limits.
func (h Head) TreeHeld() int64 { return h.ctx.actor.pool.Held() }
