//go:build !linux || !(amd64 || arm64) || portable

package slots

import "testing"

// TestPortablePath: nothing else is here.
func TestPortablePath(t *testing.T) { isPortable(t, Options{}, true) }
