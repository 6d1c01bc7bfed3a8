package bundle

import (
	"bytes"
	"encoding/json"

	"github.com/wasmactors/wasmactors/host/service"
)

//go:generate go run gen.go
//go:generate go test -count=1 -run ^TestReachesAreListed$ . -update

// Schema is the JSON Schema (draft 2020-12) of manifests that may grant these services.
func Schema(kinds ...service.Kind) []byte { return Words{}.Schema(kinds...) }

func schemaWith(w *Words, kinds []service.Kind) []byte {
	whole, actor := grammarOf(kinds)
	root := schemaOf(whole, w)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://github.com/wasmactors/wasmactors/docs/bundle.schema.json"
	root["title"] = "wasmactors bundle"
	root["$defs"] = map[string]any{"actor": schemaOf(actor, w)}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		panic(err) // maps of strings always encode
	}
	return b.Bytes()
}

func schemaOf(s *shape, w *Words) map[string]any {
	m := map[string]any{}
	if s.doc != "" {
		m["description"] = s.doc
	}
	switch s.kind {
	case kindRef:
		return map[string]any{"$ref": "#/$defs/actor"}
	case kindText:
		m["type"] = "string"
		if s.enum != nil {
			m["enum"] = s.texts(w)
		}
		if s.match != nil {
			m["pattern"] = s.match.String() + orVariable
		}
		if s.not != nil {
			m["not"] = map[string]any{"enum": s.not}
		}
	case kindBool:
		if m["type"] = "boolean"; s.enum != nil {
			delete(m, "type")
			values := []any{true, false}
			for _, text := range s.enum {
				values = append(values, text)
			}
			m["enum"] = values
		}
	case kindInt, kindNumber:
		m["type"] = map[kind]string{kindInt: "integer", kindNumber: "number"}[s.kind]
		m["minimum"], m["maximum"] = s.min, s.max
		if s.flag {
			m["type"] = []string{"integer", "boolean"}
		}
	case kindSize:
		m["type"], m["minimum"], m["pattern"] = []string{"integer", "string"}, s.min, `^[0-9][0-9_.]* *(B|KiB|MiB|GiB|kB|MB|GB)?$`+orVariable
		if s.max > 0 {
			m["maximum"] = s.max
		}
	case kindCount:
		m["type"], m["minimum"], m["pattern"] = []string{"integer", "string"}, s.min, `^[0-9][0-9_.]* *[kMG]?$`+orVariable
		if s.max > 0 {
			m["maximum"] = s.max
		}
	case kindDuration:
		m["type"], m["pattern"] = []string{"integer", "string"}, `^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`+orVariable
		m["maximum"] = 0
	case kindList:
		m["type"], m["items"] = "array", schemaOf(s.of, w)
	case kindMapping:
		m["type"], m["additionalProperties"] = "object", schemaOf(s.of, w)
		if s.key != nil {
			names := map[string]any{"pattern": s.key.String()}
			if s.not != nil {
				names["not"] = map[string]any{"enum": s.not}
			}
			m["propertyNames"] = names
		}
	case kindObject:
		properties := map[string]any{}
		var need []string
		for _, f := range s.fields {
			properties[f.name] = schemaOf(f.shape, w)
			if f.required {
				need = append(need, f.name)
			}
		}
		m["type"], m["properties"], m["additionalProperties"] = "object", properties, false
		if need != nil {
			m["required"] = need
		}
	}
	return m
}

// orVariable lets a text be a variable, whose value the loader alone knows.
const orVariable = `|\$\{[A-Za-z_]`
