package breaker

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmactors/wasmactors/host"
)

// DoSync calls f in the goroutine of the caller, if the circuit lets it; if not, the error is an
// *OpenError. That f takes too long is noticed only when it has returned: it is a failure then, and an
// error with [ErrTimeout], for any result of f. A panic is a failure, and is propagated.
func (b *Breaker) DoSync(f func() error) error {
	call, err := b.begin()
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			b.end(call, bad)
		}
	}()
	err = f()
	returned = true
	if b.end(call, b.verdict(err)) == late {
		return fmt.Errorf("%w of %v", ErrTimeout, b.timeout())
	}
	return err
}

// Do calls f in a goroutine of its own, if the circuit lets it, and returns its error. It returns
// at the call timeout at the latest, with [ErrTimeout], and ends f's context then: f should return
// soon after. When ctx ends first it returns ctx's error, and the call counts neither as a success
// nor as a failure. A panic of f is a failure, and an error.
func (b *Breaker) Do(ctx context.Context, f func(ctx context.Context) error) error {
	_, err := Call(ctx, b, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// Call is [Breaker.Do] with a result.
func Call[T any](ctx context.Context, b *Breaker, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	call, err := b.begin()
	if err != nil {
		return none, err
	}
	type result struct {
		v   T
		err error
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan struct{})
	if d := b.timeout(); d != NoTimeout {
		timer := b.clock.AfterFunc(d, func() { close(over) })
		defer timer.Stop()
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("breaker: the call has panicked: %v\n%s", p, debug.Stack())
			}
			done <- r
		}()
		r.v, r.err = f(inner)
	}()
	select {
	case r := <-done:
		if b.end(call, b.verdict(r.err)) == late {
			break
		}
		return r.v, r.err
	case <-over:
		b.end(call, late)
	case <-ctx.Done():
		b.end(call, abandoned)
		return none, ctx.Err()
	}
	err = fmt.Errorf("%w of %v", ErrTimeout, b.timeout())
	cancel(err)
	return none, err
}

// Ask is [host.System.Ask] through a breaker, for code that is not an actor.
func Ask(ctx context.Context, b *Breaker, sys *host.System, to host.Ref, v any) (host.Message, error) {
	return Call(ctx, b, func(ctx context.Context) (host.Message, error) {
		return sys.Ask(ctx, to, v)
	})
}
