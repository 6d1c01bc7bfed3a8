package outside

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/message"
)

// highest draws as high as can be, lowest as low.
type highest struct{}

func (highest) Float64() float64 { return 1 - 1e-12 }
func (highest) IntN(n int) int   { return n - 1 }

type lowest struct{}

func (lowest) Float64() float64 { return 0 }
func (lowest) IntN(int) int     { return 0 }

// What NewRetry says of itself, and what bounds it.
func TestDefaultsOfRetries(t *testing.T) {
	r := (Retry{}).withDefaults()
	if r.attempts != 5 || DefaultAttempts != 5 {
		t.Errorf("%d attempts", r.attempts)
	}
	for n, most := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, 160 * time.Millisecond, 320 * time.Millisecond, 640 * time.Millisecond, 1000 * time.Millisecond, 1000 * time.Millisecond} {
		high, low := r.policy.Delay(n, highest{}), r.policy.Delay(n, lowest{})
		if high > most || high < most-time.Millisecond || low > time.Millisecond {
			t.Errorf("wait %d: from %v to %v, want 0 to %v", n, low, high, most)
		}
	}
	for _, n := range []int{-1, 0, 1, MaxAttempts, MaxAttempts + 1} {
		if got, want := (Retry{}).WithAttempts(n).attempts, min(max(n, 1), MaxAttempts); got != want {
			t.Errorf("%d attempts are %d", n, got)
		}
	}
	for err, want := range map[error]bool{
		errs.ErrMailboxFull: true, fmt.Errorf("x: %w", errs.ErrMailboxFull): true, errs.ErrRestarting: true, fmt.Errorf("x: %w", errs.ErrRestarting): true,
		errs.ErrTimeout: false, errs.ErrStopped: false, errs.ErrUnknown: false, &message.ReplyError{}: false, errors.New("x"): false, context.Canceled: false,
	} {
		if NotHandled(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
