//go:build !linux

package cache

// largePages does nothing where the system does not take the hint.
func largePages([]byte) {}
