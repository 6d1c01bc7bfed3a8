package observe

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of what this package has as JSON: a definition
// ("$defs") of each type's name. Objects may get more fields within a Version.
func Schema() []byte { return slices.Clone(schema) }
