// Package thorough is for tests: it tells whether they try in full what they otherwise try less of.
// Set WASMACTORS_THOROUGH=1 for that; `make thorough` does.
package thorough

import "os"

// Enabled is whether to try everything, for minutes.
var Enabled = os.Getenv("WASMACTORS_THOROUGH") != ""

// Of is full if Enabled, and usual otherwise.
func Of[T any](usual, full T) T {
	if Enabled {
		return full
	}
	return usual
}
