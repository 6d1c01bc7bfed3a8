// Package keyed is for the senders to keyed actors, of which there is one for each key. The path of a key's
// actor is that of the entry in the manifest, a slash, and [Name] of the key:
//
//	name, err := keyed.Name(user)
//	if err != nil {
//		return err
//	}
//	ctx.TellPath("/user/carts/"+name, &thing)
//
// The actor itself learns its key from actor.Context.Key. docs/guide/keyed.md has the rest.
package keyed

import (
	"errors"

	"github.com/wasmactors/wasmactors/abi/keyed"
)

// Header is the header with the key of a message to the entry itself, unless the manifest chooses another.
const Header = "wasmactors.key"

// ErrBadKey says that no actor can have the key: it is empty or too long.
var ErrBadKey = errors.New("keyed: not a key: it must have 1 byte at least, and as a name 255 at most")

// Name is the name of a key's actor, which stands in its path: the key, in which every byte that is no letter,
// digit, '_', '.' or '-' is replaced by '~' and two hexadecimal digits. It fails with ErrBadKey.
func Name(key string) (string, error) {
	name, ok := keyed.Name(key)
	if !ok {
		return "", ErrBadKey
	}
	return name, nil
}

// Key is the inverse of Name; false if no key has this name.
func Key(name string) (string, bool) { return keyed.Key(name) }
