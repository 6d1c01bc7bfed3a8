package bundle

import (
	"bytes"
	"encoding/json"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

//go:generate go run gen.go
//go:generate go test -count=1 -run ^TestReachesAreListed$ . -update

// Schema is the JSON Schema (draft 2020-12) of manifests that may grant these services.
func Schema(kinds ...service.Kind) []byte { return Words{}.Schema(kinds...) }

func schemaWith(w *Words, kinds []service.Kind) []byte {
	whole, actor := grammarOf(kinds)
	o := grammar.SchemaOptions{Words: w.named(), Variables: true}
	root := o.Schema(whole)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/wasmactors/wasmactors/docs/bundle.schema.json"
	root["title"] = "wasmactors bundle"
	root["$defs"] = map[string]any{actorName: o.Schema(actor)}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		panic(err) // maps of strings always encode
	}
	return b.Bytes()
}
