package host

import (
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/ref"
)

// Ref is an immutable handle of one incarnation of an actor; the zero value names no actor. Its methods:
// UID, Path, Name, URI, String, Equal, Compare, IsZero.
type Ref = ref.Ref

// newRef is the ref of a number and a full path.
func newRef(uid abi.Ref, uri string) Ref { return ref.Of(uid, uri) }
