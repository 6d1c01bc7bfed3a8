//go:build !wasm || !gc || tinygo

package abi

import "unsafe"

// ReadStruct reads nothing here: structs are read by generated code alone.
func ReadStruct(*Reader, unsafe.Pointer, *Place) Reading { return ReadNot }

// WriteStruct writes nothing here: structs are written by generated code alone.
func WriteStruct(*Writer, unsafe.Pointer, *Place) bool { return false }
