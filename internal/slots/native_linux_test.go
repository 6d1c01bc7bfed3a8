//go:build linux && (amd64 || arm64) && !portable

package slots

import "testing"

// TestFastPath: this platform has it, unless asked otherwise.
func TestFastPath(t *testing.T) {
	isPortable(t, Options{}, false)
	isPortable(t, Options{Portable: true}, true)
}
