// Package stray counts messages to refs that no receiver has.
package stray

import (
	"sync"
	"sync/atomic"
)

// Guessing refs is limited. A message of a top-level subtree to a ref that no receiver has, or recently had, counts as a
// guess. When a subtree has used up its guesses, a guest's command that names a ref is refused before the ref is looked up,
// and fails the guest. Only refs that the host itself has given it still work, see barred.
//
// A ref has 54 secret bits. With 10^6 actors a guess hits with probability 10^6/2^54 = 2^-34. The bucket lets strayBurst
// guesses pass at once and strayRate a second after that, and one more for each other worker that looks at the bucket at the
// same time: the burst hits an actor with probability 2^16 * 2^-34 = 2^-18, and the rate needs 2^34/64 s, eight years, for
// one hit on average. An honest actor sends to refs that it was given; refs whose actor has recently stopped, or whose ask
// has recently ended, do not count.
const (
	Burst = 1 << 16
	Rate  = 64 // a second
)

// Guesses are those that a tree has made.
type Guesses struct {
	spent atomic.Bool // none is left, when last looked at
	mu    sync.Mutex
	N     float64 // in the bucket
	at    int64   // when it was last looked at, ns
}

// look is how things are at a time. g.mu is held.
func (g *Guesses) look(now int64) (left bool) {
	if g.at != 0 {
		g.N = max(0, g.N-float64(now-g.at)/1e9*Rate)
	}
	g.at = now
	return g.N <= Burst-1
}

// Left reports whether another guess may be made.
func (g *Guesses) Left(now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.look(now)
	g.spent.Store(!left)
	return left
}

// Leave leaves so many guesses.
func (g *Guesses) Leave(n int, now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.N, g.at = float64(Burst-n), now
	g.spent.Store(n == 0)
}

// None reports whether no guess was left when that was last looked at.
func (g *Guesses) None() bool { return g.spent.Load() }

// Count counts a guess that was made; false: there were too many.
func (g *Guesses) Count(now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.look(now)
	if left {
		g.N++
	}
	g.spent.Store(g.N > Burst-1)
	return left
}
