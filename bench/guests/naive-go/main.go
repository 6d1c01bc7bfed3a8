//go:build wasip1

// The Go guest that a host without an ABI would write: one export a message,
// one host call an answer.
package main

import "unsafe"

//go:wasmimport env send
func send(to int32, ptr unsafe.Pointer, n int32)

var buf [4096]byte

//go:wasmexport buffer
func buffer() int32 { return int32(uintptr(unsafe.Pointer(&buf[0]))) }

//go:wasmexport receive
func receive(from, ptr, n int32) { send(from, unsafe.Pointer(&buf[0]), n) }

//go:wasmexport crash
func crash() { panic("crash") }

func main() {}
