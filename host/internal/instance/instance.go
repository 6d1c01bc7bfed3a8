// Package instance has what a guest runs in: an instance of its image, or what is kept instead of one.
//
// A guest that is idle gives its instance back, and the next message brings it back. Nobody notices: a snapshot is all of its
// state, and mailbox, timers, asks and watches are the host's. host/internal/residency decides which guest sleeps when.
package instance

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/residency"
	"github.com/wasmactors/wasmactors/host/internal/sysmail"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/clock"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Owner is the actor of a guest, within its run where nothing else is said.
type Owner interface {
	Account() *account.Account
	Alarms() *alarm.Board
	Clock() clock.Clock // of its alarms
	Now() time.Time
	// State says what the actor is doing.
	State() State
	// Post sends the actor a system message. Any goroutine may call it.
	Post(m sysmail.Msg)
	// Visit calls f in the place of a run, unless one goes on or is about to. Any goroutine may call it.
	Visit(f func())
	// SleepNext has the run that goes on end with PutAwayIfOver.
	SleepNext()
	// Starved holds the actor back because it has no instance, or lets it go on.
	Starved(is bool)
	// Asleep says that the guest has begun to sleep, or has ended.
	Asleep(is bool)
	// Refused tells observers that there was no room for something, also the actor itself if its start fails then.
	Refused(what string, err error)
	// Running reports whether a run of the actor goes on. Any goroutine may ask.
	Running() bool
	// Hurry has the run that goes on end soon. Any goroutine may call it.
	Hurry()
}

// State is what an actor is doing, as far as its instance depends on it.
type State struct {
	Waits   bool   // a turn waits for its recorder: its commands are in the instance
	Running bool   // its life is in the state Running
	Failed  bool   // it waits for a decision about its failure
	Begun   bool   // its incarnation has started
	Busy    bool   // messages wait, and it may handle them
	Repeats bool   // records of an earlier system are repeated
	Had     bool   // and in these it has an instance now
	Turns   uint64 // how many it has had
}

// Room is where instances come from, for a system.
type Room struct {
	List   *residency.List
	Asleep *atomic.Int64 // guests without an instance
	Real   bool          // time is the machine's, so guests may be slim, see Slim
}

// Worker is a worker that runs the guest.
type Worker interface {
	Yield() bool    // lets others run
	Spend(ns int64) // counts as computed
}

// To copy a guest's memory takes the host about a millisecond for each MiB. It is work as a turn's is: a run
// that is about to copy LargeCopy bytes leaves its lane before, and one that has copied for longCopy has spent so much.
//
// A reset copies few pages and gives the others back, which takes a quarter of that or less: so a run leaves its
// lane before if the memory has LargeReset bytes. How long it takes is looked at from LargeCopy on.
const (
	LargeCopy  = 1 << 20
	LargeReset = 8 << 20
	longCopy   = time.Millisecond
)

// MostPutAway is how many guests make room for one: those that sleep may have been smaller.
const MostPutAway = 8

// An actor that got no instance tries again after instanceRetry, and after twice as long each time it fails
// again, up to MostRetry.
const (
	instanceRetry = 5 * time.Millisecond
	MostRetry     = time.Second
)

// Holder has the instance of one guest, or the snapshot that is kept instead. Only the run of the owner uses it; Kill, Use and
// the methods of residency.Sleeper are for any goroutine.
type Holder struct {
	owner Owner
	room  *Room
	tree  *residency.Tree // the guests of its tree

	Image  *sandbox.Image // of the present incarnation
	Sleeps bool           // instances of the image can be given back

	// Only the actor's own run uses the instance. Killing takes the lock, and so does giving it back:
	// so no kill reaches an instance that belongs to another actor by then.
	mu   sync.Mutex
	inst atomic.Pointer[sandbox.Instance]

	Node     residency.Node
	Snapshot *sandbox.Snapshot // instead of an instance, while the guest sleeps
	Failed   bool              // the snapshot is of the state after a failed turn
	Waited   uint8             // how often it has got no instance since it had one, see TryAgain
	retry    alarm.Alarm
	slim     bool   // it counts for what it has touched: see Slim
	ran      uint64 // turns, when it was last asked to be slim

	States *States // to go back to; nil: they are not kept
}

