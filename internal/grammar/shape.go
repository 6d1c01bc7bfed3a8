// Package grammar describes what YAML files look like. A file is checked against its shape, its JSON Schema is made from it, and errors
// say where in the file they are. Manifests, what services add to them, and scenarios are described so.
package grammar

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Shape describes a value.
type Shape struct {
	Kind   Kind
	Doc    string
	Fields []Field  // object
	Of     *Shape   // list: its elements; mapping: its values
	Enum   []string // text: one of these; bool: what else it can be
	Words  string   // text with an enum: the name of further values, see Checker.Words
	Filled bool     // text: it is not empty
	Key    *Rule    // mapping: its keys
	Match  *Rule    // text
	What   string   // text, mapping: what Match and Key stand for, in words
	Flag   bool     // int: or true or false
	Not    []string // text, mapping: texts that Match or Key allows, but that are refused
	Min    float64  // int, number, size, count
	Max    float64  // of these, and of a duration, in nanoseconds; 0: no limit
	Own    *Own     // own
	Self   func() *Shape
	Name   string // ref: what the schema calls it

	Reach    Reach                        // text, and a list that is a command: what it names outside; a text needs it unless it has an enum
	KeyReach Reach                        // mapping: the same of its keys
	Writes   func(object *yaml.Node) bool // path: whether the object that it is in lets it be written to; nil: it does not
	As       string                       // path: the key beside it that says what it is called in the guest
}

// Reach is what a text names outside of the bundle, see package service.
type Reach string

// Field is a key of an object. Index is for who makes shapes from structs.
type Field struct {
	Name     string
	Required bool
	Shape    *Shape
	Index    int
}

// Kind is the kind of value that a [Shape] describes.
type Kind uint8

// The kinds of values.
const (
	Any      Kind = iota
	Text          // Enum, Match
	Bool          // Enum
	Int           // Min, Max
	Number        // Min, Max
	Size          // Min, Max
	Count         // Min, Max
	Duration      // Max
	List          // Of
	Mapping       // Of, Key
	Object        // Fields
	Ref           // Self() is the shape: for recursion
	OwnKind       // Own
)

// Own is a kind of value of one grammar alone.
type Own struct {
	Name   string // how errors call such a value
	Check  func(c *Checker, n *yaml.Node, s *Shape, where string)
	Schema func(s *Shape, to map[string]any, with SchemaOptions)
}

var kindNames = [...]string{"anything", "a text", "true or false", "a whole number", "a number", "a size", "a count", "a duration", "a list", "a mapping", "a mapping"}

// KindName is how errors call values of the shape.
func (s *Shape) KindName() string {
	if s = s.Resolved(); s.Kind == OwnKind {
		return s.Own.Name
	}
	return kindNames[s.Kind]
}

// Resolved is the shape that a reference stands for.
func (s *Shape) Resolved() *Shape {
	if s.Kind == Ref {
		return s.Self()
	}
	return s
}

// Field is the shape of a key of an object; nil: there is no such key.
func (s *Shape) Field(key string) *Shape {
	if i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == key }); i >= 0 {
		return s.Fields[i].Shape
	}
	return nil
}

func (s *Shape) names() (names []string) {
	for _, f := range s.Fields {
		names = append(names, f.Name)
	}
	return names
}

// texts are the values of an enum, with those that words add.
func (s *Shape) texts(words map[string][]string) []string {
	if s.Words == "" {
		return s.Enum
	}
	return append(slices.Clip(s.Enum), words[s.Words]...)
}

// At is the value of a key of a mapping; nil if it is absent.
func At(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
