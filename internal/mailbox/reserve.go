package mailbox

// Reserve is the first half of [Mailbox.Push], for producers that take turns: there is room for e from then on, and it counts.
// [Mailbox.Enter] must follow before the next one's turn; until then nothing takes e out, and it is the caller's. The errors are those of
// Push.
func (m *Mailbox) Reserve(e *Envelope) error {
	weight, load := weightOf(e), m.load.Load()
	switch {
	case m.Closed():
		return ErrClosed
	case load>>bytesBits >= m.maxMessages.Load(), load&bytesMask+weight&bytesMask > m.maxBytes.Load():
		return ErrFull
	}
	m.load.Add(weight) // the consumer may have changed it, but only made more room
	if load != 0 && cap(e.Payload)+cap(e.Headers) > spareWaiting {
		e.Fit()
	}
	return nil
}

// Unreserve is the second half of a Push that does not come about after all.
func (m *Mailbox) Unreserve(e *Envelope) { m.load.Add(-weightOf(e)) }

// Enter is the second half of Push, of an envelope whose size has not changed since Reserve. It fails, with ErrClosed, only if the
// mailbox has been closed since.
func (m *Mailbox) Enter(e *Envelope) error {
	if !m.link(e, weightOf(e)) {
		return ErrClosed
	}
	return nil
}
