package grammar

// How shapes are written.

// Whole is a whole number between two bounds.
func Whole(doc string, least, most float64) *Shape {
	return &Shape{Kind: Int, Doc: doc, Min: least, Max: most}
}

// Enumerated is a text that is one of some.
func Enumerated(doc string, values ...string) *Shape {
	return &Shape{Kind: Text, Doc: doc, Enum: values}
}

// Flags is true or false.
func Flags(doc string) *Shape { return &Shape{Kind: Bool, Doc: doc} }

// Span is a duration.
func Span(doc string) *Shape { return &Shape{Kind: Duration, Doc: doc} }

// ListOf is a list.
func ListOf(doc string, of *Shape) *Shape { return &Shape{Kind: List, Doc: doc, Of: of} }

// ObjectOf is a mapping with keys that are known.
func ObjectOf(doc string, fields ...Field) *Shape {
	return &Shape{Kind: Object, Doc: doc, Fields: fields}
}

// Optional is a key that may be there.
func Optional(name string, s *Shape) Field { return Field{Name: name, Shape: s} }

// Required is a key that must be there.
func Required(name string, s *Shape) Field { return Field{Name: name, Required: true, Shape: s} }

// Or allows texts beside true and false.
func (s *Shape) Or(texts ...string) *Shape { s.Enum = texts; return s }

// OrFlag allows true and false beside a whole number.
func (s *Shape) OrFlag() *Shape { s.Flag = true; return s }

// But forbids texts that the rule of a text or of a mapping's keys would allow.
func (s *Shape) But(texts ...string) *Shape { s.Not = texts; return s }
