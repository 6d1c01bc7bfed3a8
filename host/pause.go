package host

// Pause holds back the messages of an actor until Unpause; with subtree also those of all actors below it. The
// running turn ends first. What comes meanwhile waits in the mailbox, up to its bound, and
// so do timers, answers and the ends of watched actors. System messages go on: a paused actor
// can be stopped, it fails and decides about its children, and it is restarted, with its start
// and end turns; a restart leaves it paused. A child that is spawned below a paused subtree is
// paused, too. Pausing an actor twice is the same as once. It fails with ErrUnknown.
func (s *System) Pause(ref Ref, subtree bool) error {
	return s.order(ref, sysMsg{kind: sysPause, below: subtree})
}

// Unpause lets an actor go on, with subtree also all below it, whoever has paused it.
func (s *System) Unpause(ref Ref, subtree bool) error {
	return s.order(ref, sysMsg{kind: sysUnpause, below: subtree})
}

// order is an operator's order to an actor.
func (s *System) order(ref Ref, m sysMsg) error {
	a := s.table.Get(ref.uid)
	if a == nil || !a.post(nil, m) {
		return ErrUnknown
	}
	return nil
}

// setPaused carries Pause and Unpause out.
func (a *actor) setPaused(scr *scratch, on, below bool) {
	what, kind := holdPaused, EventPaused
	if below {
		what |= holdBelow
	}
	before := a.holds.has(holdPaused)
	if on {
		a.holds.add(what)
	} else {
		a.holds.drop(holdPaused | holdBelow)
		kind = EventUnpaused
	}
	if below { // after the flag: a child that comes now has it
		order := sysMsg{kind: sysUnpause, below: true}
		if on {
			order.kind = sysPause
		}
		for _, k := range a.super.Family.Children() {
			k.post(scr, order)
		}
	}
	if before != on && !a.sys.bus.quiet() {
		a.sys.bus.publish(a.event(kind))
	}
}

// inheritPause pauses a new child of a paused subtree.
func (a *actor) inheritPause(parent *actor) {
	if parent.holds.has(holdBelow) {
		a.holds.add(holdPaused | holdBelow)
	}
}
