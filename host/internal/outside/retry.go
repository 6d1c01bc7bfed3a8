package outside

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/header"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/ref"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// Retry says how a question is asked again. It is immutable; the zero value is that of NewRetry.
type Retry struct {
	attempts int
	policy   backoff.Policy
	each     time.Duration
	on       func(error) bool
	key      string
}

// Defaults of a Retry.
const (
	DefaultAttempts = 5
	MaxAttempts     = 1000
)

// defaultRetryPolicy is exponential, with full jitter.
var defaultRetryPolicy = backoff.WithJitter(backoff.Exponential(10*time.Millisecond, time.Second, 2), backoff.FullJitter())

// NewRetry asks up to DefaultAttempts times, after waits of 10 ms to 1 s that double and have full jitter, each
// attempt as long as all of them may take, after the failures of [NotHandled].
func NewRetry() Retry { return Retry{} }

// WithAttempts bounds the attempts, the first one included: 1 to MaxAttempts.
func (r Retry) WithAttempts(n int) Retry { r.attempts = min(max(n, 1), MaxAttempts); return r }

// WithPolicy sets how long to wait before the next attempt.
func (r Retry) WithPolicy(p backoff.Policy) Retry { r.policy = p; return r }

// WithEach bounds one attempt, by the system's clock; 0: only the whole is bounded. An attempt that takes
// longer fails with ErrTimeout, which is retried only if it is among the listed failures.
func (r Retry) WithEach(d time.Duration) Retry { r.each = max(d, 0); return r }

// WithOn lists the failures after which the question is asked again, as errors.Is finds them; all
// others end it at once. With ErrTimeout or *TurnError among them, the receiver must be able to
// get a question twice: see [Retry.WithKey].
func (r Retry) WithOn(failures ...error) Retry {
	failures = append([]error(nil), failures...)
	return r.WithOnFunc(func(err error) bool {
		for _, f := range failures {
			if errors.Is(err, f) {
				return true
			}
		}
		return false
	})
}

// WithOnFunc is WithOn with a function that says whether to ask again after a failure.
func (r Retry) WithOnFunc(on func(error) bool) Retry { r.on = on; return r }

// WithKey sets the idempotency key of the question, 1 to abi.MaxHeaderValue bytes of UTF-8, instead of a random
// one. It is in the header idempotency-key of every attempt, so that the receiver, or a
// mailbox that uses it, can recognise repetitions.
func (r Retry) WithKey(key string) Retry { r.key = key; return r }

// NotHandled reports whether an ask has failed so that the question was certainly not handled: the
// mailbox was full, or the actor waited for its restart.
func NotHandled(err error) bool {
	return errors.Is(err, errs.ErrMailboxFull) || errors.Is(err, errs.ErrRestarting)
}

func (r Retry) withDefaults() Retry {
	if r.attempts == 0 {
		r.attempts = DefaultAttempts
	}
	if r.policy == nil {
		r.policy = defaultRetryPolicy
	}
	if r.on == nil {
		r.on = NotHandled
	}
	return r
}

// RetryError is the failure of a question that was asked as often as allowed.
type RetryError struct {
	Attempts int
	Err      error // of the last one
}

func (e *RetryError) Error() string {
	return fmt.Sprintf("%v (attempt %d, the last)", e.Err, e.Attempts)
}

// Unwrap is the error of the last attempt.
func (e *RetryError) Unwrap() error { return e.Err }

// AskRetry is Ask, repeated after the failures that r lists.
func (t *Table) AskRetry(ctx context.Context, to ref.Ref, v any, r Retry) (message.Message, error) {
	r = r.withDefaults()
	drawn := t.kernel.Random(to.UID(), t.retried.Add(1))
	if r.key == "" {
		r.key = hex.EncodeToString(drawn[:8])
	}
	var rnd backoff.Rand
	until := t.Patience(ctx)
	for n := 1; ; n++ {
		m, err := t.attempt(ctx, to, v, r, n, until)
		if err == nil || !r.on(err) || ctx.Err() != nil {
			return m, err
		}
		if n == r.attempts {
			return m, &RetryError{n, err}
		}
		if rnd == nil {
			rnd = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(drawn[8:]), binary.LittleEndian.Uint64(drawn[16:])))
		}
		wait := r.policy.Delay(n-1, rnd)
		if t.Time.Now()+int64(wait) >= until.due {
			return m, &RetryError{n, err}
		}
		if over := t.pause(ctx, wait); over != nil {
			return m, &RetryError{n, errors.Join(err, over)}
		}
	}
}

// pause waits by the system's clock. It fails if ctx or the system ends before.
func (t *Table) pause(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	alarm := t.kernel.Clock().AfterFunc(d, func() { close(over) })
	defer alarm.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Done:
		return errs.ErrStopped
	}
}

// attempt asks once.
func (t *Table) attempt(ctx context.Context, to ref.Ref, v any, r Retry, n int, whole Patience) (message.Message, error) {
	e, err := message.Envelope(v)
	if err != nil {
		return message.Message{}, err
	}
	if err := attemptHeaders(e, r.key, n); err != nil {
		e.Free()
		return message.Message{}, err
	}
	if r.each == 0 {
		return t.askUntil(ctx, to, v, e, Patience{t.Time.Now(), whole.due, whole.swept}, nil)
	}
	now := t.Time.Now()
	until := Patience{at: now, due: min(now+int64(r.each), whole.due)}
	over := make(chan struct{})
	alarm := t.kernel.Clock().AfterFunc(time.Duration(until.due-now), func() { close(over) })
	defer alarm.Stop()
	return t.askUntil(ctx, to, v, e, until, over)
}

// attemptHeaders sets the headers with the key and the number of an attempt.
func attemptHeaders(e *mailbox.Envelope, key string, n int) error {
	if err := (message.Headed{Headers: map[string]string{abi.HeaderIdempotency: key}}).Put(&mailbox.Envelope{}); err != nil {
		return err
	}
	headers, ok := header.With(e.Headers, abi.HeaderIdempotency, key)
	if n > 1 && ok {
		headers, ok = header.With(headers, abi.HeaderAttempt, strconv.Itoa(n))
	}
	if !ok {
		return fmt.Errorf("host: an ask that is retried may have at most %d headers", abi.MaxHeaders-2)
	}
	e.SetHeaders(headers)
	return nil
}
