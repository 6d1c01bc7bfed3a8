package mailbox

// Force is Push without the bounds, for what the host itself has to say and whose
// number is bounded elsewhere. False means that the mailbox is closed; the envelope is
// still the caller's then.
func (m *Mailbox) Force(e *Envelope) bool {
	weight := weightOf(e)
	m.load.Add(weight)
	for {
		head := m.inbox.Load()
		if head == closedMark {
			m.load.Add(-weight)
			return false
		}
		e.next = head
		if m.inbox.CompareAndSwap(head, e) {
			return true
		}
	}
}
