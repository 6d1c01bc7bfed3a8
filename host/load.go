package host

// Load is how busy an actor is now; false if it has stopped. It takes no lock that a message
// needs, and allocates nothing. Any goroutine may call it.
func (s *System) Load(ref Ref) (Load, bool) {
	a := s.here(ref.UID())
	if a == nil {
		return Load{}, false
	}
	return Load{Waiting: a.box.Len(), Running: a.place.Running(), Open: a.life.Open()}, true
}

// Wake makes an actor look at its mailbox. It is for a [Mailbox] that holds messages back: one
// whose Peek has shown nothing, and would show something now. Any goroutine may call it; it
// does nothing for an actor that has stopped.
func (s *System) Wake(ref Ref) {
	if a := s.here(ref.UID()); a != nil {
		a.place.Wake(nil)
	}
}

// Draw is a random number of the actor's own sequence, from the system's source of randomness.
// With the same seed ([Config.WithSeed]) it is the same.
func (h Head) Draw() uint64 {
	return h.ctx.actor.dice.Rand(secretFor(h.ctx.actor), h.ctx.actor.uid).Uint64()
}

// Mailbox is the mailbox made by [Props.WithMailbox]; nil if that was not used.
func (h Head) Mailbox() Mailbox { return h.ctx.actor.box.Other }

// Unhandled says that the actor does not handle the current message: it causes an event of
// [EventUnhandled].
func (h Head) Unhandled() {
	if h.ctx.env != nil {
		h.ctx.actor.sys.seen.Unhandled(h.ctx.actor, h.ctx.env)
	}
}

// Refuse says that the actor, which stands for others, does not pass the current message on: it is a
// dead letter ([DeadRefused]) at once, and the error is the outcome of a question. An error with a method
// ManifestKey() string names the bound that was met.
func (h Head) Refuse(err error) {
	if h.ctx.env == nil {
		return
	}
	path := h.ctx.actor.path
	if name := h.Below(); name != "" {
		path += "/" + name
	}
	h.ctx.actor.sys.refuse(h.ctx.scr, DeadRefused, err, h.ctx.actor.uid, path, h.ctx.env)
}
