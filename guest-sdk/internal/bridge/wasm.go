//go:build wasip1

// Package bridge is the border to the host: the imports of a guest, or, in
// native tests, whatever stands in for them.
package bridge

import "unsafe"

//go:wasmimport wasmactors next
func next(outboxLen uint32) uint32

//go:wasmimport wasmactors flush
func flush(outboxLen uint32)

//go:wasmimport wasmactors fetch
func fetch(to unsafe.Pointer, offset, n uint32)

//go:wasmimport wasmactors write
func write(from unsafe.Pointer, n uint32)

//go:wasmimport wasmactors log
func logText(level uint32, ptr unsafe.Pointer, n uint32)

//go:wasmimport wasmactors panic
func panicText(ptr unsafe.Pointer, n uint32)

// Next ends the turn that is open, if one is, and begins the next.
func Next(outboxLen int) bool { return next(uint32(outboxLen)) != 0 }

// Flush hands what is in the outbox to the host.
func Flush(outbox []byte) { flush(uint32(len(outbox))) }

// Fetch fills b with the beginning of the payload of this turn, which is not in the inbox.
func Fetch(b []byte) { fetch(unsafe.Pointer(unsafe.SliceData(b)), 0, uint32(len(b))) }

// Write hands commands, or parts of them, to the host, from where they are. They follow what was flushed.
func Write(b []byte) { write(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))) }

// Log writes one log entry.
func Log(level int, text []byte) {
	if len(text) > 0 {
		logText(uint32(level), unsafe.Pointer(&text[0]), uint32(len(text)))
	}
}

// Panic ends the turn with a text; it does not return.
func Panic(text []byte) {
	if len(text) == 0 {
		text = []byte("panic")
	}
	panicText(unsafe.Pointer(&text[0]), uint32(len(text)))
	panic("unreachable")
}

// Address is where a value lies in the guest's memory.
func Address(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }
