package swap

import "github.com/wasmactors/wasmactors/abi"

// Step is how far the exchange of one actor's code is.
type Step uint8

// The steps, in their order: from Held on for other code, from Repeating on back to the old code.
const (
	Over          Step = iota // none is under way
	Held                      // the actor is held, and its state is copied
	Saving                    // a copy with the old code saves
	Loading                   // a copy with the new code loads
	Trying                    // one of the last inputs is tried on it
	Recording                 // what the actor becomes is about to be recorded
	Switching                 // it is recorded, and the actor goes over
	Repeating                 // the old code repeats what has come in since
	RecordingBack             // as Recording, of an actor that goes back
	SwitchingBack             // as Switching
)

var steps = [...]string{"over", "held", "saving", "loading", "trying", "recording", "switching", "repeating", "recording the way back", "switching back"}

// String is the step's name.
func (s Step) String() string { return steps[s] }

// Passing is told of each step by the goroutine that takes it. Tests set it before a system runs, and kill processes there; else it is nil.
var Passing func(of abi.Ref, s Step)

// Passes tells Passing.
func Passes(of abi.Ref, s Step) {
	if Passing != nil {
		Passing(of, s)
	}
}

// Passes tells Passing that the actor is at the step Recording, or at Switching, of its way to the code, or of its way back.
func (t *Taken) Passes(to *Code, s Step) {
	if to.Saved == nil && !to.Same && !to.Again {
		s += RecordingBack - Recording
	}
	Passes(t.Ref, s)
}
