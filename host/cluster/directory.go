package cluster

import (
	"errors"
	"fmt"
)

// Entry is a key of the directory.
type Entry struct {
	Key      string
	Value    []byte // nil: there is none
	Revision uint64 // of the last change, growing over all keys
}

// Directory is what all nodes agree on: small values by key. It may be slow and may fail, but a change that it has
// confirmed stays, and all see the changes of a key in the same order. Functions given to it are called from any goroutine,
// one after the other for a Watch.
type Directory interface {
	// Put replaces the value of a key if the key was last changed at the revision (0: never). The error is ErrConflict if it
	// was not. After any other error it is not known whether the value was replaced.
	Put(key string, value []byte, revision uint64, done func(revision uint64, err error))
	// Watch calls each for all keys that there are, and then for each change.
	Watch(each func(Entry)) (stop func())
}

// KeyPart is a name as a part of a key of the directory: bytes other than letters, digits, '_' and '-' are written as '=' and two
// hexadecimal digits.
func KeyPart(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch x := name[i]; {
		case x >= 'a' && x <= 'z', x >= 'A' && x <= 'Z', x >= '0' && x <= '9', x == '_', x == '-':
			b = append(b, x)
		default:
			b = fmt.Appendf(b, "=%02x", x)
		}
	}
	return string(b)
}

// ErrConflict says that a key was changed by somebody else.
var ErrConflict = errors.New("cluster: the key was changed")

// Links carry packets between nodes. Packets may be lost, late, doubled and overtaken; from whom one comes is true.
type Links interface {
	// Send sends a packet, which belongs to the links then; they may Free it when they need it no more. It does not block.
	Send(to uint16, packet []byte)
	// Receive sets who gets packets, which belong to f then. f may be called by many goroutines at once, but not from within
	// Send, or any other call that the node makes. It waits while much of what has come waits for the node's system.
	Receive(f func(from uint16, packet []byte))
	// MaxPacket is the largest packet that Send takes, in bytes, at least MinPacket.
	MaxPacket() int
}

// Introducer is implemented by links that must know who the nodes are. It is told of each member before packets are sent to
// it, also of this one, and when one is gone.
type Introducer interface {
	Introduce(m Member)
}

// MinPacket is the least size that links must carry, in bytes.
const MinPacket = 4 << 10
