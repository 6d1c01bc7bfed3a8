//go:build !race

// Package race tells whether the race detector is there, for tests and limits of time: it makes code ten times
// slower, and pools lose what they hold on purpose, so that allocations cannot be counted.
package race

// Enabled says whether the race detector is compiled in.
const Enabled = false
