package life

import (
	"sync/atomic"
	"time"
)

// Kept is the state of a keeper's child: since when it has been idle.
type Kept struct {
	Rest   atomic.Int64 // end of its last turn, ns since 1970, while it is idle; 0: it is not. For any goroutine
	turned int64        // end of its last turn
	Begun  uint64       // turns before its present incarnation
}

// SpellOver is called at the end of a spell at a time. worked says that the actor has handled a message, quiet that it is idle
// now. The time counts also at its start, and when its last child has ended.
func (k *Kept) SpellOver(worked, quiet bool, now time.Time) {
	if worked || quiet && k.Rest.Load() == 0 {
		k.turned = now.UnixNano()
	}
	if quiet {
		k.Rest.Store(k.turned)
	} else {
		k.Rest.Store(0)
	}
}

// ComesBack reports whether messages that wait for a child that ends go back to its keeper: if it was told to end, or has
// stopped itself after handling something. What a failure leaves behind does not go back, or else an actor that fails at
// every start would be started endlessly.
func (k *Kept) ComesBack(ended Ending, failed bool, turns uint64) bool {
	return ended == Ordered || !failed && turns > k.Begun
}