// Init prepares a holder. key spreads guests over the shards of the list.
func (h *Holder) Init(o Owner, room *Room, key uint64, tree *residency.Tree) {
	h.owner, h.room, h.tree = o, room, tree
	h.Node.Init(h, key, tree)
}

// Load is the instance that the guest has; nil: it has none.
func (h *Holder) Load() *sandbox.Instance { return h.inst.Load() }

// Slimmed reports whether the guest counts only for what it has touched.
func (h *Holder) Slimmed() bool { return h.slim }

// With calls f with the instance, if there is one, which is not given back meanwhile. Any goroutine may call it.
func (h *Holder) With(f func(*sandbox.Instance)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.inst.Load(); x != nil {
		f(x)
	}
}

// Awake reports whether there may be a turn to kill. Any goroutine may ask.
func (h *Holder) Awake() bool { return h.inst.Load() != nil }

// Kill ends the turn that runs, if one does, within a quantum. Any goroutine may call it.
func (h *Holder) Kill(reason string) {
	h.With(func(x *sandbox.Instance) {
		if h.owner.Running() {
			x.Kill(reason)
			h.owner.Hurry()
		}
	})
}

// EndBatch makes the running turn the last one before the actor's system messages are handled. Any goroutine may call it.
func (h *Holder) EndBatch() { h.With((*sandbox.Instance).EndBatch) }

// GoOn revokes EndBatch: the system messages are about to be handled.
func (h *Holder) GoOn() {
	if x := h.inst.Load(); x != nil {
		x.Resume()
	}
}

// Grow implements sandbox.Account: a guest's memory grows within its own limit.
func (h *Holder) Grow(from, to uint64) bool {
	acc := h.owner.Account()
	if err := acc.Set(account.Memory, acc.Of(account.Memory)+int64(to-from)); err != nil {
		if h.owner.State().Repeats { // there was room for it, or the turn was cut
			acc.Note(account.Memory, acc.Of(account.Memory)+int64(to-from))
			return true
		}
		h.owner.Refused("memory", err)
		return false
	}
	return true
}

// Save is the state of the instance, or of the snapshot that is kept instead of it; nil if there is none that a turn could go
// on with.
func (h *Holder) Save() ([]byte, error) {
	a := h.owner.State()
	if !a.Begun {
		return nil, nil
	}
	x, snap := h.inst.Load(), h.Snapshot
	switch {
	case x != nil && !(x.Poisoned() && a.Failed):
		snap = &sandbox.Snapshot{}
		if err := x.Save(snap); err != nil {
			return nil, err
		}
	case snap == nil && a.Failed:
		return nil, nil
	case snap == nil:
		return nil, fmt.Errorf("%w: it has no instance", sandbox.ErrNotSaved)
	}
	return sandbox.AppendSnapshot(nil, h.Image, snap)
}

// AskToSleep implements residency.Sleeper.
func (h *Holder) AskToSleep() { h.owner.Post(sysmail.Msg{Kind: sysmail.Sleep}) }

// PutAway implements residency.Sleeper. It takes the place of a run of the actor: a message to
// it could wait behind a long turn, and until then there would be one instance too many.
func (h *Holder) PutAway() (done bool) {
	h.owner.Visit(func() { done = h.putAway() })
	return done
}

// SleepNext implements residency.Sleeper.
func (h *Holder) SleepNext() { h.owner.SleepNext() }

// PutAwayIfOver is called at the end of a run of a guest whose instance exceeds the bound.
func (h *Holder) PutAwayIfOver(w Worker) {
	if h.room.List.Over() {
		began := h.owner.Now()
		h.putAway()
		h.Copied(w, began)
	}
}

// putAway gives the instance back between two runs, even if there is work to do: what waits for
// the actor wakes it. A state that will not be used again is not kept.
func (h *Holder) putAway() bool {
	x := h.inst.Load()
	if x == nil {
		return false
	}
	a := h.owner.State()
	if a.Waits {
		h.Use()
		return false
	}
	if !a.Running && (x.Poisoned() || !a.Begun) {
		h.Release()
		return true
	}
	s, err := x.Drain()
	if err != nil {
		h.room.List.Hold(&h.Node)
		return false
	}
	h.FallAsleep(s)
	h.Failed = a.Failed
	return true
}

