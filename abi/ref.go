package abi

import "math/bits"

// Ref names one incarnation of one actor. It is never 0 for an actor (0 means no actor). The upper NodeBits bits are the
// actor's node, 0 where there is only one. The other bits are unique on the node and cannot be guessed, so knowing a ref is
// the right to send to it.
type Ref uint64

// How the bits of a Ref are divided.
const (
	NodeBits = 10
	MaxNode  = 1<<NodeBits - 1

	serialBits = 64 - NodeBits
	serialMask = 1<<serialBits - 1
)

// Node is the node that the actor lives on.
func (r Ref) Node() uint16 { return uint16(r >> serialBits) }

// RefKeySize is the length of a RefKey in bytes.
const RefKeySize = 16

// RefKey is the secret that the refs of an actor's children come from. Only the actor
// and its host know it.
type RefKey [RefKeySize]byte

// ChildRef is the ref of the child that an actor spawns as number n (from 0, and
// never reset while the actor lives) on a node, 0 to MaxNode. Its lower 54 bits are those
// of SipHash-2-4 of n, as 8 bytes of which the lowest comes first, under the refkey of the
// actor's start payload; 1 stands in for 0.
func ChildRef(key RefKey, node uint16, n uint64) Ref {
	serial := SipHash(key, n) & serialMask
	if serial == 0 {
		serial = 1
	}
	return Ref(uint64(node&MaxNode)<<serialBits | serial)
}

// SipHash is SipHash-2-4 (Aumasson and Bernstein 2012) of the 8 bytes of m, of which the
// lowest comes first. Without the key, telling it from randomness, or computing some outputs
// from others, takes trying keys.
func SipHash(key [16]byte, m uint64) uint64 {
	k0, k1 := little8(key[:8]), little8(key[8:])
	v0, v1, v2, v3 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d, k0^0x6c7967656e657261, k1^0x7465646279746573
	// A round is written out in one loop that keeps the state in registers: two for the 8 bytes,
	// two for their length, four at the end.
	v3 ^= m
	for round := 0; round < 8; round++ {
		switch round {
		case 2:
			v0 ^= m
			v3 ^= 8 << 56 // the length, and no bytes left over
		case 4:
			v0 ^= 8 << 56
			v2 ^= 0xff
		}
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

// little8 is the little-endian number in 8 bytes.
func little8(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// ValidName reports whether an actor may be called name: 1 to 255 bytes of
// [A-Za-z0-9_.~-], but not "." or "..", which mean something in a path. So none begins with '$', which the host
// keeps for itself.
func ValidName(name []byte) bool {
	return validIdent(name, MaxName, false) && !dots(name)
}

func dots(name []byte) bool { return string(name) == "." || string(name) == ".." }

// ValidTypeName reports whether a type may be called name: 1 to 128 bytes of
// [A-Za-z0-9_.~/-].
func ValidTypeName(name []byte) bool {
	return validIdent(name, MaxTypeName, true)
}

// ValidServiceName reports whether a service may be called name: 1 to 64 bytes of
// [A-Za-z0-9_.~-], but not "." or "..".
func ValidServiceName(name string) bool {
	return len(name) <= MaxServiceName && ValidName([]byte(name))
}

func validIdent(s []byte, most int, slash bool) bool {
	if len(s) == 0 || len(s) > most {
		return false
	}
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-', c == '~':
		case c == '/' && slash:
		default:
			return false
		}
	}
	return true
}
