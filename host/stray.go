package host

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/internal/dispatch"
	"github.com/wasmactors/wasmactors/internal/mailbox"
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
	strayBurst = 1 << 16
	strayRate  = 64 // a second
)

// tree is what the actors below one child of /user have in common.
type tree struct {
	pool    account.Pool   // of the bytes that are held for them, unless no bound is set
	turns   dispatch.Group // who has had how much of the processors
	awake   residency.Tree // its guests
	stops   atomic.Int32   // actors that wait for their children to end
	guesses *guesses       // shared by all trees whose names the host has made up: else each question of AskOnce had a burst of its own
}

// guesses are those that a tree has made.
type guesses struct {
	spent atomic.Bool // none is left, when last looked at
	mu    sync.Mutex
	n     float64 // in the bucket
	at    int64   // when it was last looked at, ns
}

// look is how things are at a time. g.mu is held.
func (g *guesses) look(now int64) (left bool) {
	if g.at != 0 {
		g.n = max(0, g.n-float64(now-g.at)/1e9*strayRate)
	}
	g.at = now
	return g.n <= strayBurst-1
}

// left reports whether another guess may be made.
func (g *guesses) left(now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.look(now)
	g.spent.Store(!left)
	return left
}

// count counts a guess that was made; false: there were too many.
func (g *guesses) count(now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.look(now)
	if left {
		g.n++
	}
	g.spent.Store(g.n > strayBurst-1)
	return left
}

// deliver is [System.deliver] of what the actor itself has addressed: it may be a guess.
func (a *actor) deliver(scr *scratch, to abi.Ref, e *mailbox.Envelope) error {
	err := a.sys.deliver(scr, to, e)
	if err == ErrUnknown {
		a.strayed(scr, to)
	}
	return err
}

// strayed notes that the actor has named a ref without a receiver.
func (a *actor) strayed(scr *scratch, to abi.Ref) {
	if to == 0 || a.sys.repeats.Load() != nil {
		return // a receiver from before is no guess
	}
	if _, ok := a.sys.recent.find(to); ok {
		return
	}
	if !a.tree.guesses.count(a.sys.time.Now()) {
		a.post(scr, sysMsg{kind: sysStray})
	}
}

// barred reports whether the actor may not name a ref now, and fails it if so: no guess is left, and the ref is none
// of those that the host has given it. from is the sender of its current message.
func (a *actor) barred(scr *scratch, to, from abi.Ref) bool {
	if !a.tree.guesses.spent.Load() || to == from || a.vouched(to) ||
		slices.ContainsFunc(a.services(), func(s abi.Service) bool { return s.Ref == to }) {
		return false
	}
	return a.outOfGuesses(scr)
}

// outOfGuesses fails the actor if no guess is left. Any goroutine may call it.
func (a *actor) outOfGuesses(scr *scratch) bool {
	if a.tree.guesses.left(a.sys.time.Now()) {
		return false
	}
	a.post(scr, sysMsg{kind: sysStray})
	return true
}

// vouched reports whether a ref is one of those that each actor has: its own, its parent's, its children's.
// Any goroutine may ask.
func (a *actor) vouched(to abi.Ref) bool {
	if to == 0 || to == a.uid || to == a.parentUID() {
		return true
	}
	k := a.sys.here(to)
	return k != nil && k.parent == a
}

// recents are recently used refs: at least the last recentRefs of them, with the paths of those
// that were actors, so that a dead letter can state its receiver. Together they take 10 MiB at
// most.
type recents struct {
	mu       sync.Mutex
	now, old map[abi.Ref]string
}

const (
	recentRefs = 1 << 15
	recentPath = 96 // bytes; longer ones are not kept
)

func (r *recents) add(ref abi.Ref, path string) {
	if len(path) > recentPath {
		path = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.now) >= recentRefs {
		r.old, r.now = r.now, nil
	}
	if r.now == nil {
		r.now = map[abi.Ref]string{}
	}
	r.now[ref] = path
}

// find is the path of a recently used ref, "" if it is not known; false if the ref was not used recently.
func (r *recents) find(ref abi.Ref) (path string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if path, ok = r.now[ref]; !ok {
		path, ok = r.old[ref]
	}
	return path, ok
}
