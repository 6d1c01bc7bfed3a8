package mailbox

// Force is Push without the bounds, for what the host itself has to say and whose
// number is bounded elsewhere. False means that the mailbox is closed; the envelope is
// still the caller's then.
func (m *Mailbox) Force(e *Envelope) bool {
	weight := weightOf(e)
	m.load.Add(weight)
	return m.link(e, weight)
}
