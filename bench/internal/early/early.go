// Package early lets hollywood and proto.actor live in one program: both register
// a protobuf message actor.PID, which the registry takes for a mistake. Neither looks
// the other's up. It imports nothing but os, so it is initialised before the registry.
package early

import "os"

var _ = os.Setenv("GOLANG_PROTOBUF_REGISTRATION_CONFLICT", "ignore")
