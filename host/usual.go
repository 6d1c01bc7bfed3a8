package host

import (
	"github.com/wasmactors/wasmactors/host/internal/box"
	"github.com/wasmactors/wasmactors/host/internal/mark"
)

// UsualMailbox makes the mailbox that actors have unless their props name another, for what stands between the two, see
// [Config.WithMailboxes]. It is a [HostedMailbox], and must be introduced to its actor by what the actor introduces itself with.
// It is for tests and simulations: an actor that is given none calls it directly, and faster.
func UsualMailbox(l MailboxLimits) Mailbox { return &hostedUsual{limits: l} }

// hostedUsual is the usual mailbox, with its account, as a mailbox of another kind.
type hostedUsual struct {
	box.Box
	limits MailboxLimits
	a      *actor
}

// Hosted implements HostedMailbox.
func (b *hostedUsual) Hosted(h MailboxHost) {
	b.a = h.(boxHost).a
	b.Init(nil, b.limits, &b.a.account)
}

// EndRun implements HostedMailbox.
func (b *hostedUsual) EndRun() { b.GiveBack() }

// Order implements HostedMailbox: its envelopes have no numbers.
func (b *hostedUsual) Order() (before, came uint64) { return 0, 0 }

// Trim implements HostedMailbox.
func (b *hostedUsual) Trim(int) { b.a.gate.Trim(&b.Box, mark.IsMail, boxHost{b.a}.evict) }

// Failed implements HostedMailbox.
func (b *hostedUsual) Failed(*Envelope) {}
