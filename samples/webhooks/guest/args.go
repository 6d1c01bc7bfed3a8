package main

import (
	"errors"
	"strconv"
	"time"
)

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type queueArgs,intakeArgs,deliveryArgs

// queueArgs are the queue's args in the manifest.
type queueArgs struct {
	Open     int64         `cbor:"open,required"` // jobs at a time
	Dead     int64         `cbor:"dead,required"` // dead letters
	Attempts int64         `cbor:"attempts,required"`
	First    time.Duration `cbor:"first,required"`    // pause after the first attempt
	Longest  time.Duration `cbor:"longest,required"`  // pause
	Lease    time.Duration `cbor:"lease,required"`    // how long a worker may have a job
	Remember time.Duration `cbor:"remember,required"` // how long a delivery is known after it was accepted, and after it was delivered
}

func (a *queueArgs) check() error {
	return errors.Join(
		number("open", a.Open, 100_000), number("dead", a.Dead, 100_000), number("attempts", a.Attempts, 1000),
		duration("first", a.First, time.Hour), duration("longest", a.Longest, 24*time.Hour),
		duration("lease", a.Lease, 24*time.Hour), duration("remember", a.Remember, 366*24*time.Hour),
	)
}

// intakeArgs are those of an intake.
type intakeArgs struct {
	Tolerance time.Duration `cbor:"tolerance,required"` // how far from now a hook may say that it was sent
}

func (a *intakeArgs) check() error { return duration("tolerance", a.Tolerance, time.Hour) }

// deliveryArgs are those of the supervisor of the workers.
type deliveryArgs struct {
	Workers int64         `cbor:"workers,required"`
	Timeout time.Duration `cbor:"timeout,required"` // of a delivery
}

func (a *deliveryArgs) check() error {
	return errors.Join(number("workers", a.Workers, mostWorkers), duration("timeout", a.Timeout, time.Hour))
}

func number(key string, n, most int64) error {
	if n < 1 || n > most {
		return errors.New("args." + key + " is " + strconv.FormatInt(n, 10) + ", and must be from 1 to " + strconv.FormatInt(most, 10))
	}
	return nil
}

func duration(key string, d, most time.Duration) error {
	if d < time.Millisecond || d > most {
		return errors.New("args." + key + " is " + d.String() + ", and must be from 1ms to " + most.String())
	}
	return nil
}
