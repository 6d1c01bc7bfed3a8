package rebuild

import (
	"slices"
	"sync"

	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// Flight is a message on its way in a system that is being rebuilt. N are its actors.
type Flight[N comparable] struct {
	To, By N // By is the zero value if no actor has sent it
	E      *mailbox.Envelope
}

// Flights are all messages on their way, in the order in which they were sent. All methods are for any goroutine.
type Flights[N comparable] struct {
	mu   sync.Mutex
	all  []Flight[N]
	over bool
}

// Begin adds one; false after End.
func (f *Flights[N]) Begin(x Flight[N]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return false
	}
	f.all = append(f.all, x)
	return true
}

// Drop drops what an actor has sent before its present record and what never arrived: it was refused.
func (f *Flights[N]) Drop(by N) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(x Flight[N]) bool { return x.By == by })
}

// Land takes the first one that is meant; nil: there is none. It is most often the very first, and the
// others stay where they are then: one turn may have sent hundreds of thousands.
func (f *Flights[N]) Land(which func(*Flight[N]) bool) *mailbox.Envelope {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.all {
		x := &f.all[i]
		if !which(x) {
			continue
		}
		e := x.E
		if i == 0 {
			*x = Flight[N]{}
			f.all = f.all[1:]
		} else {
			f.all = slices.Delete(f.all, i, i+1)
		}
		return e
	}
	return nil
}

// End is all that have not landed. None begins after it: a timer may ring at that moment.
func (f *Flights[N]) End() []Flight[N] {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.all
	f.all, f.over = nil, true
	return all
}
