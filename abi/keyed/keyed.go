// Package keyed has the names of keyed actors: how a key is written as the name of its actor. It is
// shared by guest-sdk/keyed for guests, host/keyed for actors in Go, and the gateway.
package keyed

import "github.com/wasmactors/wasmactors/abi"

// plain reports whether a byte of a key stays as it is in a name.
func plain(b byte) bool {
	return b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '_' || b == '.' || b == '-'
}

const hex = "0123456789ABCDEF"

// Name is the name of a key's actor: the key, in which every byte that is no letter, digit, '_', '.'
// or '-' is replaced by '~' and two hexadecimal digits. The keys "." and ".." are replaced whole. It is
// false if the key is empty, or the name longer than abi.MaxName.
func Name(key string) (string, bool) {
	if key == "" || len(key) > abi.MaxName {
		return "", false
	}
	dots := key == "." || key == ".."
	same := !dots
	for i := 0; i < len(key) && same; i++ {
		same = plain(key[i])
	}
	if same {
		return key, true
	}
	name := make([]byte, 0, len(key)+16)
	for i := 0; i < len(key); i++ {
		if b := key[i]; plain(b) && !dots {
			name = append(name, b)
		} else {
			name = append(name, '~', hex[b>>4], hex[b&15])
		}
	}
	return string(name), len(name) <= abi.MaxName
}

// Key is the inverse of Name; false if no key has this name.
func Key(name string) (string, bool) {
	same := name != "" && name != "." && name != ".." && len(name) <= abi.MaxName
	for i := 0; i < len(name) && same; i++ {
		same = plain(name[i])
	}
	if same {
		return name, true
	}
	key := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		if name[i] != '~' {
			key = append(key, name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		high, ok := digit(name[i+1])
		low, ok2 := digit(name[i+2])
		if !ok || !ok2 {
			return "", false
		}
		key = append(key, high<<4|low)
		i += 2
	}
	again, ok := Name(string(key))
	return string(key), ok && again == name
}

// digit is the value of a hexadecimal digit as Name writes it.
func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
