package host

import (
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/life"
	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Tapped is a message of an actor that is tapped: one whose turn has ended, or failed, or one that such a turn sends.
// Messages that a failed turn would have sent are not reported. Its fields: Actor, Incarnation, Turn, Time, Out, Kind,
// Forward, Peer, Path, Correlation, Payload (a part), Size (of all of it), Failure.
type Tapped = look.Tapped

// taps are the taps of a system.
type taps struct {
	mu sync.Mutex
	n  int
}

// directoryOf is how observers find actors.
type directoryOf struct{ sys *System }

func (d directoryOf) RefOf(uid abi.Ref) Ref  { return d.sys.refOf(uid) }
func (d directoryOf) Lives(uid abi.Ref) bool { return d.sys.here(uid) != nil }

// Tap calls f for the messages of an actor until stop is called or the actor has stopped, with at most payload bytes of
// each payload. f is called by the worker that runs the actor, in the order of its turns: it must be quick, and a Tapped
// is valid until it returns. ended, which may be nil, is called once when the actor has stopped, unless stop was called
// before; it may call stop. Tap fails with ErrUnknown. While any actor is tapped every turn of the system costs some
// nanoseconds more.
func (s *System) Tap(ref Ref, payload int, f func(*Tapped), ended func()) (stop func(), err error) {
	a := s.here(ref.UID())
	if a == nil {
		return nil, ErrUnknown
	}
	t := look.NewTap(payload, f, ended)
	s.taps.mu.Lock()
	defer s.taps.mu.Unlock()
	a.tapped.Add(t)
	if s.taps.n++; s.taps.n == 1 {
		s.looks.Or(lookTap)
	}
	if a.life.State() == life.Stopped { // it may not have seen the tap
		go t.Ended()
	}
	return sync.OnceFunc(func() {
		s.taps.mu.Lock()
		defer s.taps.mu.Unlock()
		a.tapped.Remove(t)
		if s.taps.n--; s.taps.n == 0 {
			s.looks.And(^lookTap)
		}
	}), nil
}
