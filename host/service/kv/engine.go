package kv

import "errors"

// engine keeps records: keys in order, writes that are atomic. Reads may be concurrent; writes
// come from one goroutine at a time.
type engine interface {
	// get returns a copy of the value of a key.
	get(key []byte) (value []byte, found bool, err error)
	// scan calls f for the records in [from, to), in order or in reverse, until f returns false.
	// The slices that f gets are valid only during the call.
	scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error
	// apply carries out all writes or none. They are visible when it returns, and as
	// durable as was asked for when wait returns nil.
	apply(w *writes, d Durability) (wait func() error, err error)
	// trouble returns why writes are not possible at the moment, or nil. changed is closed when
	// that changes.
	trouble() (changed <-chan struct{}, why error)
	// size is about how many bytes of disk, or of memory, the engine takes.
	size() int64
	// close ends the engine. No other call may be in progress, or follow.
	close() error
}

// Durability is what an acknowledged write survives.
type Durability uint8

const (
	// Disk: the write is synced and survives a power failure. Concurrent writes share a sync.
	Disk Durability = iota
	// OS: the write has reached the operating system and survives the end of the process.
	OS
	// Memory: the write is visible. It is written within FlushEvery, in order; until then it is lost if the
	// process ends.
	Memory
)

var durabilities = [...]string{"disk", "os", "memory"}

func (d Durability) String() string { return durabilities[d] }

// parseDurability reads a name; an empty one is def.
func parseDurability(name string, def Durability) (Durability, bool) {
	if name == "" {
		return def, true
	}
	for i, n := range durabilities {
		if n == name {
			return Durability(i), true
		}
	}
	return 0, false
}

// writes are changes that are applied together.
type writes struct {
	list  []write
	bytes int
}

type write struct {
	key, value []byte // a nil value deletes the key
}

func (w *writes) set(key, value []byte) {
	if value == nil {
		value = []byte{}
	}
	w.list = append(w.list, write{key, value})
	w.bytes += len(key) + len(value)
}

func (w *writes) remove(key []byte) {
	w.list = append(w.list, write{key: key})
	w.bytes += len(key)
}

// errClosed is the error of a closed store.
var errClosed = errors.New("the store is closed")

// done is a wait function that returns at once.
func done() error { return nil }
