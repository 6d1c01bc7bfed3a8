package life

import (
	"sync/atomic"
	"time"
)

// LastTurns is how long last turns may begin below an actor that waits for its children to end, and how many have not.
type LastTurns struct {
	By      time.Time
	Unheard atomic.Int32
}

// Late reports whether there is no time for a last turn. l may be nil: nothing waits.
func (l *LastTurns) Late(now time.Time) bool { return l != nil && now.After(l.By) }

// Miss notes an actor that has had none.
func (l *LastTurns) Miss() {
	if l != nil {
		l.Unheard.Add(1)
	}
}
