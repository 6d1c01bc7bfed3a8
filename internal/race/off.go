//go:build !race

// Package race tells tests whether the race detector watches them: it makes code ten times
// slower, and pools lose what they hold on purpose, so that allocations cannot be counted.
package race

// Enabled says whether the race detector is compiled in.
const Enabled = false
