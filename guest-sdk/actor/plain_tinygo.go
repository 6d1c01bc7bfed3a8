//go:build tinygo

package actor

// plain is for standard Go. With TinyGo a look for an interface compares some numbers.
func plain(Actor) bool { return false }
