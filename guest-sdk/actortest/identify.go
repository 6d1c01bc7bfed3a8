//go:build !wasip1

package actortest

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Identified answers an Identify, one of its turn's Sent, with the ref who; 0: no such actor.
func (a *Actor) Identified(question Sent, who actor.Ref) *Turn {
	a.t.Helper()
	if question.Kind != Identify {
		a.t.Fatal("actortest: the message is not an Identify")
	}
	if who == 0 {
		return a.AnswerError(question, abi.NoSuchActor)
	}
	question.To = who
	return a.Answer(question, actor.Null)
}

// IdentifiedAll answers an Identify with patterns: with those found, of total.
func (a *Actor) IdentifiedAll(question Sent, total int, found ...actor.Identity) *Turn {
	a.t.Helper()
	if question.Kind != Identify {
		a.t.Fatal("actortest: the message is not an Identify")
	}
	question.To = 0
	return a.Answer(question, actor.Raw(abi.AppendIdentities(nil, total, found)))
}

// identify answers with the actors at a path, as a host does: an actor in its turn, all matches of a pattern at once.
// Patterns do not find actors of services.
func (w *World) identify(s Sent) {
	path, ref, _ := strings.Cut(s.Path, "#")
	if hasPattern(path) {
		var found []actor.Identity
		for _, a := range w.order {
			if matches(path, a.Path()) && (ref == "" || ref == decimal(uint64(a.Ref()))) {
				found = append(found, actor.Identity{Ref: a.Ref(), Path: a.Path()})
			}
		}
		listed := found[:min(len(found), abi.MaxIdentities)]
		w.named(s, 0, Reply, abi.AppendIdentities(nil, len(found), listed))
		return
	}
	if to := w.Find(path); to != nil && (ref == "" || ref == decimal(uint64(to.Ref()))) {
		w.queue = append(w.queue, step{to: to, sent: s})
		return
	}
	if p := w.probeAt(Target{Path: path}); p != nil && ref == "" {
		w.named(s, p.ref, Reply, []byte{0xf6})
		return
	}
	w.named(s, 0, ReplyError, encode(actor.Text(abi.NoSuchActor)))
}

// named sends the answer on behalf of an actor.
func (w *World) named(s Sent, who actor.Ref, kind SentKind, payload []byte) {
	w.send(Sent{Target: Target{To: s.From}, Kind: kind, From: who, Correlation: s.Correlation, Payload: payload})
}

func hasPattern(path string) bool { return strings.ContainsAny(path, "*?") }

// matches compares a path with one that has patterns, element by element.
func matches(pattern, path string) bool {
	ps, es := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(ps) != len(es) {
		return false
	}
	for i := range ps {
		if !matchesName(ps[i], es[i]) {
			return false
		}
	}
	return true
}

func matchesName(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return matchesName(pattern[1:], name) || name != "" && matchesName(pattern, name[1:])
	}
	return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && matchesName(pattern[1:], name[1:])
}
