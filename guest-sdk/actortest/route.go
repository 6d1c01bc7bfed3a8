//go:build !wasip1

package actortest

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// How messages find their way in a World, and what becomes of those that fail or end.

// step is a message under way, or the first turn of an actor.
type step struct {
	to       *Actor
	fake     *Fake  // instead of to
	probe    *Probe // instead of to
	start    bool
	envelope abi.Envelope
	ask      bool
	sent     Sent
}

// step delivers what is next.
func (w *World) step(s step) {
	w.t.Helper()
	if s.fake != nil {
		w.serve(s.fake, s.sent)
		return
	}
	if s.probe != nil {
		if w.probeAt(Target{To: s.probe.ref}) == nil {
			w.lost(s)
			return
		}
		s.probe.take(s.sent)
		return
	}
	a := s.to
	if s.sent.Kind == Identify {
		if w.actors[a.Ref()] == a {
			w.named(s.sent, a.Ref(), Reply, []byte{0xf6})
		} else {
			w.named(s.sent, a.Ref(), ReplyError, encode(actor.Text(abi.NoSuchActor)))
		}
		return
	}
	if w.actors[a.Ref()] != a {
		w.lost(s)
		return
	}
	a.now = w.now
	if s.start {
		a.first = a.begin()
		w.judge(a, a.first, s)
		return
	}
	switch k := s.envelope.Kind; {
	case (k == abi.KindReply || k == abi.KindReplyError) && s.envelope.Correlation != 0 && a.asks[s.envelope.Correlation] == nil:
		w.dead = append(w.dead, s.sent) // nobody waits for it
		return
	}
	w.judge(a, a.deliver(s.envelope), s)
}

// lost is a message whose receiver has ended.
func (w *World) lost(s step) {
	if s.start || s.envelope.Kind == abi.KindTerminated || s.sent.Kind == Terminated {
		return
	}
	w.dead = append(w.dead, s.sent)
	if s.ask {
		w.answer(s.sent, ReplyError, encode(actor.Text("the actor has stopped")))
	}
}

// judge decides about a turn that has failed.
func (w *World) judge(a *Actor, turn *Turn, s step) {
	w.t.Helper()
	if turn.Failure == nil {
		return
	}
	if w.turns++; w.turns > maxTurns {
		w.t.Fatalf("actortest: %s fails again and again: %v", a.Path(), turn.Failure)
	}
	w.failures = append(w.failures, Failed{a.Path(), turn.Failure})
	if s.ask {
		w.answer(s.sent, ReplyError, encode(actor.Text(turn.Failure.Error())))
	}
	d := actor.Restart
	if s.start {
		d = actor.StopChild
	}
	if w.decide != nil {
		if said := w.decide(a, turn.Failure); said != actor.DefaultDirective {
			d = said
		}
	}
	switch d {
	case actor.Resume:
		a.failure = nil
	case actor.Restart:
		w.stopBelow(a)
		if again := a.Restart(); again.Failure != nil {
			w.judge(a, again, step{to: a, start: true})
		}
	default:
		w.stopBelow(a)
		a.ended = true
		w.hasEnded(a, "failed: "+turn.Failure.Error())
	}
}

// took carries out what a turn has asked of others, in order.
func (w *World) took(a *Actor, turn *Turn, cmds []abi.Command, last bool) {
	w.t.Helper()
	sent, spawned := turn.Sent, turn.Spawned
	for _, c := range cmds {
		switch c.Op {
		case abi.OpSend, abi.OpAsk, abi.OpForward:
			s := sent[0]
			s.Target = a.absolute(s.Target)
			if sent = sent[1:]; s.Kind == Identify {
				if !last {
					w.identify(s)
				}
				continue
			}
			w.send(s)
		case abi.OpSpawn:
			if !last {
				w.child(a, spawned[0])
			}
			spawned = spawned[1:]
		case abi.OpStop:
			if t := w.target(a.absolute(Target{c.ToRef, string(c.ToPath)})); t != nil && t != a && !last {
				t.Stop()
			}
		case abi.OpWatch:
			w.watch(a, a.absolute(Target{c.ToRef, string(c.ToPath)}))
		case abi.OpUnwatch:
			w.unwatch(a.Ref(), c.ToRef)
		}
	}
}

// absolute is a target whose path does not depend on the actor that has named it.
func (a *Actor) absolute(to Target) Target {
	if rest, ok := strings.CutPrefix(to.Path, "./"); ok {
		to.Path = a.Path() + "/" + rest
	}
	for at := a.Path(); strings.HasPrefix(to.Path, "../"); {
		at = at[:strings.LastIndexByte(at, '/')]
		if to.Path = to.Path[3:]; !strings.HasPrefix(to.Path, "../") || at == "" {
			to.Path = at + "/" + to.Path
		}
	}
	return to
}

