//go:build ignore

// Command gen writes the published schema.
package main

import (
	"log"
	"os"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/all"
)

func main() {
	if err := os.WriteFile("../../docs/bundle.schema.json", bundle.Schema(all.Kinds()...), 0o644); err != nil {
		log.Fatal(err)
	}
}
