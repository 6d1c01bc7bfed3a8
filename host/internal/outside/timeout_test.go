package outside

import (
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/view"
)

// What a timeout says that the target was doing, in each of its states.
func TestWhatTheTargetDid(t *testing.T) {
	for _, c := range []struct {
		e    TimeoutError
		want string
	}{
		{TimeoutError{}, "there is no such actor now"},
		{TimeoutError{Info: &view.Info{State: view.StateRunning}}, "it is idle: it has handled the question and not answered yet, or forwarded it, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateRunning, Mailbox: 1}}, "it is between turns, 1 message waits"},
		{TimeoutError{Info: &view.Info{State: view.StateRunning, Mailbox: 2}, Turn: 1500 * time.Microsecond}, "it has been in a turn for 2ms, 2 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateRunning}, Turn: time.Second, AtLeast: true}, "it has been in a turn for more than 1s, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateRunning}, busy: true}, "it is in a turn that has begun since, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateStarting, Mailbox: 3}}, "it has not started yet, 3 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateAsleep, Mailbox: 3}}, "it is asleep, 3 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateStarved}}, "it waits for an instance, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StatePaused}}, "an operator has paused it, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateSuspended}}, "it is suspended until its supervisor decides, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateDelayed}}, "it waits for its restart, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateDelayed, Due: 1500 * time.Millisecond}}, "it waits for its restart, which is due in 1.5s, 0 messages wait"},
		{TimeoutError{Info: &view.Info{State: view.StateStopping}}, "it is about to stop, 0 messages wait"},
	} {
		if got := c.e.Doing(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
