package ask

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// Retry says how a question is asked again. Zero fields mean the defaults.
type Retry struct {
	// Attempts bounds the attempts, the first one included. Default 5.
	Attempts int
	// Within bounds all attempts and the waits between them together. Default 30 s.
	Within time.Duration
	// Each bounds one attempt. Default: what is left of Within.
	Each time.Duration
	// Wait is how long to wait after attempt n, from 1. Default: Doubling(10 ms, 1 s).
	Wait func(ctx *actor.Context, n int) time.Duration
	// On says after which failures the question is asked again. Default: none, since it may have been
	// handled. The actor that is asked must be able to recognise repetitions by the key.
	On func(*Error) bool
	// Key is the same in all attempts, in the header idempotency-key. Default: a random one.
	Key string
}

// Doubling waits a random time up to least after the first attempt, then up to twice that, and so on up to most;
// up to most from the first one on if least is 0 or less.
func Doubling(least, most time.Duration) func(*actor.Context, int) time.Duration {
	return func(ctx *actor.Context, n int) time.Duration {
		d := most
		if top := least << (n - 1); least > 0 && top>>(n-1) == least { // it has not overflowed
			d = min(d, top)
		}
		if d <= 0 {
			return 0
		}
		return time.Duration(ctx.Rand().Uint64() % uint64(d))
	}
}

// retry is a question under way.
type retry struct {
	Retry
	to   actor.Ref
	v    actor.Raw
	n    int
	end  time.Time
	then func(ctx *actor.Context, m *actor.Message, err error) error
}

// Again asks, and asks again after the failures that r.On accepts, and calls then once: with the answer, or with the
// last attempt's failure, an *Error; m is nil then. A wait that would not end in time is not begun.
func Again(ctx *actor.Context, to actor.Ref, v actor.Encoder, r Retry, then func(ctx *actor.Context, m *actor.Message, err error) error) {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.Within <= 0 {
		r.Within = 30 * time.Second
	}
	if r.Wait == nil {
		r.Wait = Doubling(10*time.Millisecond, time.Second)
	}
	if r.Key == "" {
		r.Key = strconv.FormatUint(uint64(ctx.Self()), 36) + "-" + strconv.FormatUint(ctx.Rand().Uint64(), 36)
	}
	var w abi.Writer
	if v == nil {
		v = actor.Null
	}
	v.MarshalCBOR(&w)
	(&retry{Retry: r, to: to, v: append(actor.Raw{}, w.Bytes()...), end: ctx.Now().Add(r.Within), then: then}).attempt(ctx)
}

func (r *retry) attempt(ctx *actor.Context) {
	r.n++
	timeout := r.end.Sub(ctx.Now())
	if r.Each > 0 {
		timeout = min(timeout, r.Each)
	}
	timeout = max(timeout, abi.MinAskTimeout)
	headers := [2]actor.Header{{Key: abi.HeaderIdempotency, Value: r.Key}, {Key: abi.HeaderAttempt, Value: strconv.Itoa(r.n)}}
	ctx.AskWith(r.to, r.v, timeout, func(ctx *actor.Context, m *actor.Message) error {
		err := failure(m, r.to, timeout)
		if err == nil {
			return r.then(ctx, m, nil)
		}
		if r.n < r.Attempts && r.On != nil && r.On(err) {
			wait := max(r.Wait(ctx, r.n), 0)
			if ctx.Now().Add(wait).Before(r.end) {
				ctx.Wait(wait, func(ctx *actor.Context, _ *actor.Message) error { r.attempt(ctx); return nil })
				return nil
			}
		}
		return r.then(ctx, nil, err)
	}, headers[:min(r.n, 2)]...)
}
