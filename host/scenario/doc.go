// Package scenario runs the scenario files of a bundle: YAML that says what is sent to its actors,
// what must come of it, how time passes and what fails. docs/guide/scenarios.md describes them,
// docs/scenario.schema.json is made from the table that they are checked against.
//
// A scenario has a system of its own, whose turns run within the goroutine of [Stage.Run] and
// whose time is virtual: nothing sleeps, and a seed always gives the same run. Services are
// the real ones, but none reaches the network or keeps anything: requests to web servers are
// answered as the scenario states.
package scenario

//go:generate go run gen.go

import "time"

// Bounds of what a file may say, and of what is kept of a run.
const (
	MaxFile      = 1 << 20 // bytes
	MaxScenarios = 1000    // in a file
	MaxSteps     = 10_000  // in a scenario
	MaxAdvance   = 100 * 365 * 24 * time.Hour

	// DefaultWithin is how long an expectation waits at most, in virtual time.
	DefaultWithin = 3 * time.Second
	// DefaultTimeout is how long a scenario may take, in real time.
	DefaultTimeout = 30 * time.Second
	// DefaultRun is how long a simulated run may take, in real time: for runs that hang. Runs without an end are found by
	// counting turns.
	DefaultRun = 5 * time.Minute
	// DefaultSeed is the seed of scenarios that state none.
	DefaultSeed = 1
)

// DefaultStart is the time at which scenarios begin if they state none.
var DefaultStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
