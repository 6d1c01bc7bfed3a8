package grammar

// SchemaOptions are what a schema depends on besides the shape.
type SchemaOptions struct {
	Words     map[string][]string // as Checker.Words
	Variables bool                // texts and numbers with units may be variables, whose values the loader alone knows
}

const (
	sizePattern     = `^[0-9][0-9_.]* *(B|KiB|MiB|GiB|kB|MB|GB)?$`
	countPattern    = `^[0-9][0-9_.]* *[kMG]?$`
	durationPattern = `^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$`
	orVariable      = `|\$\{[A-Za-z_]`
)

// pattern is a pattern that a variable matches as well, where there are some.
func (o SchemaOptions) pattern(p string) string {
	if o.Variables {
		return p + orVariable
	}
	return p
}

// Schema is the JSON Schema (draft 2020-12) of a shape, as encoding/json writes it.
func (o SchemaOptions) Schema(s *Shape) map[string]any {
	m := map[string]any{}
	if s.Kind == Ref {
		m["$ref"] = "#/$defs/" + s.Name
		return m
	}
	if s.Doc != "" {
		m["description"] = s.Doc
	}
	switch s.Kind {
	case Text:
		m["type"] = "string"
		if s.Enum != nil {
			m["enum"] = s.texts(o.Words)
		}
		if s.Match != nil {
			m["pattern"] = o.pattern(s.Match.String())
		}
		if s.Not != nil {
			m["not"] = map[string]any{"enum": s.Not}
		}
	case Bool:
		if m["type"] = "boolean"; s.Enum != nil {
			delete(m, "type")
			values := []any{true, false}
			for _, text := range s.Enum {
				values = append(values, text)
			}
			m["enum"] = values
		}
	case Int, Number:
		m["type"] = map[Kind]string{Int: "integer", Number: "number"}[s.Kind]
		m["minimum"], m["maximum"] = s.Min, s.Max
		if s.Flag {
			m["type"] = []string{"integer", "boolean"}
		}
	case Size, Count:
		m["type"], m["minimum"], m["pattern"] = []string{"integer", "string"}, s.Min, o.pattern(map[Kind]string{Size: sizePattern, Count: countPattern}[s.Kind])
		if s.Max > 0 {
			m["maximum"] = s.Max
		}
	case Duration:
		m["type"], m["pattern"], m["maximum"] = []string{"integer", "string"}, o.pattern(durationPattern), 0
	case List:
		m["type"], m["items"] = "array", o.Schema(s.Of)
	case Mapping:
		m["type"], m["additionalProperties"] = "object", o.Schema(s.Of)
		if s.Key != nil {
			names := map[string]any{"pattern": s.Key.String()}
			if s.Not != nil {
				names["not"] = map[string]any{"enum": s.Not}
			}
			m["propertyNames"] = names
		}
	case Object:
		properties := map[string]any{}
		var need []string
		for _, f := range s.Fields {
			properties[f.Name] = o.Schema(f.Shape)
			if f.Required {
				need = append(need, f.Name)
			}
		}
		m["type"], m["properties"], m["additionalProperties"] = "object", properties, false
		if need != nil {
			m["required"] = need
		}
	case OwnKind:
		if s.Own.Schema != nil {
			s.Own.Schema(s, m, o)
		}
	}
	return m
}
