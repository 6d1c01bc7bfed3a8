package host

import "github.com/wasmactors/wasmactors/abi"

// crowdedOut is how the reason of a failure begins that tellRefusal leads to.
const crowdedOut = "its mailbox is full of what was refused to it, see "

// crowded is an actor that was told to fail in a turn.
type crowded struct {
	actor abi.Ref
	turn  uint64
}
