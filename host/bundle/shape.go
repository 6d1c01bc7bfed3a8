package bundle

import (
	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Shapes of manifests, in short.
type (
	shape = grammar.Shape
	field = grammar.Field
)

var (
	boolean  = grammar.Flags
	duration = grammar.Span
	enum     = grammar.Enumerated
	integer  = grammar.Whole
	list     = grammar.ListOf
	object   = grammar.ObjectOf
	optional = grammar.Optional
	required = grammar.Required
)

// actorName is the name of an actor's shape in the schema.
const actorName = "actor"

// none is the reach of texts that name nothing outside of the bundle.
const none = service.ReachNone

func anything(doc string) *shape { return &shape{Kind: grammar.Any, Doc: doc} }

// sizeIn is a size between two bounds, in bytes.
func sizeIn(doc string, least, most float64) *shape {
	return &shape{Kind: grammar.Size, Doc: doc, Min: least, Max: most}
}

func size(doc string) *shape { return sizeIn(doc, 1, 0) }

func count(doc string, most float64) *shape {
	return &shape{Kind: grammar.Count, Doc: doc, Min: 1, Max: most}
}

func number(doc string, least, most float64) *shape {
	return &shape{Kind: grammar.Number, Doc: doc, Min: least, Max: most}
}

func text(reach service.Reach, doc string) *shape {
	return &shape{Kind: grammar.Text, Doc: doc, Reach: reach}
}

// enumWith is an enum to which the words of an embedder are added, see Words.named.
func enumWith(words, doc string, values ...string) *shape {
	s := enum(doc, values...)
	s.Words = words
	return s
}

func pattern(reach service.Reach, doc, what, re string) *shape {
	return &shape{Kind: grammar.Text, Doc: doc, Match: grammar.NewRule(re), What: what, Reach: reach}
}

// command is a program with its arguments.
func command(doc string) *shape {
	s := list(doc, text(none, "a word"))
	s.Reach = service.ReachRun
	return s
}

func mapping(doc, what, key string, of *shape) *shape {
	s := &shape{Kind: grammar.Mapping, Doc: doc, Of: of, What: what, KeyReach: none}
	if key != "" {
		s.Key = grammar.NewRule(key)
	}
	return s
}

// names is a mapping from actors' names.
func names(doc string, of *shape) *shape {
	return mapping(doc, nameWhat, nameRule, of).But(".", "..")
}

// grantedAs is a path that guests use under the name that another key gives, and write to if a third one has a value.
func grantedAs(s *shape, guest, key, value string) *shape {
	s.As, s.Writes = guest, func(object *yaml.Node) bool { n := grammar.At(object, key); return n != nil && n.Value == value }
	return s
}

// checker checks a manifest and collects its mistakes.
type checker struct {
	grammar.Checker
	vars    Variables
	kinds   []service.Kind // that may be granted
	words   Words          // an embedder's
	shape   *shape
	root    *yaml.Node               // once it was parsed
	grown   int                      // bytes that the values of variables have added
	granted []guests.Metric          // metrics of all actors, each name once
	spread  []named                  // actors whose events a cluster keeps, by the bundle's name
	read    func(s *shape, k string) // called with every key that is read; for tests
}

// checkerOf is one for a file whose values may be the words of an embedder.
func checkerOf(file string, w Words) *checker {
	return &checker{Checker: grammar.Checker{File: file, Words: w.named()}, words: w}
}
