//go:build !tinygo

package actor

import (
	"runtime"

	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
)

// report tells the host of a panic, with the stack of the Go code. The host
// replaces the instance's state, so nothing is lost by recovering here.
func report() {
	r := recover()
	if r == nil {
		return
	}
	text := append(make([]byte, 0, 8192), panicText(r)...)
	text = append(text, "\n\n"...)
	n := runtime.Stack(text[len(text):cap(text)], false)
	bridge.Panic(text[:len(text)+n])
}

// panicText describes the value of a panic without package fmt.
func panicText(r any) string {
	switch v := r.(type) {
	case error:
		return v.Error()
	case string:
		return v
	case interface{ String() string }:
		return v.String()
	}
	return "panic with a value that is neither a string nor an error"
}
