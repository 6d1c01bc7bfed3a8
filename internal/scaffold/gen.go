//go:build ignore

// Command gen packs the sources that a new bundle vendors: the guest SDK and the
// ABI, without tests. It is run by go generate; a test keeps the result current.
package main

import (
	"log"
	"os"

	"github.com/wasmactors/wasmactors/internal/scaffold"
)

func main() {
	data, err := scaffold.Pack("../..")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("sdk.json", data, 0o644); err != nil {
		log.Fatal(err)
	}
}
