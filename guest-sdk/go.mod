module github.com/wasmactors/wasmactors/guest-sdk

go 1.23

require github.com/wasmactors/wasmactors/abi v0.1.0
