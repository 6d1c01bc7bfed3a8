package host

// The end of a tree. From the moment that an actor stops, what is below it makes no new turns and no new children: a
// message there becomes a dead letter a moment later anyway, and actors that start others faster than they can be
// stopped would never end. Last turns are the exception. They begin within half of the stop grace; what has not had
// one by then ends without, so that the number of actors does not decide how long an end takes.

// doomed is the topmost ancestor that stops, or has stopped; nil if there is none. Any goroutine may ask.
func (a *actor) doomed() *actor {
	if a.tree.stops.Load() == 0 && !a.sys.ending.Load() {
		return nil
	}
	return a.ending()
}

// ending is doomed where something in the tree stops; doomed itself is inlined.
func (a *actor) ending() (top *actor) {
	for p := a.parent; p != nil; p = p.parent {
		if p.life.State().Ending() {
			top = p
		}
	}
	return top
}
