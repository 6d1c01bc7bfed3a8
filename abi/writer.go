package abi

import (
	"math"
	"math/bits"
	"unsafe"
)

// Writer appends generic CBOR to a buffer that it owns. It cannot fail; that a
// map gets as many entries as announced is the caller's business. The zero value
// is ready. It is not safe for concurrent use.
type Writer struct{ buf []byte }

// NewWriter returns a writer that appends to buf.
func NewWriter(buf []byte) *Writer { return &Writer{buf} }

// Bytes is what was written, behind what the buffer held. It is valid until the
// next call.
func (w *Writer) Bytes() []byte { return w.buf }

// Reset makes w append to buf from now on.
func (w *Writer) Reset(buf []byte) { w.buf = buf }

// Len is len(w.Bytes()).
func (w *Writer) Len() int { return len(w.buf) }

// Map begins a map of n entries: n keys and n values follow in turn.
func (w *Writer) Map(n int) { w.head(majorMap, uint64(n)) }

// Array begins an array of n items.
func (w *Writer) Array(n int) { w.head(majorArray, uint64(n)) }

// Text writes a text. What is not UTF-8 will be refused by readers.
func (w *Writer) Text(s string) {
	w.head(majorText, uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// ByteString writes a byte string.
func (w *Writer) ByteString(b []byte) {
	w.head(majorBytes, uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// Int writes an integer.
func (w *Writer) Int(v int64) {
	if v < 0 {
		w.head(majorNint, uint64(-1-v))
		return
	}
	w.head(majorUint, uint64(v))
}

// Uint writes an integer that is not negative.
func (w *Writer) Uint(v uint64) { w.head(majorUint, v) }

// Word writes the n lowest bytes of v, 8 at the most, the lowest first: something short that
// is encoded already, such as a key in generated code.
func (w *Writer) Word(v uint64, n int) {
	at := len(w.buf)
	if cap(w.buf)-at < 8 {
		w.grow(8)
	}
	storeWord(w.buf, at, v)
	w.wrote(max(0, min(n, 8)))
}

// Encoded writes what is encoded already.
func (w *Writer) Encoded(s string) { w.buf = append(w.buf, s...) }

// head is appendHead, in one step for all sizes: the excess of a store is overwritten later.
func (w *Writer) head(major byte, v uint64) {
	at := len(w.buf)
	if cap(w.buf)-at < 9 {
		w.grow(9)
	}
	head := uint64(major << 5)
	switch {
	case v < 24:
		storeWord(w.buf, at, head|v)
		w.wrote(1)
	case v < 1<<8:
		storeWord(w.buf, at, head|24|v<<8)
		w.wrote(2)
	case v < 1<<16:
		storeWord(w.buf, at, head|25|v&0xff00|(v&0xff)<<16)
		w.wrote(3)
	case v < 1<<32:
		storeWord(w.buf, at, head|26|uint64(bits.ReverseBytes32(uint32(v)))<<8)
		w.wrote(5)
	default:
		storeWord(w.buf, at, head|27)
		storeWord(w.buf, at+1, bits.ReverseBytes64(v))
		w.wrote(9)
	}
}

// wrote makes n bytes more a part of what was written; there is room for them.
func (w *Writer) wrote(n int) {
	(*struct {
		_        unsafe.Pointer
		len, cap int
	})(unsafe.Pointer(&w.buf)).len += n
}

// grow makes room for n bytes more.
func (w *Writer) grow(n int) {
	larger := make([]byte, len(w.buf), 2*cap(w.buf)+n+32)
	copy(larger, w.buf)
	w.buf = larger
}

// Ref writes a ref, as the integer that it is.
func (w *Writer) Ref(r Ref) { w.Uint(uint64(r)) }

// Bool writes a truth value.
func (w *Writer) Bool(v bool) {
	b := byte(0xf4)
	if v {
		b = 0xf5
	}
	w.buf = append(w.buf, b)
}

// Null writes null.
func (w *Writer) Null() { w.buf = append(w.buf, nullByte) }

// Float writes a number as 64 bits.
func (w *Writer) Float(v float64) {
	at := len(w.buf)
	if cap(w.buf)-at < 9 {
		w.grow(9)
	}
	storeWord(w.buf, at+1, bits.ReverseBytes64(math.Float64bits(v)))
	w.buf = w.buf[:at+9]
	w.buf[at] = 0xfb
}

func appendFloat32(dst []byte, v float32) []byte {
	u := math.Float32bits(v)
	return append(dst, 0xfa, byte(u>>24), byte(u>>16), byte(u>>8), byte(u))
}

// Raw writes an item that is encoded already, or null if b is empty.
func (w *Writer) Raw(item []byte) { w.buf = appendRaw(w.buf, item) }
