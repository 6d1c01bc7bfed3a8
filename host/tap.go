package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/look"
)

// Tapped is a message of an actor that is tapped: one whose turn has ended, or failed, or one that such a turn sends.
// Messages that a failed turn would have sent are not reported. Its fields: Actor, Incarnation, Turn, Time, Out, Kind,
// Forward, Peer, Path, Correlation, Payload (a part), Size (of all of it), Failure.
type Tapped = look.Tapped

// directoryOf is how observers find actors.
type directoryOf struct{ sys *System }

func (d directoryOf) RefOf(uid abi.Ref) Ref  { return d.sys.refOf(uid) }
func (d directoryOf) Lives(uid abi.Ref) bool { return d.sys.here(uid) != nil }
