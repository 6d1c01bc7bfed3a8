//go:build race

package race

// Enabled says whether the race detector is compiled in.
const Enabled = true
