module github.com/wasmactors/wasmactors/abi

go 1.23