// FallAsleep keeps a snapshot instead of the instance.
func (h *Holder) FallAsleep(s *sandbox.Snapshot) {
	h.Snapshot, h.Failed = s, false
	h.NoteStates()
	h.Release()
	h.room.Asleep.Add(1)
	h.owner.Asleep(true)
}

// Sleep gives the instance back, unless the actor has something to do. The sweep has taken the guest out of the
// list: so it gives its instance back, or is in the list again.
func (h *Holder) Sleep(w Worker) {
	if x := h.inst.Load(); x != nil && x.MemoryBytes() >= LargeCopy {
		w.Yield()
	}
	switch {
	case h.inst.Load() == nil || h.Node.Used():
	case h.owner.State().Busy:
		h.Use()
	default:
		began := h.owner.Now()
		h.putAway()
		h.Copied(w, began)
	}
}

// Copied notes that the present run has copied memory since began, if that took long.
func (h *Holder) Copied(w Worker, began time.Time) (long bool) {
	took := h.owner.Now().Sub(began)
	if long = took >= longCopy; long {
		w.Spend(int64(took))
	}
	return long
}

// Pause lets others run if the run has copied for long since began.
func (h *Holder) Pause(w Worker, began time.Time) {
	if h.Copied(w, began) {
		w.Yield()
	}
}

// Get is the instance, which may run; a sleeping guest is woken. It is nil if the guest has neither an instance nor a state. The
// error is one of NoRoom if that cannot be at the moment.
func (h *Holder) Get(w Worker) (*sandbox.Instance, error) {
	if x := h.inst.Load(); x != nil && !h.slim {
		return x, nil
	}
	return h.wake(w)
}

func (h *Holder) wake(w Worker) (*sandbox.Instance, error) {
	if x := h.inst.Load(); x != nil {
		return x, h.widen(w, x)
	}
	if h.Snapshot == nil {
		return nil, nil
	}
	if h.Snapshot.Bytes() >= LargeCopy {
		w.Yield()
	}
	x, err := h.Obtain(w, sandbox.SavedWeight(h.Image, h.Snapshot), h.Snapshot)
	if err != nil {
		return nil, err
	}
	h.Waited = 0
	h.ForgetSleep()
	return x, nil
}

// NoRoom reports whether err says that an instance cannot be had at the moment, because there are too many or
// they take too much memory.
func NoRoom(err error) bool {
	return errors.Is(err, sandbox.ErrTooManyInstances) || errors.Is(err, errs.ErrLimit)
}

// Hopeless reports whether an actor would not fit even if it were alone.
func Hopeless(err error) bool {
	var bound *account.Error
	return errors.As(err, &bound) && bound.Never
}

// MakeRoom puts an idle guest to sleep where that helps against err, and reports whether it has: any
// guest if the system has no room, only those of the tree if that has none. node is the
// guest that needs the room; nil: none does yet. What a search in the tree costs, and whether it succeeds,
// does not depend on other trees.
func (r *Room) MakeRoom(tree *residency.Tree, node *residency.Node, err error) bool {
	if errors.Is(err, sandbox.ErrTooManyInstances) {
		return r.List.MakeRoom(node, Any)
	}
	var bound *account.Error
	if errors.As(err, &bound) && bound.Pool != nil && bound.Pool.Root() {
		return r.List.SlimOne(node) || r.List.MakeRoom(node, Any)
	}
	if bound == nil || bound.Pool == nil {
		return false
	}
	return tree.MakeRoom(node, func(s residency.Sleeper) bool { return bound.Helps(s.(*Holder).owner.Account().Pool()) })
}

// Any is for List.MakeRoom: any guest may be put to sleep.
func Any(residency.Sleeper) bool { return true }

// Obtain gets the actor an instance of a weight, in the state s or, if that is nil, a fresh one.
// Where there are as many as may be, or they weigh as much, it has the room of those that other
// guests have given back for it. After each long step others run.
func (h *Holder) Obtain(w Worker, weight int64, s *sandbox.Snapshot) (*sandbox.Instance, error) {
	x, err := h.attempt(w, weight, s)
	for i := 0; err != nil && i < MostPutAway && h.makeRoom(w, err); i++ {
		x, err = h.attempt(w, weight, s)
	}
	if err != nil && errors.Is(err, errs.ErrLimit) && h.owner.State().Had {
		h.Use()
		x, err = h.have(weight, s) // whatever the bounds are now
	}
	return x, err
}

