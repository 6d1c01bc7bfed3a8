package host

import "github.com/wasmactors/wasmactors/host/setup"

// Turn is a turn of a message that has been run, before anything of it takes effect, see Config.WithFaults. Its fields: Actor,
// Incarnation, Number, Kind, Sender, Correlation, Payload.
type Turn = setup.Turn
