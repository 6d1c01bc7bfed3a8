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

// Verify checks the encoding of every value and returns what is wrong with it; nil: no check.
var Verify func(v any, written []byte) (why string)

// Loop is package actor's side of a native test, one entry at a time.
var Loop struct {
	// Types are the names that are registered.
	Types func() []string
	// Turn hands one envelope to an actor and returns what it leaves in the
	// outbox, valid until the next call. The actor's state is what the call
	// before has returned for it, nil before its start.
	Turn func(state any, envelope []byte) (next any, outbox []byte)
	// Actor is the Go value in a state.
	Actor func(state any) any
}

// Next ends the turn that is open, if one is, and begins the next.
func Next(outboxLen int) bool { return Current.Next(outboxLen) }

// Flush hands what is in the outbox to the host.
func Flush(outbox []byte) { Current.Flush(outbox) }

// Apart is the payload of this turn, if it is not in the inbox.
var Apart []byte

// Fetch fills b with the beginning of that payload.
func Fetch(b []byte) { copy(b, Apart) }

// Write hands commands, or parts of them, to the host, from where they are. They follow what was flushed.
func Write(b []byte) { Current.Flush(b) }

// Log writes one log entry.
func Log(level int, text []byte) { Current.Log(level, text) }

// Panic ends the turn with a text.
func Panic(text []byte) { Current.Panic(text) }

// Address has no meaning outside wasm.
func Address(unsafe.Pointer) uint32 { return 0 }
