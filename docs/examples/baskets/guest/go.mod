module baskets

go 1.23

require (
	github.com/wasmactors/wasmactors/abi v0.1.0
	github.com/wasmactors/wasmactors/guest-sdk v0.1.0
)

replace (
	github.com/wasmactors/wasmactors/abi => ../../../../abi
	github.com/wasmactors/wasmactors/guest-sdk => ../../../../guest-sdk
)
