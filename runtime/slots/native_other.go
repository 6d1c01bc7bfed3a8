//go:build !linux || !(amd64 || arm64)

package slots

// newNative says that this platform has nothing better than Go's heap.
func newNative(Options) backing { return nil }
