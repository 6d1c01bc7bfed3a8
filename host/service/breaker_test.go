package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// TestBreakersUseTheClock: breakers of services open and close in the time of the system, whatever that of the machine is.
func TestBreakersUseTheClock(t *testing.T) {
	clock := host.NewVirtualClock(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	b := service.NewBreakers(service.BreakerGrant{Failures: 3, Open: time.Hour, Probes: 2}, clock)
	state := func(want string) {
		t.Helper()
		if got := b.State("x"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	try := func(failed bool) {
		t.Helper()
		done, err := b.Allow("x")
		if err != nil {
			t.Fatal(err)
		}
		done(failed)
	}
	old, _ := b.Allow("x") // it ends when the circuit is another one
	try(true)
	try(true)
	try(false)
	try(true)
	try(true)
	state("closed") // three in a row are needed
	try(true)
	state("open")
	if _, err := b.Allow("x"); service.CodeOf(err) != service.Unavailable {
		t.Fatal(err)
	}
	if b.State("y") != "closed" {
		t.Fatal("another target is concerned")
	}
	clock.Advance(time.Hour - 1)
	state("open")
	clock.Advance(1)
	state("half-open")
	old(true)
	one, _ := b.Allow("x")
	two, _ := b.Allow("x")
	if _, err := b.Allow("x"); one == nil || two == nil || service.CodeOf(err) != service.Unavailable {
		t.Fatal("two requests may try it")
	}
	one(false)
	state("half-open")
	two(true)
	state("open")
	clock.Advance(time.Hour)
	try(false)
	try(false)
	state("closed")
	for i := range service.MostBreakers + 1 {
		done, err := b.Allow(fmt.Sprint("many", i))
		if err != nil {
			t.Fatal(err)
		}
		done(true)
	}
	off := service.NewBreakers(service.BreakerGrant{Off: true, Failures: 1}, clock)
	for range 3 {
		done, err := off.Allow("x")
		if err != nil {
			t.Fatal(err)
		}
		done(true)
	}
}
