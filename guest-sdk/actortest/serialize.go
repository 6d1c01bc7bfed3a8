//go:build !wasip1

package actortest

import (
	"testing"

	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// SerializeMessages has, until the test ends, everything read again that actors send: a turn fails whose message
// cannot be read by its own type, or is another one then, as when a field is not written. It is for all actors of the
// process.
func SerializeMessages(t testing.TB) {
	had := bridge.SerializeMessages
	bridge.SerializeMessages = true
	t.Cleanup(func() { bridge.SerializeMessages = had })
}