// child starts the child that a turn has spawned, or says why it cannot be started.
func (w *World) child(a *Actor, s Spawned) {
	w.t.Helper()
	c := a.config
	c.name, c.key, c.parent, c.ref, c.args = a.config.name+"/"+s.Name, "", a.Ref(), s.Ref, actor.Raw(s.Args)
	if s.Name == "" {
		w.names++
		c.name = a.config.name + "/$" + decimal(w.names)
	}
	if w.Find("/user/"+c.name) != nil {
		w.ended[s.Ref] = "unknown"
		w.queue = append(w.queue, step{to: a, envelope: abi.Envelope{Kind: abi.KindSpawnFailed, Sender: s.Ref, Payload: encode(actor.Text("the name " + s.Name + " is taken"))}})
		return
	}
	w.add(s.Type, c)
}

// target returns an actor of the world, or nil.
func (w *World) target(to Target) *Actor {
	switch {
	case to.To != 0:
		return w.actors[to.To]
	case strings.HasPrefix(to.Path, "/"):
		return w.Find(to.Path)
	}
	return nil
}

// send puts a message on its way.
func (w *World) send(s Sent) {
	to := w.target(s.Target)
	_, gone := w.ended[s.To]
	switch {
	case to == nil && w.fakes[s.To] != nil:
		f := w.fakes[s.To]
		w.enqueue("/system/"+f.path, step{fake: f, sent: s})
		return
	case to == nil && w.probeAt(s.Target) != nil:
		p := w.probeAt(s.Target)
		w.enqueue(p.Path(), step{probe: p, sent: s, ask: s.Kind == Ask})
		return
	case to == nil && s.To != 0 && s.To != Tester && gone:
		w.lost(step{envelope: abi.Envelope{}, ask: s.Kind == Ask, sent: s})
		return
	case to == nil:
		w.out = append(w.out, s)
		return
	}
	e := abi.Envelope{Sender: s.From, Correlation: s.Correlation, Headers: s.headers, Payload: s.Payload}
	switch s.Kind {
	case Reply:
		e.Kind = abi.KindReply
	case ReplyError:
		e.Kind = abi.KindReplyError
	}
	w.enqueue(to.Path(), step{to: to, envelope: e, ask: s.Kind == Ask || s.Kind == Forward && s.Correlation != 0, sent: s})
}

// watch notes a watch; if the actor has stopped already, the watcher is notified at once.
func (w *World) watch(a *Actor, of Target) { w.watchFor(a.Ref(), of) }

func (w *World) watchFor(who actor.Ref, of Target) {
	watched := actor.Ref(0)
	if t := w.target(of); t != nil {
		watched = t.Ref()
	} else if f := w.fakes[of.To]; f != nil {
		watched = f.ref
	} else if p := w.probeAt(of); p != nil {
		watched = p.ref
	}
	if watched != 0 {
		w.unwatch(who, watched)
		w.watchers[watched] = append(w.watchers[watched], who)
		return
	}
	reason, ok := w.ended[of.To]
	if !ok {
		reason = "unknown"
	}
	w.notice(who, of.To, reason)
}

func (w *World) unwatch(who, watched actor.Ref) {
	list := w.watchers[watched]
	for i, r := range list {
		if r == who {
			w.watchers[watched] = append(list[:i:i], list[i+1:]...)
			return
		}
	}
}

// stopBelow stops the children of an actor, the youngest first, without notifying their parent.
func (w *World) stopBelow(a *Actor) {
	w.t.Helper()
	for i := len(w.order) - 1; i >= 0; i-- {
		if i < len(w.order) && w.order[i].config.parent == a.Ref() {
			k := w.order[i]
			w.unwatch(a.Ref(), k.Ref())
			if k.failure != nil {
				w.stopBelow(k)
				k.ended = true
				w.hasEnded(k, "the parent stops")
				continue
			}
			k.now = w.now
			k.Stop()
		}
	}
}

// hasEnded takes an actor out, and tells its watchers.
func (w *World) hasEnded(a *Actor, reason string) {
	delete(w.actors, a.Ref())
	for i, x := range w.order {
		if x == a {
			w.order = append(w.order[:i:i], w.order[i+1:]...)
			break
		}
	}
	w.gone(a.Ref(), reason)
}

// gone notes an end, and tells the watchers.
func (w *World) gone(who actor.Ref, reason string) {
	w.ended[who] = reason
	for _, ref := range w.watchers[who] {
		w.notice(ref, who, reason)
	}
	delete(w.watchers, who)
}
