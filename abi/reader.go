package abi

import (
	"math/bits"
	"unsafe"
)

// Type is what an item is, as far as the strict subset knows types.
type Type uint8

// The types of items. TypeInvalid is what Peek answers at the end or on an error.
const (
	TypeInvalid Type = iota
	TypeUint
	TypeNint
	TypeBytes
	TypeText
	TypeArray
	TypeMap
	TypeBool
	TypeNull
	TypeFloat
)

var typeNames = [...]string{"nothing", "an unsigned integer", "a negative integer", "bytes", "text", "an array", "a map", "a truth value", "null", "a float"}

// String describes the type for a person.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return typeNames[0]
}

// Reader reads generic CBOR, strictly. The first error sticks: everything reads
// as zero from there on, so a decoder checks once, at the end. What it returns
// aliases the input unless it says otherwise. It is not safe for concurrent use.
type Reader struct {
	buf    []byte
	at     int
	err    *Error
	where  string // what was being read when err came up
	depth  int    // see Enter
	copied []byte // of buf, see keep
	chunk  []byte // where copies are made; what is used of it is its length
	texts  []string
}

// NewReader returns a reader of b.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Reset makes r read b from its start.
func (r *Reader) Reset(b []byte) {
	r.buf, r.at, r.depth, r.err = b, 0, 0, nil
	if r.copied != nil {
		r.copied = nil
	}
	if r.where != "" {
		r.where = ""
	}
}

// Err is the first error, an *At, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	e := &At{Offset: r.at, Where: r.where, Err: r.err}
	if r.err == ErrType {
		e.Found = typeAt(r.buf, r.at)
	}
	return e
}

// Done is Err, or an error if anything is left.
func (r *Reader) Done() error {
	if r.err == nil && r.at == len(r.buf) {
		return nil
	}
	return r.notDone()
}

func (r *Reader) notDone() error {
	r.Fail(ErrTrailing)
	return r.Err()
}

// Fail makes err the reader's error, unless it has one.
func (r *Reader) Fail(err *Error) {
	if r.err == nil {
		r.err = err
	}
}

// Offset is how far r has read, or where the error is, in bytes.
func (r *Reader) Offset() int { return r.at }

// More reports whether anything is left to read.
func (r *Reader) More() bool { return r.err == nil && r.at < len(r.buf) }

// Peek is the type of the next item.
func (r *Reader) Peek() Type {
	if !r.More() {
		return TypeInvalid
	}
	return typeAt(r.buf, r.at)
}

// typeAt is the type of the item at an offset.
func typeAt(b []byte, at int) Type {
	if at >= len(b) {
		return TypeInvalid
	}
	switch c := b[at]; c >> 5 {
	case majorUint:
		return TypeUint
	case majorNint:
		return TypeNint
	case majorBytes:
		return TypeBytes
	case majorText:
		return TypeText
	case majorArray:
		return TypeArray
	case majorMap:
		return TypeMap
	case majorOther:
		if t, err := simple(c, 0); err == nil {
			return t
		}
	}
	return TypeInvalid
}

// head reads a head of the major type that is wanted.
func (r *Reader) head(want byte) uint64 {
	if r.err != nil {
		return 0
	}
	m, n, next, err := head(r.buf, r.at)
	if err == nil && m != want {
		err = ErrType
	}
	if err != nil {
		r.err = err
		return 0
	}
	r.at = next
	return n
}

// Array begins an array and returns its length, which is never more than the
// bytes that are left.
func (r *Reader) Array() int { return r.container(majorArray, 1) }

// Map begins a map and returns its number of entries, which is never more than
// half the bytes that are left.
func (r *Reader) Map() int {
	if r.err == nil && r.at < len(r.buf) {
		if n := int(r.buf[r.at] - majorMap<<5); n < 24 && 2*n < len(r.buf)-r.at {
			r.at++
			return n
		}
	}
	return r.container(majorMap, 2)
}

func (r *Reader) container(major byte, each uint64) int {
	start := r.at
	n := r.head(major)
	if r.err == nil && n > uint64(len(r.buf)-r.at)/each {
		r.at, r.err = start, ErrTruncated
		return 0
	}
	return int(n)
}

// TextBytes reads a text.
func (r *Reader) TextBytes() []byte {
	if s, ok := r.text(); ok {
		return s
	}
	return r.str(majorText)
}

