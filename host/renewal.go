package host

import "github.com/wasmactors/wasmactors/host/record"

// renewal is what a restart changes of an actor.
type renewal struct {
	props *Props // nil: nothing
}

// Changes implements sysmail.Renewing.
func (n *renewal) Changes() bool { return n.props != nil }

// argsOf are the arguments that usable props have.
func argsOf(p *Props) []byte {
	if p.args == nil {
		return nullPayload
	}
	args, _ := Encode(p.args)
	return args
}

// limitsAfter are those of an actor that gets other props: some cannot change.
func limitsAfter(a *actor, p *Props) Limits {
	l, old := p.limits, &a.rules.Load().limits
	l.SetDefaults()
	l.Mailbox, l.MailboxBytes, l.Held, l.Tree = old.Mailbox, old.MailboxBytes, old.Held, old.Tree
	return l
}

// rulesAfter are those of an actor that gets other props: lifetime and what becomes of messages do not change.
func rulesAfter(a *actor, p *Props) record.Rules {
	x := lifeOf(&a.rules.Load().Props)
	mayOf(p, &x)
	return x
}
