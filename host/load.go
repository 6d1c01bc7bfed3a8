package host

// Load is how busy an actor is, for code that spreads work over several.
type Load struct {
	// Waiting is the number of messages in its mailbox.
	Waiting int
	// Running is set while the actor does a spell of work: one turn or several.
	Running bool
	// Open is set unless the actor handles no messages: it has failed, is paused, waits for
	// a delay or an instance, or is stopping.
	Open bool
}

// Load is how busy an actor is now; false if it has stopped. It takes no lock that a message
// needs, and allocates nothing. Any goroutine may call it.
func (s *System) Load(ref Ref) (Load, bool) {
	a := s.table.Get(ref.uid)
	if a == nil {
		return Load{}, false
	}
	return Load{Waiting: a.box.Len(), Running: a.running(), Open: a.open()}, true
}

// Wake makes an actor look at its mailbox. It is for a [Mailbox] that holds messages back: one
// whose Peek has shown nothing, and would show something now. Any goroutine may call it; it
// does nothing for an actor that has stopped.
func (s *System) Wake(ref Ref) {
	if a := s.table.Get(ref.uid); a != nil {
		a.wake(nil)
	}
}

// Draw is a random number of the actor's own sequence, from the system's source of randomness.
// With the same seed ([Config.WithSeed]) it is the same.
func (c *Context) Draw() uint64 { return c.actor.random().Uint64() }

// Mailbox is the mailbox made by [Props.WithMailbox]; nil if that was not used.
func (c *Context) Mailbox() Mailbox { return c.actor.box.other }

// Unhandled says that the actor does not handle the current message: it causes an event of
// [EventUnhandled].
func (c *Context) Unhandled() {
	if c.env != nil {
		c.actor.unhandled(c.env)
	}
}
