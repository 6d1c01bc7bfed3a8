//go:build !wasip1

package actortest

import "testing"

// Onto is the same actor in another test.
func Onto(a *Actor, t testing.TB) *Actor {
	b := *a
	b.t = t
	return &b
}
