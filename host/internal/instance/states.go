package instance

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/account"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// How a guest gets back to the state from before a failing turn: a snapshot every
// few turns, and the messages since, which are handled again without effect. A turn is
// a function of the state, the message and the turn's header, so it comes out the same.
// Which messages were pushed together counts, too: the guest's memory depends on it.
// Only an actor whose supervisor can answer resume pays for it.
const (
	// CheckpointTurns and CheckpointBytes bound what is handled again.
	CheckpointTurns = 16
	CheckpointBytes = 64 << 10
	// A large snapshot is taken less often: after one turn for each CheckpointGrain
	// bytes of it, up to MostTurns. So it costs about as much as those turns.
	CheckpointGrain = 1 << 10
	MostTurns       = 1024
)

// States is what a guest needs to go back.
type States struct {
	Snap sandbox.Snapshot
	Log  []Logged // turns since the snapshot
	Why  string   // why there is no state to go back to; else empty

	bytes int
	left  []*mailbox.Envelope // see Leave
}

// Logged is a message of an entry that can be repeated.
type Logged struct {
	Mail   *mailbox.Envelope
	Now    int64
	Turn   uint64
	Behind bool // it was pushed behind the message before
	Unread bool // it was pushed, and no turn began with it that counts
}

// overhead is what an envelope takes besides its bytes, about.
const overhead = 64

// Keep begins to remember, with the state of the instance as it is.
func (h *Holder) Keep(w Worker) {
	h.ForgetStates()
	h.States = &States{}
	h.Checkpoint(w)
}

// KeepIf is Keep if the supervisor can answer resume.
func (h *Holder) KeepIf(can bool, w Worker) {
	if can {
		h.Keep(w)
	} else {
		h.ForgetStates()
	}
}

// Checkpoint takes a snapshot; what led to it is forgotten. It takes as long as the copies that it makes.
func (h *Holder) Checkpoint(w Worker) {
	s := h.States
	if s.Snap.Bytes() >= LargeCopy {
		w.Yield()
	}
	defer h.Pause(w, h.owner.Now())
	s.forget()
	err := h.inst.Load().Save(&s.Snap)
	if err == nil && h.owner.State().Repeats {
		h.NoteStates() // there was room for it, or the supervisor was told that there was none: the records say so
	} else if err == nil {
		err = work.Hold(h.owner.Account(), account.Snapshot, s.Held())
	}
	if err != nil {
		s.Why, s.Snap = err.Error(), sandbox.Snapshot{}
		h.NoteStates()
	}
}

// Held is about the most, in bytes, that the snapshot and the turns since may take until the next
// snapshot is due.
func (s *States) Held() int64 { return int64(2*s.Snap.Bytes()) + CheckpointBytes }

// NoteStates brings the account up to date.
func (h *Holder) NoteStates() {
	n := int64(0)
	if h.States != nil && h.States.Why == "" {
		n = h.States.Held()
	}
	if h.Snapshot != nil {
		n += int64(h.Snapshot.Bytes())
	}
	h.owner.Account().Note(account.Snapshot, n)
}

// Remember takes the envelope of a turn that has ended; false means that it is still the
// caller's.
func (s *States) Remember(l Logged) bool {
	if s.Why != "" {
		return false
	}
	s.Log = append(s.Log, l)
	s.bytes += l.Mail.Size() + overhead
	return true
}

// Leave keeps copies of messages that were pushed and go back to the mailbox, until the turns before them
// are remembered. What the host knows of them besides is not copied: guests do not see it.
func (s *States) Leave(back []*mailbox.Envelope) {
	for _, e := range back {
		s.left = append(s.left, message.CloneEnvelope(e))
	}
}

// RememberLeft puts them behind the turns of their entry.
func (s *States) RememberLeft(now int64) {
	for i, e := range s.left {
		if s.left[i] = nil; !s.Remember(Logged{Mail: e, Now: now, Behind: true, Unread: true}) {
			e.Free()
		}
	}
	s.left = s.left[:0]
}

// CheckpointIfDue is called between turns, after those of an entry went well.
func (h *Holder) CheckpointIfDue(w Worker) {
	if s := h.States; s.Why == "" && s.due() {
		h.Checkpoint(w)
	}
}

func (s *States) due() bool {
	n := s.Snap.Bytes()
	return len(s.Log) >= max(CheckpointTurns, min(n/CheckpointGrain, MostTurns)) || s.bytes >= CheckpointBytes+n/4
}

// GoBack brings the instance back to the last snapshot.
func (h *Holder) GoBack(w Worker) bool {
	snap, x := &h.States.Snap, h.inst.Load()
	if snap.Bytes() >= LargeCopy || x.MemoryBytes() >= LargeReset {
		w.Yield()
	}
	defer h.Pause(w, h.owner.Now())
	return x.Restore(snap) == nil
}

// Repeat has the turns since the last snapshot once more. push puts a message of them into the inbox; what else a turn depends on is
// in entry. failed is told the turn that has failed this time.
func (h *Holder) Repeat(w Worker, entry sandbox.Entry, push func(e *mailbox.Envelope, now int64) bool, failed func(turn uint64, f *abi.Failure)) bool {
	x := h.inst.Load()
	for log := h.States.Log; len(log) > 0; {
		n, most := 0, 0
		for n == 0 || n < len(log) && log[n].Behind {
			if !push(log[n].Mail, log[n].Now) {
				return false
			}
			if !log[n].Unread {
				most++
			}
			n++
		}
		entry.Now, entry.FirstTurn, entry.Most = log[0].Now, log[0].Turn, most
		var res sandbox.Result
		x.Run(&entry, &res)
		w.Spend(res.Worth)
		if res.Failure != nil {
			failed(log[0].Turn+uint64(res.Turns), res.Failure)
			return false
		}
		log = log[n:]
	}
	return true
}

// Rewindable reports whether the guest can go back, and if there is nothing to undo: nothing has run since it fell asleep.
func (h *Holder) Rewindable() (can, unchanged bool) {
	if h.inst.Load() == nil && h.Snapshot != nil && !h.Failed {
		return true, true
	}
	return h.States != nil && h.inst.Load() != nil, false
}

// Replace gets a failed guest that can go back another instance, if its own was needed elsewhere. lacks is false if it has
// one, or nothing to go back to.
func (h *Holder) Replace(w Worker) (lacks bool, err error) {
	s := h.States
	if s == nil || s.Why != "" || h.inst.Load() != nil || h.Snapshot != nil && !h.Failed {
		return false, nil
	}
	if _, err = h.Obtain(w, sandbox.SavedWeight(h.Image, &s.Snap), nil); err == nil {
		h.Waited = 0
		h.ForgetSleep()
	}
	return true, err
}

// ForgetStates drops what was remembered.
func (h *Holder) ForgetStates() {
	if h.States != nil {
		h.States.forget()
		h.States = nil
		h.NoteStates()
	}
}

func (s *States) forget() {
	for i := range s.Log {
		s.Log[i].Mail.Free()
	}
	clear(s.Log)
	s.Log, s.bytes = s.Log[:0], 0
}

// Bytes is about what the turns since the snapshot take.
func (s *States) Bytes() int { return s.bytes }
