//go:build ignore

// Command gen writes the published schema.
package main

import (
	"log"
	"os"

	"github.com/wasmactors/wasmactors/host/scenario"
)

func main() {
	if err := os.WriteFile("../../docs/scenario.schema.json", scenario.Schema(), 0o644); err != nil {
		log.Fatal(err)
	}
}
