package abi

import "math"

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
func (w *Writer) Map(n int) { w.buf = appendHead(w.buf, majorMap, uint64(n)) }

// Array begins an array of n items.
func (w *Writer) Array(n int) { w.buf = appendHead(w.buf, majorArray, uint64(n)) }

// Text writes a text. What is not UTF-8 will be refused by readers.
func (w *Writer) Text(s string) { w.buf = appendText(w.buf, s) }

// ByteString writes a byte string.
func (w *Writer) ByteString(b []byte) { w.buf = appendBytes(w.buf, b) }

// Int writes an integer.
func (w *Writer) Int(v int64) { w.buf = appendInt(w.buf, v) }

// Uint writes an integer that is not negative.
func (w *Writer) Uint(v uint64) { w.buf = appendHead(w.buf, majorUint, v) }

// Ref writes a ref, as the integer that it is.
func (w *Writer) Ref(r Ref) { w.Uint(uint64(r)) }

// Bool writes a truth value.
func (w *Writer) Bool(v bool) {
	if v {
		w.buf = append(w.buf, 0xf5)
	} else {
		w.buf = append(w.buf, 0xf4)
	}
}

// Null writes null.
func (w *Writer) Null() { w.buf = append(w.buf, nullByte) }

// Float writes a number as 64 bits.
func (w *Writer) Float(v float64) {
	u := math.Float64bits(v)
	w.buf = append(w.buf, 0xfb, byte(u>>56), byte(u>>48), byte(u>>40), byte(u>>32), byte(u>>24), byte(u>>16), byte(u>>8), byte(u))
}

func appendFloat32(dst []byte, v float32) []byte {
	u := math.Float32bits(v)
	return append(dst, 0xfa, byte(u>>24), byte(u>>16), byte(u>>8), byte(u))
}

// Raw writes an item that is encoded already, null if there is none.
func (w *Writer) Raw(item []byte) { w.buf = appendRaw(w.buf, item) }
