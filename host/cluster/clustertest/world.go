// Package clustertest has the tests that every directory, link and log of a cluster must pass, and those of package cluster under
// faults: over the simulated world of package simnet.
package clustertest

import "github.com/wasmactors/wasmactors/host/cluster/simnet"

// The simulated world.
type (
	World   = simnet.World
	Machine = simnet.Machine
	Faults  = simnet.Faults
)

// New is a world without machines.
func New(seed uint64) *World { return simnet.New(seed) }

// ErrDirectory is what the directory answers when it is not known what it has done.
var ErrDirectory = simnet.ErrDirectory
