module github.com/wasmactors/wasmactors/tools

go 1.25.0

// What the repository checks itself with is not released: it always takes the sources beside it.
replace (
	github.com/wasmactors/wasmactors => ../
	github.com/wasmactors/wasmactors/abi => ../abi
	github.com/wasmactors/wasmactors/guest-sdk => ../guest-sdk
)

require (
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/wasmactors/wasmactors v0.0.0
	github.com/wasmactors/wasmactors/abi v0.1.0
	github.com/wasmactors/wasmactors/guest-sdk v0.1.0
	golang.org/x/mod v0.36.0
	golang.org/x/sys v0.47.0
	golang.org/x/tools v0.45.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/tetratelabs/wazero v1.12.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sync v0.21.0 // indirect
)
