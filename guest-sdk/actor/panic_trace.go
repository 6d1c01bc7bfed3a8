//go:build !tinygo && (wasmactors_trace || !wasip1)

package actor

import "runtime"

// appendTrace adds the lines of the Go code, behind an empty line.
func appendTrace(text []byte) []byte {
	text = append(text, "\n\n"...)
	room := make([]byte, 8192)
	return append(text, room[:runtime.Stack(room, false)]...)
}
