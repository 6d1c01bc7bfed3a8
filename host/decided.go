package host

import (
	"github.com/wasmactors/wasmactors/host/internal/supervisor"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// What strategies decide about durable actors is recorded: the strategy may be another one when it is repeated.

// was is what is repeated of a question to a strategy; nil: nothing is known of it.
func (p *repeats) was(a *actor, about record.About) *record.Decision {
	if p = p.of(a); p == nil || p.decided.d == nil || p.decided.d.About != about {
		return nil
	}
	return p.decided.d
}

// noteDecided has a decision of a durable actor recorded. One that a repetition has made itself, because the log ended before it, is
// recorded when the system goes on.
func noteDecided(a *actor, d record.Decision) {
	r := &record.Record{Kind: record.Decided, Actor: a.uid, Time: a.Now().UnixNano(), Decision: &d}
	p := a.sys.repeats.Load()
	if p.of(a) == nil {
		tellRecorder(a.sys, r)
	} else if p.decided.last && p.was(a, d.About) == nil {
		p.owed = append(p.owed, r)
	}
}

// recordsDecision reports whether decisions of an actor about a child are recorded.
func recordsDecision(a, child *actor) bool {
	return a.durable && (a.parent != nil || a.sys.durable == nil || child.durable)
}

// Was implements supervisor.Parent.
func (p parentIn) Was(*actor) (v supervisor.Verdict, ok bool) {
	r := p.sys.repeats.Load().of(p.actor)
	if r == nil {
		return v, false
	}
	if v.Asked = r.decided.asked; r.decided.d == nil || r.decided.d.About == record.Delayed {
		return v, false
	}
	d := r.decided.d
	v.Chosen, v.Directive, v.Delay, v.Group, v.Alone, v.Keep, v.Quits = d.Chosen, d.Directive, d.Delay, d.Group, d.Alone, d.Keep, d.Quits
	return v, true
}

// Note implements supervisor.Parent.
func (p parentIn) Note(child *actor, v supervisor.Verdict) {
	if !recordsDecision(p.actor, child) {
		return
	}
	d := record.Decision{
		About: record.Reported, Child: child.uid, Chosen: v.Chosen, Directive: v.Directive, Delay: v.Delay, Group: v.Group, Alone: v.Alone,
		Keep: v.Keep, Quits: v.Quits,
	}
	if v.Chosen|v.Directive == 0 {
		d.About = record.Significant
	}
	noteDecided(p.actor, d)
}

// delayRules is what a delayed restart of the actor means for its mailbox.
func delayRules(a *actor) supervision.Backoff {
	b, _ := a.backoff()
	if !a.durable {
		return b
	}
	if d := a.sys.repeats.Load().was(a, record.Delayed); d != nil {
		b.Meanwhile, b.Stash, b.Grace, b.Overtake = d.Meanwhile, d.Stash, d.Grace, d.Overtake
		return b
	}
	noteDecided(a, record.Decision{About: record.Delayed, Meanwhile: b.Meanwhile, Stash: b.Stash, Grace: b.Grace, Overtake: b.Overtake})
	return b
}

// restartAsWas has a repeated order to restart be the one that was recorded, in what depends on the supervisor's strategy.
func restartAsWas(m *sysmail.Msg, want *record.Signal) {
	m.How = m.How&^sysmail.Keep | sysmail.How(want.How)&sysmail.Keep
}

// resumable reports whether the actor must be able to go back to the state from before a failing turn: its supervisor may want that, or
// the records say that it did.
func resumable(a *actor) bool {
	if a.parent == nil {
		return false
	}
	p := a.sys.repeats.Load()
	return a.parent.props.strategy.CanResume() || p != nil && !p.over.Load() && p.resumes[a.uid]
}
