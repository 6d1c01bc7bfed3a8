package host

import (
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/life"
)

// ActorState is what an actor is doing, as seen from outside.
type ActorState uint8

// The states. If several apply, the one with the highest number is shown.
const (
	StateRunning   ActorState = iota // it handles messages, or waits for one
	StateStarting                    // its first turn is still to come, or runs
	StateAsleep                      // a guest that has given its instance back
	StateStarved                     // a guest that needs an instance, and none is to be had
	StatePaused                      // an operator has paused it, see [Operator.Pause]
	StateSuspended                   // it, or an ancestor, has failed and waits for a decision
	StateDelayed                     // between two incarnations
	StateStopping                    // waits for its children to stop
)

var stateNames = [...]string{"running", "starting", "asleep", "starved", "paused", "suspended", "delayed", "stopping"}

// String is the state's name.
func (s ActorState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Info is what is known of an actor at any time, by any goroutine, without involving the
// actor. Counts of turns and fuel are those until its last spell of work.
type Info struct {
	Ref         Ref
	Parent      Ref // nobody's for /user and /system
	Type        string
	State       ActorState
	Paused      bool // true even if State shows a higher state
	Failed      bool // it has failed itself, and waits for its supervisor's decision
	Grace       bool // messages are held back for a while after a delayed restart
	Incarnation uint64

	Mailbox      int // messages that wait
	MailboxBytes int64
	Before, Came uint64 // of a [HostedMailbox]: its Order; 0: there is no such mailbox, and Turns messages came before those that wait
	Turns        uint64
	Fuel         uint64
	Crashes      uint64
	Restarts     uint64
	Held         int64 // bytes that the host holds for it
	Children     int   // only from [System.Info]; 0 from [System.AppendInfo]

	Since   int64         // when the present incarnation began, ns since 1970; 0: none has
	Due     time.Duration // StateDelayed: the rest of the delay; 0: it waits for something else
	Failure *LastFailure  // nil: it has not failed yet. Not to be changed
}

// LastFailure is the last failure of an actor. It is kept until the actor has stopped,
// so it is shortened: each text to LastFailureText bytes, and the stack to so many frames.
type LastFailure struct {
	At      time.Time
	Failure abi.Failure
}

// What is kept of a failure.
const (
	LastFailureText   = 256
	LastFailureFrames = 8
)

// noteFailure keeps what an operator may want to know later. It is on the actor's account.
func (a *actor) noteFailure(f *abi.Failure) {
	f = a.sys.redacted(f)
	l := &LastFailure{At: a.Now(), Failure: *f} // a failure is not changed any more
	l.Failure.Reason, l.Failure.Message, l.Failure.GuestStack = kept(f.Reason), kept(f.Message), kept(f.GuestStack)
	if !short(f.Stack) {
		l.Failure.Stack = make([]string, min(len(f.Stack), LastFailureFrames))
		for i := range l.Failure.Stack {
			l.Failure.Stack[i] = kept(f.Stack[i])
		}
	}
	before := a.failed.Swap(l).weight()
	if more := l.weight() - before; more != 0 {
		a.account.Note(account.Base, a.account.Of(account.Base)+more)
	}
}

// short reports whether frames are few and short enough to be kept as they are.
func short(frames []string) bool {
	if len(frames) > LastFailureFrames {
		return false
	}
	for _, frame := range frames {
		if len(frame) > LastFailureText {
			return false
		}
	}
	return true
}

// kept is a copy of a text, so that it does not keep a larger one alive.
func kept(s string) string {
	if len(s) <= LastFailureText {
		return s
	}
	return strings.Clone(clip(s, LastFailureText))
}

// weight is what the failure takes, in bytes.
func (l *LastFailure) weight() int64 {
	if l == nil {
		return 0
	}
	f := &l.Failure
	n := 160 + len(f.Reason) + len(f.Message) + len(f.GuestStack)
	for _, frame := range f.Stack {
		n += 16 + len(frame)
	}
	return int64(n)
}

// Info is the present Info of an actor; ErrUnknown if it has stopped.
func (s *System) Info(ref Ref) (Info, error) {
	a := s.here(ref.UID())
	if a == nil {
		return Info{}, ErrUnknown
	}
	var i Info
	a.info(&i)
	i.Children = a.super.Family.Len()
	return i, nil
}

// AppendInfo appends the current Info of every actor, /user and /system included, in no particular order. Actors that start
// or stop during the call may be left out. It holds no lock that a message needs. To add up what actors have done, use
// [System.Census].
func (s *System) AppendInfo(to []Info) []Info { return s.appendInfo(to, nil) }

// Census is AppendInfo plus the totals, by type, of stopped actors. Each actor is in one of the two, so their sums never
// decrease from one call to the next. /user and /system have no type and are in neither. Calls wait for each other.
func (s *System) Census(to []Info) (infos []Info, ended map[string]TypeStats) {
	ended = s.totals.count(func(c *census) { to = s.appendInfo(to, c) })
	return to, ended
}

// appendInfo leaves out actors that a census does not count as living, if there is one.
func (s *System) appendInfo(to []Info, c *census) []Info {
	const together = 32
	var batch [together]*actor
	n := 0
	flush := func() {
		// The fields that are read are rarely in a cache. Reading several actors before
		// anything depends on the values makes the memory fetch all of them at once.
		warm := uint64(0)
		for _, a := range batch[:n] {
			warm += a.done.Load() + uint64(a.account.Of(account.Base)) + uint64(a.box.Len()) + uint64(a.uid)
		}
		if warm == 0 {
			return // no actor has uid 0
		}
		for _, a := range batch[:n] {
			if len(to) < cap(to) {
				to = to[:len(to)+1]
			} else {
				to = append(to, Info{})
			}
			a.info(&to[len(to)-1])
		}
	}
	s.table.Each(func(a *actor) {
		if c != nil && !c.meets(a) {
			return
		}
		batch[n] = a
		if n++; n == together {
			flush()
			n = 0
		}
	})
	flush()
	return to
}

// info fills i in, field by field: there may be many.
func (a *actor) info(i *Info) {
	i.Ref = newRef(a.uid, a.path)
	if p := a.parent; p != nil {
		i.Parent = newRef(p.uid, p.path)
	} else {
		i.Parent = Ref{}
	}
	i.Type, i.Incarnation, i.Since, i.Failure = a.typ, a.number.Load(), a.startedAt.Load(), a.failed.Load()
	i.Mailbox, i.MailboxBytes, i.Before, i.Came = a.box.Len(), a.box.Bytes(), 0, 0
	if a.box.hosted != nil {
		i.Before, i.Came = a.box.hosted.Order()
	}
	i.Turns, i.Fuel, i.Crashes, i.Restarts = a.done.Load(), a.counts.fuel.Load(), a.counts.crashes.Load(), a.counts.restarts.Load()
	i.Held, i.Children, i.Due = a.account.Total(), 0, 0
	a.infoState(i)
}

// infoState says what the actor is doing: the highest state that applies.
func (a *actor) infoState(i *Info) {
	state := a.life.State()
	i.Paused, i.Grace = a.holds.has(holdPaused), a.holds.has(holdGrace)
	i.Failed = state == life.Failed
	switch {
	case state.Ending():
		i.State = StateStopping
	case state == life.Restarting:
		i.State = StateDelayed
		if due := a.due.Load(); due != 0 {
			i.Due = max(0, time.Unix(0, due).Sub(a.Now()))
		}
	case i.Failed || a.life.Suspended() > 0:
		i.State = StateSuspended
	case i.Paused:
		i.State = StatePaused
	case a.holds.has(holdInstance):
		i.State = StateStarved
	case !a.begun.Load():
		i.State = StateStarting
	case a.asleep.Load():
		i.State = StateAsleep
	default:
		i.State = StateRunning
	}
}
