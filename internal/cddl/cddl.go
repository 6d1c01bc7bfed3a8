// Package cddl reads the part of CDDL (RFC 8610) that guest-sdk/gen writes, and tells whether what one rule describes
// is what another accepts.
//
// A file is a list of rules. A type is a choice of: any, bool, null, tstr, bstr (with .size), the names of numbers, an
// integer, a range of integers, an array [n*m type], a map {* type => type}, a map of keys {"a": type, ? 1: type},
// which may end with * any => any, the name of a rule, or a type in parentheses. Everything else is refused.
package cddl

import (
	"fmt"
	"math/big"
)

// Bounds of what is read.
const (
	MaxBytes = 1 << 20 // of a file
	maxRules = 10_000
	maxDepth = 64
	maxName  = 1000 // bytes of a rule's name
)

// Pos is a place in a file.
type Pos struct {
	File         string
	Line, Column int // from 1
}

// String is file:line:column.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Error is what is wrong with a file.
type Error struct {
	At   Pos
	What string
}

func (e *Error) Error() string { return e.At.String() + ": " + e.What }

// File is the rules of a file.
type File struct {
	rules map[string]*rule
	names []string // in the order of the file
}

// Names are the rules, in the order of the file.
func (f *File) Names() []string { return f.names }

// At is where a rule is defined; ok tells whether it is.
func (f *File) At(name string) (at Pos, ok bool) {
	r := f.rules[name]
	if r == nil {
		return Pos{}, false
	}
	return r.at, true
}

// Alias is the name of the rule that a rule stands for, "" if it is not just another name.
func (f *File) Alias(name string) string {
	if r := f.rules[name]; r != nil && r.is.kind == kindRule {
		return r.is.name
	}
	return ""
}

type rule struct {
	at Pos
	is *node
}

// node is a type.
type node struct {
	at       Pos
	kind     kind
	name     string   // kindRule
	low      *big.Int // kindInt: the range
	high     *big.Int
	size     int64 // kindBytes: -1: any
	min, max int64 // kindArray: how many; -1: any number
	key, of  *node // kindTable: of all keys; of also kindArray
	fields   []field
	keys     map[string]int // where they are in fields
	open     bool           // kindKeys: there may be others
	choice   []*node
}

type field struct {
	at       Pos
	key      string // as it is written: "a" or 1
	is       *node
	optional bool
}

type kind uint8

const (
	kindAny kind = iota
	kindBool
	kindNull
	kindText
	kindBytes
	kindInt
	kindFloat16
	kindFloat32
	kindFloat64
	kindFloat
	kindNumber
	kindArray
	kindTable
	kindKeys
	kindRule
	kindChoice
)

var kindTexts = [...]string{"anything", "true or false", "null", "a text", "a byte string", "an integer", "a float of 16 bits", "a float of 32 bits",
	"a float of 64 bits", "a float", "a number", "an array", "a map", "a map", "", ""}

func power(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

var (
	zero     = big.NewInt(0)
	mostUint = new(big.Int).Sub(power(64), big.NewInt(1))
	leastInt = new(big.Int).Neg(power(64))
)

// prelude are the names that need no rule.
func prelude(name string, at Pos) *node {
	switch name {
	case "any":
		return &node{at: at, kind: kindAny}
	case "bool":
		return &node{at: at, kind: kindBool}
	case "null", "nil":
		return &node{at: at, kind: kindNull}
	case "tstr", "text":
		return &node{at: at, kind: kindText}
	case "bstr", "bytes":
		return &node{at: at, kind: kindBytes, size: -1}
	case "uint":
		return &node{at: at, kind: kindInt, low: zero, high: mostUint}
	case "nint":
		return &node{at: at, kind: kindInt, low: leastInt, high: big.NewInt(-1)}
	case "int":
		return &node{at: at, kind: kindInt, low: leastInt, high: mostUint}
	case "float16":
		return &node{at: at, kind: kindFloat16}
	case "float32":
		return &node{at: at, kind: kindFloat32}
	case "float64":
		return &node{at: at, kind: kindFloat64}
	case "float":
		return &node{at: at, kind: kindFloat}
	case "number":
		return &node{at: at, kind: kindNumber}
	}
	return nil
}
