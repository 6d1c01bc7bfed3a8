package sandbox

import (
	"bytes"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
)

// maxWaits is how often a guest may ask to wait for a time within one turn. A few
// are let through: C and TinyGo sleep with one call that returns at once, and Go's
// runtime sleeps a little before it reports a fatal error. Go's scheduler asks
// again and again, because the turn's clock never moves.
const maxWaits = 16

// waitBudget counts the waits of one turn.
type waitBudget struct {
	phase uint64
	count int
}

// waited is what the failure says.
const waited = "the guest waits within a turn, where the clock stands still: time.Sleep, the channel of a timer, " +
	"or a goroutine that only a timer would wake; set a timer (ctx.After) and end the turn instead"

// wait answers a guest that asks to wait. Number maxWaits of a turn is refused, at which Go's
// runtime panics with a trace of its goroutines; a guest that goes on asking is ended here.
func (x *Instance) wait() bool {
	b := &x.waits
	x.used = true
	if phase := x.phaseNow(); phase != b.phase {
		*b = waitBudget{phase: phase}
	}
	b.count++
	if b.count >= 2*maxWaits {
		panic(&abort{kind: abi.FailureGuestPanic, message: waited})
	}
	return b.count != maxWaits
}

// explainWait explains the failure if Go's runtime has panicked over a refused wait, or was
// about to when its fuel was spent.
func (x *Instance) explainWait(f *abi.Failure) {
	if x.waits.count < maxWaits || f.Kind != abi.FailureFuel && !bytes.Contains(x.diagnostics.trace, []byte("poll_oneoff")) {
		return
	}
	f.Message = waited
	if at := strings.Index(f.GuestStack, "\ngoroutine "); at >= 0 && !strings.HasPrefix(f.GuestStack, "goroutine ") { // the scheduler's own stack comes first
		f.GuestStack = f.GuestStack[at+1:]
	}
}
