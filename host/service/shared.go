package service

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Shared are values that all nodes of a cluster have, of which one service keeps what actors keep there. A value that was put is
// on the disks of a majority of those that keep it, or where a NATS that exists keeps it. The functions that it gets are called by any goroutine, and must not block.
type Shared interface {
	// Put replaces the value of a key if it was last changed at the revision (0: it was never changed, or was forgotten). A nil
	// value removes the key, and is a change, too. stay is after which time the value is forgotten, in whole seconds; 0: it
	// stays. done gets the revision of the change, which is larger than all before it of any key; ok is false if the key was
	// changed at another revision. After an error it is not known whether the value was replaced, unless it wraps ErrNotWritten.
	Put(key string, value []byte, revision uint64, stay int64, done func(at uint64, ok bool, err error))
	// Get reads what the leader of those that keep the values has; a nil value: there is none. One that was just replaced may
	// still be read while the leader changes: what follows from it must be decided by a Put with its revision.
	Get(key string, done func(value []byte, revision uint64, err error))
	// Watch calls each for all keys that there are, then ready, and each for what changes from then on, in the order of the
	// revisions. A change that another one of the same key has followed soon may be left out.
	Watch(each func(key string, value []byte, revision uint64), ready func()) (stop func())
	// Lease is how long a node can be cut off, at most, before it begins anew, with a new Watch: a removal has to be known for longer.
	Lease() time.Duration
}

// Errors of a Shared.
var (
	// ErrNotWritten says that nothing was written.
	ErrNotWritten = errors.New("nothing was written")
	// ErrFull says that a value does not fit any more; it wraps ErrNotWritten.
	ErrFull = fmt.Errorf("what the nodes share is full; %w", ErrNotWritten)
)

// Sharing opens the values that all nodes of a cluster have for a service; for each call of the same name they are the same. It
// waits for the majority of those that keep them, until ctx ends.
type Sharing func(ctx context.Context, service string) (Shared, error)

// Bounds of a Shared.
const (
	MaxSharedKey   = 1800      // bytes of A-Z a-z 0-9 _ ~ - and '.', the last of these not at an end nor twice
	MaxSharedValue = 512 << 10 // bytes
	// MaxSharedTotal is how many bytes a service should keep at most: keys, values, what is known of removed ones, and SharedOverhead
	// each. There is as much room again, so that removals never lack it.
	MaxSharedTotal = 64 << 20
	SharedOverhead = 384 // bytes that an entry takes in addition to its key and value
)

// AppendSharedName appends a name as a part of a key of a Shared, without '.': bytes other than letters, digits, '_' and '-' are written
// as '~' and two hexadecimal digits. The first part of a key is the name of a bundle: a node may be bound to those of some.
func AppendSharedName(dst []byte, name string) []byte {
	const hexDigits = "0123456789abcdef"
	for i := range len(name) {
		switch x := name[i]; {
		case x >= 'a' && x <= 'z', x >= 'A' && x <= 'Z', x >= '0' && x <= '9', x == '_', x == '-':
			dst = append(dst, x)
		default:
			dst = append(dst, '~', hexDigits[x>>4], hexDigits[x&15])
		}
	}
	return dst
}
