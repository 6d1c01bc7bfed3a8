package abi

// Ref names one incarnation of one actor. It is never 0 for an actor (0 means
// nobody), unique in its system, and not to be guessed.
type Ref uint64

const golden = 0x9E3779B97F4A7C15

// ChildRef is the ref of the child that an actor spawns as number k (from 0, and
// never reset while the actor lives), where key is the refkey of its start
// payload. It is the output function of splitmix64 (Steele, Lea, Flood 2014)
// over key + (k+1) times the golden gamma; 1 stands in for 0.
func ChildRef(key, k uint64) Ref {
	z := key + (k+1)*golden
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	if z == 0 {
		z = 1
	}
	return Ref(z)
}

// ValidName reports whether an actor may be called name: 1 to 255 bytes of
// [A-Za-z0-9_.~-], not beginning with '$', which the host keeps for itself.
func ValidName(name []byte) bool {
	return validIdent(name, MaxName, false)
}

// ValidTypeName reports whether a type may be called name: 1 to 128 bytes of
// [A-Za-z0-9_.~/-].
func ValidTypeName(name []byte) bool {
	return validIdent(name, MaxTypeName, true)
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
