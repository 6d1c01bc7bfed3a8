package host

import (
	"time"

	"github.com/wasmactors/wasmactors/host/setup"
	"github.com/wasmactors/wasmactors/internal/clock"
)

// Clock is where a system gets the time from; see [RealClock] and [NewVirtualClock].
type Clock = clock.Clock

// VirtualClock stands still until it is advanced.
type VirtualClock = clock.Virtual

// RealClock is the machine's clock.
func RealClock() Clock { return clock.Real() }

// NewVirtualClock is a clock for tests and simulations.
func NewVirtualClock(start time.Time) *VirtualClock { return clock.NewVirtual(start) }

// Defaults of [Config].
const (
	DefaultThroughput  = setup.DefaultThroughput
	DefaultDeadLetters = setup.DefaultDeadLetters
	DefaultDeadBytes   = setup.DefaultDeadBytes
	DefaultStopGrace   = setup.DefaultStopGrace
	DefaultIdleAfter   = setup.DefaultIdleAfter
	DefaultPinned      = setup.DefaultPinned

	DefaultLoggedDeadLetters = setup.DefaultLoggedDeadLetters
)

// Config says how a [System] works. It is immutable: every With method returns a
// changed copy. Begin with [NewConfig]. Package setup has its methods.
type Config = setup.Config[SpawnOptions, AnyExtension]

// settings are what a Config says.
type settings = setup.Parts[SpawnOptions, AnyExtension]

// NewConfig is the configuration of a system of this name: the machine's clock,
// a secret from the operating system, a worker a core. The name must be valid as an actor's name.
func NewConfig(name string) Config { return setup.New[SpawnOptions, AnyExtension](name) }
