//go:build !linux

package sandbox

// readThread is the threadTime of this platform.
func readThread() (ns int64, thread int, ok bool) { return 0, 0, false }