func (h *Holder) attempt(w Worker, weight int64, s *sandbox.Snapshot) (*sandbox.Instance, error) {
	defer h.Pause(w, h.owner.Now())
	return h.take(weight, s)
}

func (h *Holder) makeRoom(w Worker, err error) bool {
	defer h.Pause(w, h.owner.Now())
	return h.room.MakeRoom(h.tree, &h.Node, err)
}

func (h *Holder) take(weight int64, s *sandbox.Snapshot) (x *sandbox.Instance, err error) {
	h.Use() // first: room is made before there is one more
	if err = work.Hold(h.owner.Account(), account.Memory, weight); err != nil {
		h.room.List.Remove(&h.Node)
		h.owner.Account().Note(account.Memory, 0)
		return nil, err
	}
	return h.have(weight, s)
}

// have is take without a question whether there is room, and h is used.
func (h *Holder) have(weight int64, s *sandbox.Snapshot) (x *sandbox.Instance, err error) {
	h.owner.Account().Note(account.Memory, weight)
	h.avoidCopy()
	if s != nil {
		x, err = sandbox.GetSaved(h.Image, s)
	} else {
		x, err = sandbox.Get(h.Image)
	}
	if err != nil {
		h.room.List.Remove(&h.Node)
		h.owner.Account().Note(account.Memory, 0)
		return nil, err
	}
	h.inst.Store(x)
	h.Widened()
	if !h.Sleeps {
		h.room.List.Count(&h.Node)
	}
	return x, nil
}

// avoidCopy prevents that a guest of a large image gets a copy of its memory, megabytes and milliseconds,
// when the most mappings are in use: the guest takes the place of an unused instance, or the instance of an
// idle guest of the same image.
func (h *Holder) avoidCopy() {
	if sandbox.Copies(h.Image) && !sandbox.DropMapped(h.Image) {
		h.room.List.MakeRoom(&h.Node, func(s residency.Sleeper) bool { return s.(*Holder).Image == h.Image })
	}
}

// Use notes that the instance is being used, or is about to be.
func (h *Holder) Use() {
	if h.Sleeps {
		h.room.List.Use(&h.Node)
	}
}

// ForgetSleep drops the snapshot of a guest that sleeps: it has an instance again, or its incarnation is over.
func (h *Holder) ForgetSleep() {
	if h.Snapshot != nil {
		h.Snapshot = nil
		h.owner.Asleep(false)
		h.room.Asleep.Add(-1)
		h.NoteStates()
	}
}

// TryAgain schedules a message to the actor for its next try, and publishes the first failure.
func (h *Holder) TryAgain(what string, err error, m sysmail.Msg) {
	if h.Waited == 0 {
		h.owner.Refused(what, fmt.Errorf("%w; it waits and is tried again", err))
	}
	after := min(instanceRetry<<h.Waited, MostRetry)
	if after < MostRetry {
		h.Waited++
	}
	h.retry.Stop()
	h.retry = h.owner.Alarms().After(h.owner.Clock(), after, func() { h.owner.Post(m) })
}

// Lacks deals with an actor that cannot be woken: if there is no room for its instance it waits, anything else is a failure.
func (h *Holder) Lacks(err error) *abi.Failure {
	if !NoRoom(err) {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	h.owner.Starved(true)
	h.TryAgain("instance", err, sysmail.Msg{Kind: sysmail.Instance})
	return nil
}

// ResumesLater gets a failed guest another instance, if its own was needed elsewhere. It is true if there is no room: then
// the guest keeps its state and m is sent when it is to be tried again.
func (h *Holder) ResumesLater(w Worker, m sysmail.Msg) bool {
	lacks, err := h.Replace(w)
	if !lacks || !NoRoom(err) {
		return false
	}
	h.TryAgain("instance", err, m)
	return true
}

// StopWaiting is for an incarnation that is over.
func (h *Holder) StopWaiting() {
	h.Waited = 0
	h.retry.Stop()
	h.owner.Starved(false)
}

// Release gives the instance back.
func (h *Holder) Release() {
	h.mu.Lock()
	x := h.inst.Swap(nil)
	h.mu.Unlock()
	if x != nil {
		h.room.List.Remove(&h.Node)
		h.room.List.Narrow(&h.Node)
		h.slim = false
		x.Put()
	}
	h.owner.Account().Note(account.Memory, 0)
}
