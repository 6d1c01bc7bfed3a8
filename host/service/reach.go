package service

import (
	"fmt"
	"slices"
)

// Reach says what the texts of a manifest's key name outside of the bundle. Every key whose value is
// a free text declares one, in the tag reach; the user of a bundle is shown what it reaches, and nothing
// of it is opened before it was allowed.
type Reach string

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

// Declared reports whether it is one of the constants.
func (r Reach) Declared() bool { return r == ReachNone || slices.Contains(Reaches(), r) }

// Undeclared is the path of the first key of a shape that takes free texts and declares no reach, or an
// unknown one; "" if there is none.
func (s *Shape) Undeclared() string {
	switch s.Kind {
	case ShapeText:
		if s.Enum == nil && !s.Reach.Declared() {
			return "?"
		}
	case ShapeList:
		if s.Of.Undeclared() != "" {
			return "[]"
		}
	case ShapeMapping:
		if !s.KeyReach.Declared() {
			return "?"
		}
		if at := s.Of.Undeclared(); at != "" {
			return "*" + after(at)
		}
	case ShapeObject:
		for _, f := range s.Fields {
			if at := f.Shape.Undeclared(); at != "" {
				return f.Name + after(at)
			}
		}
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
	if key := s.Undeclared(); key != "" {
		panic(fmt.Sprintf("service: %s: the key %q takes texts and does not say what they name outside of the bundle: give it the tag reach (%v), "+
			"or reach:\"none\" if that is nothing; the keys of a mapping have the tag keyreach", of, key, Reaches()))
	}
}
