package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type settings

// settings are the arguments in bundle.yaml. After a change run go generate.
type settings struct {
	Start int64 `cbor:"start"`
}
