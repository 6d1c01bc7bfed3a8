package service

import (
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Reach says what the texts of a manifest's key name outside of the bundle. Every key whose value is
// a free text declares one, in the tag reach; the user of a bundle is shown what it reaches, and nothing
// of it is opened before it was allowed.
type Reach = grammar.Reach

// The reaches. Paths count only where they lead out of the bundle's folder, links followed.
const (
	ReachNone    Reach = "none"    // nothing
	ReachRead    Reach = "read"    // the path of a file or folder that is read
	ReachWrite   Reach = "write"   // the path of a file or folder that is made or changed, and read
	ReachEnv     Reach = "env"     // a variable of the host's environment
	ReachListen  Reach = "listen"  // an address to listen on: host:port, or unix:path
	ReachConnect Reach = "connect" // a host, a network or a server to connect to
	ReachSecret  Reach = "secret"  // a provider of secrets
	ReachRun     Reach = "run"     // a program that is started, with its arguments
	ReachCluster Reach = "cluster" // if the text is "cluster": what all nodes of a cluster keep for bundles of this name
	ReachCode    Reach = "code"    // an actor type whose code may come from other nodes
)

// Reaches are all of them but ReachNone, in the order in which they are listed.
func Reaches() []Reach {
	return []Reach{ReachRead, ReachWrite, ReachEnv, ReachListen, ReachConnect, ReachSecret, ReachCluster, ReachCode, ReachRun}
}

// declared reports whether it is one of the constants.
func declared(r Reach) bool { return r == ReachNone || slices.Contains(Reaches(), r) }

// Undeclared is the path of the first key of a shape that takes free texts and declares no reach, or an
// unknown one; "" if there is none.
func Undeclared(s *Shape) string {
	switch s.Kind {
	case ShapeText:
		if s.Enum == nil && !declared(s.Reach) {
			return "?"
		}
	case ShapeList:
		if Undeclared(s.Of) != "" {
			return "[]"
		}
	case ShapeMapping:
		if !declared(s.KeyReach) {
			return "?"
		}
		if at := Undeclared(s.Of); at != "" {
			return "*" + after(at)
		}
	case ShapeObject:
		for _, f := range s.Fields {
			if at := Undeclared(f.Shape); at != "" {
				return f.Name + after(at)
			}
		}
	case ShapeBool, ShapeInt, ShapeNumber, ShapeSize, ShapeDuration:
	default:
		return "?" // it takes whatever there is
	}
	return ""
}

func after(key string) string {
	switch key[0] {
	case '?':
		return ""
	case '[':
		return key
	}
	return "." + key
}

// mustDeclare panics about a shape of a struct that does not say what its texts reach.
func mustDeclare(of string, s *Shape) {
	if key := Undeclared(s); key != "" {
		panic(fmt.Sprintf("service: %s: the key %q takes texts and does not say what they name outside of the bundle: give it the tag reach (%v), "+
			"or reach:\"none\" if that is nothing; the keys of a mapping have the tag keyreach", of, key, Reaches()))
	}
}
