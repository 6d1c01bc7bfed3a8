// Package resilience is what actors and other code in Go do about others that fail, are slow, or get too
// much: see docs/guide/circuit-breaker.md, throttler.md, reliable.md, interceptors.md and extensions.md.
package resilience

import (
	"context"
	"log/slog"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/breaker"
	"github.com/wasmactors/wasmactors/host/reliable"
	"github.com/wasmactors/wasmactors/host/throttle"
)

// Prices guards a source of prices for any number of goroutines.
type Prices struct {
	circuit *breaker.Breaker
	source  func(ctx context.Context, item string) (int, error)
}

// NewPrices leaves the source alone after three failures in a row: for 10 s, then 20, then 40, 60 at most.
func NewPrices(clock host.Clock, source func(ctx context.Context, item string) (int, error)) (*Prices, error) {
	b, err := breaker.New(clock, breaker.Settings{
		MaxFailures: 3, CallTimeout: time.Second,
		ResetTimeout: 10 * time.Second, Backoff: 2, MaxReset: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	b.OnOpen(func() { slog.Warn("the prices are left alone") })
	return &Prices{b, source}, nil
}

// Of fails at once while the circuit is open, and after a second at the latest.
func (p *Prices) Of(ctx context.Context, item string) (int, error) {
	return breaker.Call(ctx, p.circuit, func(ctx context.Context) (int, error) { return p.source(ctx, item) })
}

// Guarded stands before a target: who would ask that one asks this one.
func Guarded(target host.Ref) host.Props {
	return breaker.NewProxy(target, breaker.Settings{MaxFailures: 3, CallTimeout: time.Second}).
		WithOpenConverter(func(r breaker.Refused) any { return map[string]any{"retry": r.Remaining.String()} }).
		Props()
}

// Paced passes on three messages a second; 100 may wait.
func Paced(target host.Ref) host.Props {
	return throttle.New(target, throttle.Rate{N: 3, Per: time.Second}).WithQueue(100, 1<<20).Props()
}

// Surely delivers to a path what it is told, over crashes of who has told it and of the target.
func Surely(path string, unsent func([]reliable.Unsent)) host.Props {
	return reliable.To(path, reliable.Settings{RetryAfter: time.Second, Messages: 10_000}).
		WithReconnect(5*time.Second, 0).WithUnsent(unsent).Props()
}

// Ledger is a target in Go: it enters each text once.
type Ledger struct {
	in      reliable.Receiver
	Entered []string
}

// Receive implements host.Actor.
func (l *Ledger) Receive(ctx *host.Context, m host.Message) error {
	if !l.in.Accept(ctx, m) {
		return nil // it was entered before, or comes again
	}
	var text string
	if err := m.Decode(&text); err != nil {
		return err
	}
	l.Entered = append(l.Entered, text)
	return nil
}

// Timed logs how long each message takes, outside of what others put around the actor.
func Timed(log *slog.Logger, p host.Props) host.Props {
	return p.WithInterceptors(func(next host.Receive) host.Receive {
		return func(ctx *host.Context, m host.Message) error {
			begun := time.Now()
			err := next(ctx, m)
			log.Debug("handled", "actor", ctx.Self().Path(), "took", time.Since(begun), "error", err)
			return err
		}
	})
}

// Rates are the rates of exchange that all actors of a system share.
var Rates = host.NewExtension("rates", openRates, func(_ context.Context, r *Table) error { return r.Close() })

// Convert uses them in an actor: the first one that does opens them.
func Convert(ctx *host.Context, m host.Message) error {
	rates, err := Rates.Get(ctx.System())
	if err != nil {
		return err
	}
	var dollars float64
	if err := m.Decode(&dollars); err != nil {
		return err
	}
	return ctx.Reply(dollars * rates.Euro)
}

// Table stands for something that is dear to open.
type Table struct {
	Euro   float64
	Closed bool
}

func openRates(*host.System) (*Table, error) { return &Table{Euro: 0.9}, nil }

// Close gives it back.
func (t *Table) Close() error { t.Closed = true; return nil }
