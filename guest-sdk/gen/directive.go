package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// What an author says in comments, above a type or a method of an interface:
//
//	//wasmactors:message name=bank.payment version=2 answer=receipt
//	//wasmactors:unknown keep
//	//wasmactors:protocol timeout=5s
//	//wasmactors:bind bank.*
const prefix = "//wasmactors:"

// said is what the directives above one declaration say.
type said struct {
	message  *messageSays
	protocol *protocolSays
	unknown  unknownKeys
	bind     string
	bindAt   token.Pos
	at       token.Pos // of the directive about unknown keys
}

type messageSays struct {
	at      token.Pos
	name    string // "" for the type's own
	version uint16
	answer  string // Go type, "" for none
}

type protocolSays struct {
	at      token.Pos
	timeout time.Duration // 0: the SDK's
}

// unknownKeys is what is done with keys that a struct does not have.
type unknownKeys uint8

const (
	unknownUnsaid unknownKeys = iota
	unknownSkip
	unknownKeep
	unknownRefuse
)

// fault is an error with its place.
func (s *source) fault(at token.Pos, format string, args ...any) error {
	return fmt.Errorf("%s: %s", s.fset.Position(at), fmt.Sprintf(format, args...))
}

// directives reads those of a file.
func (s *source) directives(f *ast.File) error {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			t := spec.(*ast.TypeSpec)
			groups := []*ast.CommentGroup{t.Doc}
			if len(g.Specs) == 1 {
				groups = append(groups, g.Doc)
			}
			if err := s.noteSaid(t.Name.Name, groups, "message", "unknown", "protocol"); err != nil {
				return err
			}
			i, ok := t.Type.(*ast.InterfaceType)
			if !ok {
				continue
			}
			for _, m := range i.Methods.List {
				if len(m.Names) == 1 {
					if err := s.noteSaid(t.Name.Name+"."+m.Names[0].Name, []*ast.CommentGroup{m.Doc}, "bind"); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (s *source) noteSaid(of string, groups []*ast.CommentGroup, valid ...string) error {
	var x said
	found := false
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			text, ok := strings.CutPrefix(c.Text, prefix)
			if !ok {
				continue
			}
			found = true
			words := strings.Fields(text)
			if len(words) == 0 || !slices.Contains(valid, words[0]) {
				return s.fault(c.Pos(), "%s has no meaning here: valid are %s", c.Text, prefix+strings.Join(valid, ", "+prefix))
			}
			if err := s.directive(&x, c.Pos(), words[0], words[1:]); err != nil {
				return err
			}
		}
	}
	if found {
		s.said[of] = x
	}
	return nil
}

func (s *source) directive(x *said, at token.Pos, what string, words []string) (err error) {
	twice := false
	switch what {
	case "message":
		twice, x.message = x.message != nil, &messageSays{at: at, version: 1}
		return s.pairs(at, what, twice, words, map[string]func(string) string{
			"name": func(v string) string {
				if x.message.name = v; !abi.ValidMessageName(v) {
					return "is not 1 to 96 of A-Z a-z 0-9 _ . -, with a letter first and neither . nor - at the end"
				}
				if strings.HasSuffix(v, sentSuffix) || strings.HasSuffix(v, answerSuffix) {
					return "ends as the rules of CDDL do that belong to other messages: choose another end"
				}
				return ""
			},
			"version": func(v string) string {
				n, err := strconv.ParseUint(v, 10, 16)
				if x.message.version = uint16(n); err != nil || n == 0 {
					return "is not a number from 1 to 65535"
				}
				return ""
			},
			"answer": func(v string) string {
				if x.message.answer = v; !token.IsIdentifier(v) {
					return "is not the name of a type of this package"
				}
				return ""
			},
		})
	case "protocol":
		twice, x.protocol = x.protocol != nil, &protocolSays{at: at}
		return s.pairs(at, what, twice, words, map[string]func(string) string{
			"timeout": func(v string) string {
				d, err := time.ParseDuration(v)
				if x.protocol.timeout = d; err != nil || d < abi.MinAskTimeout || d > abi.MaxAskTimeout {
					return "is not a duration from 1ms to 24h"
				}
				return ""
			},
		})
	case "unknown":
		mode, ok := map[string]unknownKeys{"skip": unknownSkip, "keep": unknownKeep, "refuse": unknownRefuse}[strings.Join(words, " ")]
		if !ok || x.unknown != unknownUnsaid {
			return s.fault(at, "%sunknown must say, once, skip, keep or refuse", prefix)
		}
		x.unknown, x.at = mode, at
	case "bind":
		if x.bind != "" || len(words) != 1 || !validPattern(words[0]) {
			return s.fault(at, "%sbind must name, once, a type of message, or the beginning of names with * behind, such as bank.*", prefix)
		}
		x.bind, x.bindAt = words[0], at
	}
	return nil
}

// pairs reads key=value words.
func (s *source) pairs(at token.Pos, what string, twice bool, words []string, keys map[string]func(string) string) error {
	if twice {
		return s.fault(at, "%s%s comes twice", prefix, what)
	}
	had := map[string]bool{}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		read, ok := keys[key]
		if !ok || had[key] {
			return s.fault(at, "%s%s: %q is not one of %s=, once", prefix, what, w, strings.Join(sortedNames(keys), "=, "))
		}
		had[key] = true
		if bad := read(value); bad != "" {
			return s.fault(at, "%s%s: %s=%s %s", prefix, what, key, value, bad)
		}
	}
	return nil
}

func sortedNames[V any](m map[string]V) []string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func validPattern(p string) bool {
	begin, wild := strings.CutSuffix(p, "*")
	if wild {
		return begin == "" || abi.ValidMessageName(strings.TrimRight(begin, ".-"))
	}
	return abi.ValidMessageName(p)
}
