package abi

import "unsafe"

// Bounds of what an Unknown keeps of one map: many actors may each keep it.
const (
	MaxUnknown      = 64   // keys
	MaxUnknownBytes = 4096 // of keys and values
)

// Unknown are the keys of a map that its reader does not know, with their values, as they came: a message with a
// field of this type writes them again when it is passed on. At most MaxUnknown keys, of MaxUnknownBytes in all,
// are kept; reading a message that has more fails with ErrUnknownKeys. The zero value is empty. It is
// not safe for concurrent use.
type Unknown struct {
	entries []byte   // keys and values in turn, in the order of deterministic CBOR
	at      []uint16 // where each key begins
}

// Len is the number of keys.
func (u *Unknown) Len() int { return len(u.at) }

// Size is the length of keys and values, in bytes.
func (u *Unknown) Size() int { return len(u.entries) }

// Clear forgets all keys.
func (u *Unknown) Clear() { *u = Unknown{} }

// Get is the value of a key that is a text, as CBOR that aliases u; ok tells whether there is one.
func (u *Unknown) Get(key string) (value []byte, ok bool) {
	for r := NewReader(u.entries); r.More(); {
		k := r.Raw()
		v := r.Raw()
		if t := NewReader(k); t.Peek() == TypeText && string(t.TextBytes()) == key {
			return v, true
		}
	}
	return nil, false
}

// Keep is called by generated code behind a key that it does not know and that begins at from: it steps over
// the value and keeps both.
func (u *Unknown) Keep(r *Reader, from int) {
	if r.err != nil {
		return
	}
	keyEnd := r.at
	r.skip(r.depth + 1)
	switch {
	case r.err != nil:
		return
	case len(u.at) == MaxUnknown || len(u.entries)+r.at-from > MaxUnknownBytes:
		r.at, r.err = from, ErrUnknownKeys
		return
	}
	i, there := u.find(r.buf[from:keyEnd])
	if there {
		r.at, r.err = from, ErrDuplicate
		return
	}
	entry, at := r.buf[from:r.at], len(u.entries)
	if i < len(u.at) {
		at = int(u.at[i])
	}
	u.entries, u.at = append(u.entries, entry...), append(u.at, 0)
	copy(u.entries[at+len(entry):], u.entries[at:])
	copy(u.entries[at:], entry)
	copy(u.at[i+1:], u.at[i:])
	u.at[i] = uint16(at)
	for j := i + 1; j < len(u.at); j++ {
		u.at[j] += uint16(len(entry))
	}
}

// find is the number of the entry that a key has, or would have.
func (u *Unknown) find(key []byte) (i int, there bool) {
	low, high := 0, len(u.at)
	if high > 0 && compare(u.entries[u.at[high-1]:], key) < 0 { // nearly all senders sort
		return high, false
	}
	for low < high {
		mid := (low + high) / 2
		switch compare(u.entries[u.at[mid]:], key) {
		case 0:
			return mid, true
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

// WriteBefore is called by generated code before it writes a key, which is given as CBOR: it writes the entries from
// number i on that come before that key, and returns the number of the next.
func (u *Unknown) WriteBefore(w *Writer, i int, key string) int {
	b := unsafe.Slice(unsafe.StringData(key), len(key))
	from := i
	for i < len(u.at) && compare(u.entries[u.at[i]:], b) < 0 {
		i++
	}
	if i > from {
		w.buf = append(w.buf, u.entries[u.at[from]:u.end(i-1)]...)
	}
	return i
}

// end is where an entry ends.
func (u *Unknown) end(i int) int {
	if i+1 < len(u.at) {
		return int(u.at[i+1])
	}
	return len(u.entries)
}

// WriteRest writes the entries from a number on.
func (u *Unknown) WriteRest(w *Writer, i int) {
	if i < len(u.at) {
		w.buf = append(w.buf, u.entries[u.at[i]:]...)
	}
}

// compare orders an entry and a key by their encoding (RFC 8949, 4.2.1). No encoding is the beginning of another, so
// what follows the entry's own key does not matter.
func compare(entry, key []byte) int {
	for i := 0; i < len(entry) && i < len(key); i++ {
		if entry[i] != key[i] {
			if entry[i] < key[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Refuse fails with ErrUnknownKey for a key that begins at an offset.
func (r *Reader) Refuse(from int) { r.failAt(from, ErrUnknownKey) }
