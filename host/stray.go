package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/internal/dispatch"
)

// Guessing refs is detected: messages that the actors of a tree below /user send to refs that
// nobody has, and that nobody had lately, are counted, and beyond a bound each further
// one fails its sender.
//
// A ref has 54 secret bits. With 10^6 actors a guess hits with probability
// 10^6/2^54 = 2^-34. The bucket lets strayBurst guesses pass at once and strayRate a
// second after that: the burst hits an actor with probability 2^16 * 2^-34 = 2^-18, and
// the rate needs 2^34/64 s, eight years, for one hit on average. An honest actor sends
// to refs that it was given; refs whose actor has stopped, or whose ask has ended,
// lately do not count.
const (
	strayBurst = 1 << 16
	strayRate  = 64 // a second
)

// tree is what the actors below one child of /user have in common.
type tree struct {
	pool   account.Pool   // of the bytes that are held for them, unless no bound is set
	turns  dispatch.Group // who has had how much of the processors
	awake  residency.Tree // its guests
	mu     sync.Mutex
	strays float64 // in the bucket
	at     int64   // when it was last looked at, ns
}

// stray counts a message to nobody; false: there were too many.
func (t *tree) stray(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at != 0 {
		t.strays = max(0, t.strays-float64(now-t.at)/1e9*strayRate)
	}
	t.at = now
	t.strays = min(t.strays+1, strayBurst+1)
	return t.strays <= strayBurst
}

// stray notes that an actor has sent something to a ref that nobody has.
func (s *System) stray(scr *scratch, to, sender abi.Ref) {
	if to == 0 {
		return
	}
	if _, ok := s.recent.find(to); ok {
		return
	}
	a := s.table.Get(sender)
	if a == nil || !a.tree.stray(s.time.Now()) {
		if a != nil {
			a.post(scr, sysMsg{kind: sysStray})
		}
	}
}

// recents are refs that were in use lately: at least the last recentRefs of them, with the
// paths of those that were actors, so that a dead letter can state its receiver. Together they
// take 10 MiB at most.
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

// find is the path of a ref in use lately, "" if it is not known; false if the ref was not in use lately.
func (r *recents) find(ref abi.Ref) (path string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if path, ok = r.now[ref]; !ok {
		path, ok = r.old[ref]
	}
	return path, ok
}
