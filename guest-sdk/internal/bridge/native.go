//go:build !wasip1

// Package bridge is the border to the host: the imports of a guest, or, in
// native tests, whatever stands in for them.
package bridge

import "unsafe"

// Host is what stands in for the host in native tests.
type Host interface {
	Next(outboxLen int) bool
	Flush(outbox []byte)
	Log(level int, text []byte)
	Panic(text []byte)
}

// Current is the host of the test that runs; see package actortest.
var Current Host

// Next ends the turn that is open, if one is, and begins the next.
func Next(outboxLen int) bool { return Current.Next(outboxLen) }

// Flush hands what is in the outbox to the host.
func Flush(outbox []byte) { Current.Flush(outbox) }

// Log writes one log entry.
func Log(level int, text []byte) { Current.Log(level, text) }

// Panic ends the turn with a text.
func Panic(text []byte) { Current.Panic(text) }

// Address has no meaning outside wasm.
func Address(unsafe.Pointer) uint32 { return 0 }
