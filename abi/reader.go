package abi

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
	buf   []byte
	at    int
	err   *Error
	where string // what was being read when err came up
	depth int    // see Enter
}

// NewReader returns a reader of b.
func NewReader(b []byte) *Reader { return &Reader{buf: b} }

// Reset makes r read b from its start.
func (r *Reader) Reset(b []byte) { *r = Reader{buf: b} }

// Err is the first error, an *At, or nil.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return &At{r.at, r.where, r.err}
}

// Done is Err, or an error if anything is left.
func (r *Reader) Done() error {
	if r.err == nil && r.at != len(r.buf) {
		r.err = ErrTrailing
	}
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
	switch c := r.buf[r.at]; c >> 5 {
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
func (r *Reader) Map() int { return r.container(majorMap, 2) }

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
func (r *Reader) TextBytes() []byte { return r.str(majorText) }

// Text reads a text into a string of its own.
func (r *Reader) Text() string { return string(r.str(majorText)) }

// ByteString reads a byte string.
func (r *Reader) ByteString() []byte {
	if r.err != nil {
		return nil
	}
	s, next, err := readBytes(r.buf, r.at)
	if err != nil {
		r.err = err
		return nil
	}
	r.at = next
	return s
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

// Ref reads a ref.
func (r *Reader) Ref() Ref { return Ref(r.Uint()) }

// Bool reads a truth value.
func (r *Reader) Bool() bool {
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

// Raw checks the next item, whatever it is, and returns its encoding.
func (r *Reader) Raw() []byte {
	start := r.at
	r.Skip()
	if r.err != nil {
		return nil
	}
	return r.buf[start:r.at:r.at]
}

// Skip checks the next item, whatever it is, and steps over it.
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