// Text reads a text into memory of its own.
func (r *Reader) Text() string {
	b := r.own(r.TextBytes())
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Bytes reads a byte string into memory of its own.
func (r *Reader) Bytes() []byte { return r.own(r.ByteString()) }

// smallInput is the length up to which the texts and byte strings of an input share one copy of it,
// in bytes.
const smallInput = 256

// chunkSize is what a reader that is used again allocates at a time, for the copies of small inputs: keeping one text or
// byte string may keep that many bytes alive.
const chunkSize = 1 << 10

// own copies b, which r has just read.
func (r *Reader) own(b []byte) []byte {
	if len(b) == 0 {
		return []byte{}
	}
	return r.keep(r.at-len(b), len(b))
}

// keep copies n bytes of the input. What is read of a small input shares one copy of all of it, and inputs share
// what is allocated: most of a text's cost is the allocation.
func (r *Reader) keep(at, n int) []byte {
	if r.copied != nil {
		return r.copied[at : at+n : at+n]
	}
	return r.keepFirst(at, n)
}

func (r *Reader) keepFirst(at, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	if !r.copyAll() {
		return append(make([]byte, 0, n), r.buf[at:at+n]...)
	}
	return r.copied[at : at+n : at+n]
}

// copyAll copies a small input; false if the input is not small.
func (r *Reader) copyAll() bool {
	size := len(r.buf)
	if size > smallInput {
		return false
	}
	if size > cap(r.chunk)-len(r.chunk) {
		if r.chunk != nil {
			size = chunkSize
		}
		r.chunk = make([]byte, 0, size)
	}
	from := len(r.chunk)
	r.chunk = append(r.chunk, r.buf...)
	r.copied = r.chunk[from:]
	return true
}

// chunkTexts is how many texts a reader that is used again allocates at a time, for lists.
const chunkTexts = 32

// list is a list of n texts, all empty.
func (r *Reader) list(n int) []string {
	if n > cap(r.texts)-len(r.texts) {
		room := n
		if r.texts != nil && n < chunkTexts {
			room = chunkTexts
		}
		r.texts = make([]string, 0, room)
	}
	if n == 0 {
		return []string{}
	}
	from := len(r.texts)
	r.texts = r.texts[:from+n]
	return r.texts[from : from+n : from+n]
}

// ByteString reads a byte string.
func (r *Reader) ByteString() []byte {
	if from := r.at + 1; r.err == nil && from <= len(r.buf) {
		if n := int(r.buf[from-1] - majorBytes<<5); n < 24 && n <= len(r.buf)-from {
			r.at = from + n
			return r.buf[from : from+n : from+n]
		}
	}
	return r.str(majorBytes)
}

// text reads a short ASCII text if one comes next; all others take the slow path.
func (r *Reader) text() (s []byte, ok bool) {
	from := r.at + 1
	if r.err != nil || from > len(r.buf) {
		return nil, false
	}
	n := int(r.buf[from-1] - majorText<<5)
	if n >= 24 || n > len(r.buf)-from {
		return nil, false
	}
	at, left := from, n
	for ; left > 0; at, left = at+8, left-8 {
		if at+8 > cap(r.buf) {
			return nil, false
		}
		word := loadWord(r.buf, at)
		if left < 8 {
			word <<= 64 - 8*left
		}
		if word&0x8080808080808080 != 0 {
			return nil, false
		}
	}
	r.at = from + n
	return r.buf[from : from+n : from+n], true
}

func (r *Reader) str(major byte) []byte {
	if r.err != nil {
		return nil
	}
	s, next, err := readString(r.buf, r.at, major, len(r.buf))
	if err != nil {
		r.err = err
		return nil
	}
	r.at = next
	return s
}

// Int reads an integer that fits 64 bits with a sign.
func (r *Reader) Int() int64 {
	if v, size := r.number(majorUint); size > 0 && int64(v) >= 0 {
		r.at += size
		return int64(v)
	}
	if v, size := r.number(majorNint); size > 0 && int64(v) >= 0 {
		r.at += size
		return -1 - int64(v)
	}
	if r.err != nil {
		return 0
	}
	v, next, err := readInt(r.buf, r.at)
	if err != nil {
		r.err = err
		return 0
	}
	r.at = next
	return v
}

// Uint reads an integer that is not negative.
func (r *Reader) Uint() uint64 {
	if v, size := r.number(majorUint); size > 0 {
		r.at += size
		return v
	}
	if r.err != nil {
		return 0
	}
	v, next, err := readUint(r.buf, r.at)
	if err != nil {
		r.err = err
		return 0
	}
	r.at = next
	return v
}

// number is the integer of this major type that comes next, with the length of its encoding; 0 if it is
// something else, not in its shortest form, or so near the end that the slow path has to read it.
func (r *Reader) number(major byte) (v uint64, size int) {
	at := r.at
	if r.err != nil || cap(r.buf)-at < 9 || at >= len(r.buf) {
		return 0, 0
	}
	c := r.buf[at] - major<<5
	if c < 24 {
		return uint64(c), 1
	}
	if c > 27 {
		return 0, 0
	}
	size = 1 << (c & 3) // 24 to 27 are 1 to 8 bytes
	v = bits.ReverseBytes64(loadWord(r.buf, at+1)) >> (64 - 8*size)
	if size > len(r.buf)-at-1 || v < 24 || size > 1 && v>>(4*size) == 0 {
		return 0, 0
	}
	return v, 1 + size
}

// Key is the key of a field in generated code.
type Key struct {
	Word    uint64 // the first 8 bytes of Encoded, the lowest first
	Encoded string // in the shortest form
}

// Field reads the key of an entry and returns its index in keys; it skips any other and returns -1. *next is the
// index that is tried first; Field sets it to the one behind the match.
func (r *Reader) Field(keys []Key, next *int) int {
	if i := *next; uint(i) < uint(len(keys)) { // nearly always; isField is not called for it
		k := &keys[i]
		at, n := r.at, len(k.Encoded)
		if n <= 8 && n <= len(r.buf)-at && cap(r.buf)-at >= 8 && (loadWord(r.buf, at)^k.Word)<<(64-8*n) == 0 && r.err == nil {
			r.at = at + n
			*next = i + 1
			return i
		}
	}
	for i := range keys {
		if r.isField(&keys[i]) {
			*next = i + 1
			return i
		}
	}
	r.Skip()
	return -1
}

// isField steps over a key if it comes next.
func (r *Reader) isField(k *Key) bool {
	at, n := r.at, len(k.Encoded)
	if n > len(r.buf)-at || r.err != nil {
		return false
	}
	if n <= 8 && cap(r.buf)-at >= 8 {
		if (loadWord(r.buf, at)^k.Word)<<(64-8*n) != 0 {
			return false
		}
	} else if string(r.buf[at:at+n]) != k.Encoded {
		return false
	}
	r.at = at + n
	return true
}

// OK reports whether there was no error so far.
func (r *Reader) OK() bool { return r.err == nil }

// Ref reads a ref.
func (r *Reader) Ref() Ref { return Ref(r.Uint()) }

// Bool reads a truth value.
func (r *Reader) Bool() bool {
	if r.err == nil && r.at < len(r.buf) && r.buf[r.at]|1 == 0xf5 {
		r.at++
		return r.buf[r.at-1] == 0xf5
	}
	if r.Peek() != TypeBool {
		r.mismatch()
		return false
	}
	r.at++
	return r.buf[r.at-1] == 0xf5
}

// Null steps over a null and reports true if one is next; else it reports false
// and does nothing.
func (r *Reader) Null() bool {
	if r.err == nil && isNull(r.buf, r.at) {
		r.at++
		return true
	}
	return false
}

// Float reads a float of any width, or an integer.
func (r *Reader) Float() float64 {
	switch r.Peek() {
	case TypeUint:
		return float64(r.Uint())
	case TypeNint:
		return float64(r.Int())
	case TypeFloat:
		first := r.buf[r.at]
		_, arg, next, err := head(r.buf, r.at)
		if err != nil {
			r.err = err
			return 0
		}
		r.at = next
		return float(first, arg)
	}
	r.mismatch()
	return 0
}

// Raw checks the next item, of any type, and returns its encoding.
func (r *Reader) Raw() []byte {
	start := r.at
	r.Skip()
	if r.err != nil {
		return nil
	}
	return r.buf[start:r.at:r.at]
}

// Skip checks the next item, of any type, and skips it.
func (r *Reader) Skip() { r.skip(0) }

func (r *Reader) skip(within int) {
	if r.err != nil {
		return
	}
	at, err := skip(r.buf, r.at, within)
	r.at, r.err = at, err
}

// mismatch fails with the reason why what is next is not what was asked for.
func (r *Reader) mismatch() {
	if r.err != nil {
		return
	}
	if _, _, err := one(r.buf, r.at); err != nil {
		r.err = err
		return
	}
	r.err = ErrType
}
