package host

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/wasmactors/wasmactors/host/internal/likeness"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// rules are what an actor runs by: its props, with the limits that they leave open and without args, and what follows
// from them. They never change. A renewal gives the actor others, of which only the first incarnation of a restored guest
// has a state.
type rules struct {
	Props
	attached *mailbox.Attached // to what it sends; nil: nothing
}

// withRules makes a child that has nothing yet but its rules. They are those of the child before, if that has the same
// props: most parents have children of one kind, and the rules are a quarter of a child. Rules that no other child is
// likely to have are allocated together with the child. The parent's family is locked; nil: a guardian is made.
func withRules(parent *actor, p *Props) (*actor, *rules) {
	const hintBytes = 64 // of props: they tell most others apart, since functions stand first
	r := rules{Props: *p}
	r.args = nil
	r.limits.SetDefaults()
	r.bindMessage()
	r.compiled = p.capabilities()
	if parent == nil || r.rare.Get().State != nil {
		return r.alone()
	}
	if parent.alike == nil {
		parent.alike = new(likeness.Last[rules])
	}
	last, again := parent.alike.Find(bytesOf(&r.Props)[:hintBytes], func(last *rules) bool { return identical(&r.Props, &last.Props) })
	if last != nil {
		return &actor{}, last
	}
	if !again {
		return r.alone()
	}
	made := r.own()
	parent.alike.Keep(made)
	return &actor{}, made
}

// alone is an actor with a copy of the rules that lies beside it.
func (r *rules) alone() (*actor, *rules) {
	both := new(struct {
		actor
		rules
	})
	both.rules.Props = r.Props
	both.rules.follow()
	return &both.actor, &both.rules
}

// own is a copy on the heap, with what follows from the props.
func (r *rules) own() *rules {
	made := &rules{Props: r.Props}
	made.follow()
	return made
}

func (r *rules) follow() {
	if len(r.grants) > 0 {
		r.attached = &mailbox.Attached{Grants: r.grants}
	}
}

// identical reports whether props are the same, word by word: functions cannot be compared otherwise. Props that were
// made apart are different even if they say the same.
func identical(p, q *Props) bool { return bytes.Equal(bytesOf(p), bytesOf(q)) }

// bytesOf are props as they lie in memory.
func bytesOf(p *Props) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// changeRules gives an actor other rules: a copy that change has changed. Within Run, or while the actor does not run.
func changeRules(a *actor, change func(p *Props)) {
	r := rules{Props: a.rules.Load().Props}
	change(&r.Props)
	a.rules.Store(r.own())
}

// ruledBy are the rules of an actor as they are recorded; short: what it may do is left out where its parent may do the same.
func ruledBy(a *actor, short bool) record.Rules {
	r := a.rules.Load()
	x := lifeOf(&r.Props)
	if of := a.parent; short && of.parent != nil {
		above := of.rules.Load()
		if x.Inherits = above.compiled == r.compiled && unsafe.SliceData(above.grants) == unsafe.SliceData(r.grants) && len(above.grants) == len(r.grants); x.Inherits {
			return x
		}
	}
	mayOf(&r.Props, &x)
	return x
}

// lifeOf are the rules of an actor with props, without what it may do.
func lifeOf(p *Props) record.Rules {
	return record.Rules{Lifetime: p.life, Significant: p.significant, Letter: spawning.IsLetter(p.crashed), Redelivered: spawning.TimesOf(p.crashed)}
}

// mayOf notes what an actor with props may do.
func mayOf(p *Props, x *record.Rules) {
	x.Send, x.Spawn, x.Stop = p.caps.Send, p.caps.Spawn, p.caps.Stop
	for _, g := range p.grants {
		x.Services = append(x.Services, g.Service)
	}
}

// ruleActor has an actor that does not run go by recorded rules. Its grants stay: which services it had is p.then's.
func ruleActor(a *actor, r *record.Rules) {
	now := a.rules.Load()
	want := now.Props
	want.life, want.significant, want.crashed = r.Lifetime, r.Significant, crashedOf(r)
	mayNow(a, &want, r)
	setRules(a, now, &want)
}

// ruleNow has an actor that does not run go by its present props, grants apart, which no record changes.
func ruleNow(a *actor, p *Props) {
	now := a.rules.Load()
	want := now.Props
	want.life, want.significant, want.crashed, want.caps, want.compiled = p.life, p.significant, p.crashed, p.caps, p.capabilities()
	setRules(a, now, &want)
}

// setRules changes the rules only where that makes a difference.
func setRules(a *actor, now *rules, want *Props) {
	if want.life != now.life || want.significant != now.significant || want.crashed != now.crashed || want.compiled != now.compiled {
		changeRules(a, func(p *Props) { *p = *want })
	}
}

// mayNow has props allow what records say, which inherit nothing.
func mayNow(a *actor, p *Props, r *record.Rules) {
	allows := func(c *Capabilities) bool {
		return slices.Equal(c.Send, r.Send) && slices.Equal(c.Spawn, r.Spawn) && slices.Equal(c.Stop, r.Stop)
	}
	if r.Inherits || allows(&p.caps) {
		return
	}
	if above := a.parent.rules.Load(); allows(&above.caps) {
		p.caps, p.compiled = above.caps, above.compiled
		return
	}
	*p = p.WithCapabilities(Capabilities{Send: r.Send, Spawn: r.Spawn, Stop: r.Stop})
}

// crashedOf is what records say of the message of a turn that fails.
func crashedOf(r *record.Rules) CrashedMessage {
	switch {
	case r.Redelivered > 0:
		return spawning.Redeliver(r.Redelivered)
	case r.Letter:
		return spawning.Letter()
	}
	return CrashedMessage{}
}
