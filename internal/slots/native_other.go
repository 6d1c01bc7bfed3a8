//go:build !linux || !(amd64 || arm64) || portable

package slots

// newNative reports that this platform has nothing better than Go's heap. The build tag portable
// makes Linux such a platform, so that all tests can run as they do elsewhere.
func newNative(Options) backing { return nil }

// No image is mapped here.
type (
	file  struct{}
	files struct{}
)
