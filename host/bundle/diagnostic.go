// Package bundle turns a folder with a manifest, bundle.yaml, into a tree of
// actors, and runs it.
//
// docs/bundle.md describes the manifest; docs/bundle.schema.json is made from the
// same table that the manifest is checked against.
package bundle

import (
	"time"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Diagnostic is one thing that is wrong with a manifest, and where. Its text is file:line:column and the message.
type Diagnostic = grammar.Diagnostic

// Diagnostics is all that is wrong with a manifest, in the order of the file. It is an error with a line for each.
type Diagnostics = grammar.Diagnostics

// ParseSize reads a size in bytes, such as 65536, 64KiB or 1.5MiB, as manifests write it.
func ParseSize(text string) (uint64, error) { return grammar.ParseSize(text) }

// ParseDuration reads a duration as manifests write it, such as 100ms, 1m30s or 0.
func ParseDuration(text string) (time.Duration, error) { return grammar.ParseDuration(text) }
