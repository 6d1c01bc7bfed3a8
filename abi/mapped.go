package abi

import (
	"math"
	"time"
)

// What generated codecs (guest-sdk/gen) call besides the plain readers: checks of
// range, of keys that come twice or not at all, and of nesting.

// Signed are the integers with a sign.
type Signed interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64
}

// Unsigned are the integers without.
type Unsigned interface {
	~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// ReadInt reads an integer that fits T.
func ReadInt[T Signed](r *Reader) T {
	start := r.at
	v := r.Int()
	if int64(T(v)) != v {
		r.failAt(start, ErrRange)
		return 0
	}
	return T(v)
}

// ReadUint reads an integer that is not negative and fits T.
func ReadUint[T Unsigned](r *Reader) T {
	start := r.at
	v := r.Uint()
	if uint64(T(v)) != v {
		r.failAt(start, ErrRange)
		return 0
	}
	return T(v)
}

// Float32 reads a float of any width, or an integer, that is not too large for 32
// bits. Precision may be lost.
func (r *Reader) Float32() float32 {
	start := r.at
	v := r.Float()
	f := float32(v)
	if math.IsInf(float64(f), 0) && !math.IsInf(v, 0) {
		r.failAt(start, ErrRange)
		return 0
	}
	return f
}

// Time reads nanoseconds since 1970-01-01 UTC; null is the zero time.
func (r *Reader) Time() time.Time {
	if r.Null() {
		return time.Time{}
	}
	v := r.Int()
	if r.err != nil {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

// Fixed reads a byte string that has exactly the length of dst into dst.
func (r *Reader) Fixed(dst []byte) {
	start := r.at
	b := r.ByteString()
	if r.err == nil && len(b) != len(dst) {
		r.failAt(start, ErrArity)
		return
	}
	copy(dst, b)
}

// Once fails with ErrDuplicate if the bit of a key is set already, else sets it.
func (r *Reader) Once(seen *uint64, bit uint64) {
	if *seen&bit != 0 {
		r.Fail(ErrDuplicate)
	}
	*seen |= bit
}

// Enter counts one more level of a type that contains itself, and fails with
// ErrNesting if there are too many. Leave must follow if it reports true.
func (r *Reader) Enter() bool {
	if r.err == nil && r.depth >= MaxNesting {
		r.err = ErrNesting
	}
	if r.err != nil {
		return false
	}
	r.depth++
	return true
}

// Leave ends what Enter has begun.
func (r *Reader) Leave() { r.depth-- }

// In tells what was being read, for the error: the first name that comes after
// the error is kept.
func (r *Reader) In(what string) {
	if r.err != nil && r.where == "" {
		r.where = what
	}
}

func (r *Reader) failAt(at int, err *Error) {
	if r.err == nil {
		r.at, r.err = at, err
	}
}

// Float32 writes a number as 32 bits.
func (w *Writer) Float32(v float32) { w.buf = appendFloat32(w.buf, v) }

// Time writes nanoseconds since 1970-01-01 UTC, null for the zero time. It panics
// outside of the years 1678 to 2261, which do not fit.
func (w *Writer) Time(t time.Time) {
	if t.IsZero() {
		w.Null()
		return
	}
	if y := t.UTC().Year(); y < 1678 || y > 2261 {
		panic("abi: the year of a time does not fit nanoseconds since 1970")
	}
	w.Int(t.UnixNano())
}
