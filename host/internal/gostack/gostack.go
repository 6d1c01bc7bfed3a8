// Package gostack prints the stack of a panic.
package gostack

import (
	"runtime"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Text is the calling goroutine's stack as text, as much of it as a failure tells. To print it is nearly all that
// a panic of an actor in Go costs, and debug.Stack prints it anew into twice the room until it
// fits, mostly three times.
func Text() string {
	room := stacks.Get().(*[abi.MaxReason]byte)
	defer stacks.Put(room)
	return printable.Clip(string(room[:runtime.Stack(room[:], false)]), abi.MaxReason)
}

var stacks = sync.Pool{New: func() any { return new([abi.MaxReason]byte) }}
