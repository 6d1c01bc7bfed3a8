//go:build !wasm

package mapped

// marking is not known here.
func marking() bool { return false }
