//go:build !tinygo

package actor

import "reflect"

// plain reports whether an actor has no method but Receive. Then nothing else needs to be looked
// for: Go's first look for an interface that a type was never asked for takes 2,500 instructions,
// and writes what it has found, or not found, to two pages.
func plain(a Actor) bool {
	t := reflect.TypeOf(a)
	return t != nil && t.NumMethod() == 1
}
