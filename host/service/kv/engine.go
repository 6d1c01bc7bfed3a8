package kv

import "errors"

// engine keeps records: keys in order, writes that are atomic. Its reads are for any
// goroutine, its writes for one at a time.
type engine interface {
	// get is a copy of what stands under a key.
	get(key []byte) (value []byte, found bool, err error)
	// scan calls f for what stands in [from, to), in order or in reverse, until f
	// returns false. What f gets is valid during the call.
	scan(from, to []byte, reverse bool, f func(key, value []byte) bool) error
	// apply carries out all writes or none. They are visible when it returns, and as
	// durable as was asked for when wait returns nil.
	apply(w *writes, d Durability) (wait func() error, err error)
	// trouble is why writes are not possible at the moment, nil if they are. changed is
	// closed when that is no longer so.
	trouble() (changed <-chan struct{}, why error)
	// size is about how many bytes of the disk, or of memory, it takes.
	size() int64
	// close ends it. No other call may be under way, or follow.
	close() error
}

// Durability is what a write has survived by the time it is acknowledged.
type Durability uint8

const (
	// Disk: it is synced. It survives a failure of power. Writes of the same moment
	// share a sync.
	Disk Durability = iota
	// OS: it is with the operating system. It survives the end of the process.
	OS
	// Memory: it is visible. It is written within FlushEvery, in order, and lost with the process until then.
	Memory
)

var durabilities = [...]string{"disk", "os", "memory"}

func (d Durability) String() string { return durabilities[d] }

// parseDurability reads a name; none is def.
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

// writes are changes that happen together.
type writes struct {
	list  []write
	bytes int
}

type write struct {
	key, value []byte // a nil value deletes
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

// errClosed is what a store says that was closed.
var errClosed = errors.New("the store is closed")

// done is a wait for nothing.
func done() error { return nil }
