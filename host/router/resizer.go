package router

import (
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/host"
)

// Resizer decides how many routees a pool has, from how many of them are under pressure. It
// is the default resizer of Akka 2.4.
type Resizer struct {
	Lower, Upper int // bounds of the routees
	// Pressure says when a routee is under pressure: 0, when it is busy; 1, when it is busy and
	// something waits; n above 1, when n messages or more wait.
	Pressure int
	// RampUp is the part of the routees that is added when all are under pressure, rounded up.
	RampUp float64
	// BackoffThreshold is the fraction of routees under pressure below which some are removed:
	// the fraction BackoffRate of them, rounded up. If either is 0, none is removed.
	BackoffThreshold, BackoffRate float64
	// Every is the number of messages between two decisions. The first message causes one, too.
	Every int
}

// DefaultResizer has Akka's defaults: 1 to 10 routees, decided every 10 messages; a fifth
// more when all are busy and have something waiting, a tenth less when fewer than 0.3 have.
func DefaultResizer() Resizer {
	return Resizer{Lower: 1, Upper: 10, Pressure: 1, RampUp: 0.2, BackoffThreshold: 0.3, BackoffRate: 0.1, Every: 10}
}

// Check says what is wrong with the parameters, and nil if nothing is.
func (r Resizer) Check() error {
	switch {
	case r.Lower < 1:
		return fmt.Errorf("router: a resizer's lower bound of %d, must be at least 1", r.Lower)
	case r.Upper < r.Lower || r.Upper > MaxRoutees:
		return fmt.Errorf("router: a resizer's upper bound of %d, must be from the lower bound, %d, to %d", r.Upper, r.Lower, MaxRoutees)
	case r.Pressure < 0:
		return fmt.Errorf("router: a resizer's pressure of %d, must be at least 0", r.Pressure)
	case !(r.RampUp >= 0 && r.RampUp <= 100):
		return fmt.Errorf("router: a resizer's ramp-up of %v, must be from 0 to 100", r.RampUp)
	case !(r.BackoffThreshold >= 0 && r.BackoffThreshold <= 1):
		return fmt.Errorf("router: a resizer's backoff threshold of %v, must be from 0 to 1", r.BackoffThreshold)
	case !(r.BackoffRate >= 0 && r.BackoffRate <= 1):
		return fmt.Errorf("router: a resizer's backoff rate of %v, must be from 0 to 1", r.BackoffRate)
	case r.Every < 1:
		return fmt.Errorf("router: a resizer's interval of %d messages, must be at least 1", r.Every)
	}
	return nil
}

// Presses reports whether a routee with this load is under pressure.
func (r Resizer) Presses(l host.Load) bool {
	switch {
	case !l.Open:
		return false
	case r.Pressure == 0:
		return l.Running || l.Waiting > 0
	}
	return l.Waiting >= r.Pressure
}

// Change is by how much a pool of n routees grows, or (if negative) shrinks, when pressed of them are under
// pressure.
func (r Resizer) Change(pressed, n int) int {
	change := 0
	if pressed >= n {
		change = int(math.Ceil(r.RampUp * float64(n)))
	}
	if n > 0 && r.BackoffThreshold > 0 && r.BackoffRate > 0 && float64(pressed)/float64(n) < r.BackoffThreshold {
		change += int(math.Floor(-r.BackoffRate * float64(n)))
	}
	return min(max(n+change, r.Lower), r.Upper) - n
}

// change is Change for the routees that there are.
func (r Resizer) change(routees []Routee) int {
	pressed := 0
	for i := range routees {
		if l, alive := routees[i].Load(); alive && r.Presses(l) {
			pressed++
		}
	}
	return r.Change(pressed, len(routees))
}
