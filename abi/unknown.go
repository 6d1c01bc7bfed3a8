package abi

import "unsafe"

// Bounds of what an Unknown keeps of one map: many actors may each keep it.
const (
	MaxUnknown      = 64   // keys
	MaxUnknownBytes = 4096 // of keys and values
)

// Unknown are the keys of a map that its reader does not know, with their values, as they came: a field of
// this type in a message has them written again when the message is passed on. There are MaxUnknown at most, of
// MaxUnknownBytes; reading a message that has more fails with ErrUnknownKeys. The zero value is empty. It is
// not safe for concurrent use.
type Unknown struct {
	entries []byte // keys and values in turn, in the order of deterministic CBOR
	n       int
}

// Len is the number of keys.
func (u *Unknown) Len() int { return u.n }

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

// Keep is what generated code calls behind a key that it does not know, which begins at an offset: it steps over
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
	case u.n == MaxUnknown || len(u.entries)+r.at-from > MaxUnknownBytes:
		r.at, r.err = from, ErrUnknownKeys
		return
	}
	key, entry := r.buf[from:keyEnd], r.buf[from:r.at]
	at := u.find(key)
	if at < 0 {
		r.at, r.err = from, ErrDuplicate
		return
	}
	u.n++
	had := len(u.entries)
	u.entries = append(u.entries, entry...)
	if at < had {
		copy(u.entries[at+len(entry):], u.entries[at:had])
		copy(u.entries[at:], entry)
	}
}

// find is where a key belongs, -1 if it is there.
func (u *Unknown) find(key []byte) int {
	at := 0
	for at < len(u.entries) {
		end, next := u.step(at)
		switch compare(u.entries[at:end], key) {
		case 0:
			return -1
		case 1:
			return at
		}
		at = next
	}
	return at
}

// step is where the key of the entry at an offset ends, and its value.
func (u *Unknown) step(at int) (key, value int) {
	key, _ = skip(u.entries, at, 0)
	value, _ = skip(u.entries, key, 0)
	return key, value
}

// WriteBefore is what generated code calls before it writes a key: it writes the entries from an offset on that
// come before that key, given as CBOR, and returns the offset of the next.
func (u *Unknown) WriteBefore(w *Writer, at int, key string) int {
	from := at
	b := unsafe.Slice(unsafe.StringData(key), len(key))
	for at < len(u.entries) {
		end, next := u.step(at)
		if compare(u.entries[at:end], b) > 0 {
			break
		}
		at = next
	}
	w.buf = append(w.buf, u.entries[from:at]...)
	return at
}

// WriteRest writes the entries from an offset on.
func (u *Unknown) WriteRest(w *Writer, at int) { w.buf = append(w.buf, u.entries[at:]...) }

// compare orders keys by their encoding (RFC 8949, 4.2.1). The package bytes is not needed for it.
func compare(a, b []byte) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}

// Refuse fails with ErrUnknownKey for a key that begins at an offset.
func (r *Reader) Refuse(from int) { r.failAt(from, ErrUnknownKey) }
