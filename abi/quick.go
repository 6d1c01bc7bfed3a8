package abi

import (
	"math"
	"math/bits"
	"unsafe"
)

// What generated code (guest-sdk/gen) reads and writes structs with whose entries come in the order in which it writes
// them: one word to compare for each key, and no call for small numbers. In WebAssembly a call costs what twenty loads
// do. Where a message is something else the code reads it entry by entry, with Field.
//
// These functions check less than those of Reader and Writer: see what each of them asks for.

// ahead is how many bytes behind the end of an input may be read.
const ahead = 8

// Quick is where r reads and where its input ends; p is nil if less than eight bytes may be read behind the end, or after an
// error. The functions below may be called at offsets that lie before the end.
func (r *Reader) Quick() (p unsafe.Pointer, at, end int) {
	if cap(r.buf)-len(r.buf) < ahead || r.err != nil {
		return nil, 0, 0
	}
	return unsafe.Pointer(unsafe.SliceData(r.buf)), r.at, len(r.buf)
}

// Went makes r go on at an offset, which lies not behind the end.
func (r *Reader) Went(at int) { r.at = at }

// QuickWord is the eight bytes at an offset that is not behind the end, the lowest first.
func QuickWord(p unsafe.Pointer, at int) uint64 { return loadAt(p, at) }

// QuickByte is the byte at an offset.
func QuickByte(p unsafe.Pointer, at int) byte { return *(*byte)(unsafe.Add(p, at)) }

// QuickUint reads an integer of 24 or more and returns the offset behind it, which may lie behind the end; 0 if it is
// something else, or not in its shortest form. Smaller ones are their byte.
//
//go:noinline
func QuickUint(p unsafe.Pointer, at int) (v uint64, next int) {
	c := QuickByte(p, at) - 24
	if c > 3 {
		return 0, 0
	}
	n := 1 << c
	v = bits.ReverseBytes64(loadAt(p, at+1)) >> (uint(8-n) * 8 & 63)
	if v < 24 || c > 0 && v>>(4*n&63) == 0 {
		return 0, 0
	}
	return v, at + 1 + n
}

// QuickInt is QuickUint for an integer with a sign.
//
//go:noinline
func QuickInt(p unsafe.Pointer, at int) (v int64, next int) {
	c := QuickByte(p, at)
	sign := -int64(c >> 5)
	if c &= 31; c < 24 && sign == -1 {
		return ^int64(c), at + 1
	}
	c -= 24
	if c > 3 || sign < -1 {
		return 0, 0
	}
	n := 1 << c
	u := bits.ReverseBytes64(loadAt(p, at+1)) >> (uint(8-n) * 8 & 63)
	if u < 24 || c > 0 && u>>(4*n&63) == 0 || u>>63 != 0 {
		return 0, 0
	}
	return int64(u) ^ sign, at + 1 + n
}

// QuickFloat reads a number of 64 bits and returns the offset behind it, which may lie behind the end; 0 if it is
// something else.
func QuickFloat(p unsafe.Pointer, at int) (v float64, next int) {
	if QuickByte(p, at) != 0xfb {
		return 0, 0
	}
	return math.Float64frombits(bits.ReverseBytes64(loadAt(p, at+1))), at + 9
}

// QuickBool reads a truth value and returns the offset behind it; 0 if it is something else.
func QuickBool(p unsafe.Pointer, at int) (v bool, next int) {
	c := QuickByte(p, at)
	if c|1 != 0xf5 {
		return false, 0
	}
	return c == 0xf5, at + 1
}

// QuickText reads a text into memory of its own and returns the offset behind it; 0 if it is something
// else, not ASCII, or longer than 255 bytes. p and end are those of Quick.
func (r *Reader) QuickText(p unsafe.Pointer, at, end int) (s string, next int) {
	n := int(QuickByte(p, at)) - majorText<<5
	from := at + 1
	if uint(n) >= 24 {
		if n != 24 || QuickByte(p, from) < 24 {
			return "", 0
		}
		n = int(QuickByte(p, from))
		from++
	}
	next = from + n
	if next > end {
		return "", 0
	}
	all, i := uint64(0), from
	for ; i+8 <= next; i += 8 {
		all |= loadAt(p, i)
	}
	if i < next {
		all |= loadAt(p, i) << (uint(i-next) * 8 & 63)
	}
	if all&0x8080808080808080 != 0 {
		return "", 0
	}
	if n == 0 {
		return "", next // no pointer behind the end of a chunk
	}
	if r.copied == nil && !r.copyAll() {
		return string(r.buf[from:next]), next
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(r.copied)), from)), n), next
}

// QuickBytes reads a byte string into memory of its own and returns the offset behind it; 0 if it is something
// else, or longer than 255 bytes. p and end are those of Quick.
func (r *Reader) QuickBytes(p unsafe.Pointer, at, end int) (b []byte, next int) {
	n := int(QuickByte(p, at)) - majorBytes<<5
	from := at + 1
	if uint(n) >= 24 {
		if n != 24 || QuickByte(p, from) < 24 {
			return nil, 0
		}
		n = int(QuickByte(p, from))
		from++
	}
	if next = from + n; next > end {
		return nil, 0
	}
	return r.keep(from, n), next
}

// QuickTexts reads a list of less than 24 texts, each of less than 24 bytes, like QuickText; otherwise the offset is 0.
func (r *Reader) QuickTexts(p unsafe.Pointer, at, end int) (list []string, next int) {
	n := int(QuickByte(p, at)) - majorArray<<5
	if uint(n) >= 24 || r.copied == nil && !r.copyAll() {
		return nil, 0
	}
	copied := unsafe.Pointer(unsafe.SliceData(r.copied))
	list = r.list(n)
	at++
	for i := range list {
		if at >= end {
			return nil, 0
		}
		n := int(QuickByte(p, at)) - majorText<<5
		from := at + 1
		if at = from + n; uint(n) >= 24 || at > end {
			return nil, 0
		}
		all := loadAt(p, from)
		if n > 8 {
			all |= loadAt(p, at-8)
			if n > 16 {
				all |= loadAt(p, from+8)
			}
		} else {
			if n == 0 {
				continue // no pointer behind the end of a chunk
			}
			all <<= uint(8-n) * 8 & 63
		}
		if all&0x8080808080808080 != 0 {
			return nil, 0
		}
		list[i] = unsafe.String((*byte)(unsafe.Add(copied, from)), n)
	}
	return list, at
}

// Room makes room for n bytes and returns where they go. Wrote must follow. QuickPut needs eight bytes, of which the next
// function may take back some, all others nine and the bytes of texts and byte strings.
func (w *Writer) Room(n int) (p unsafe.Pointer, at int) {
	at = len(w.buf)
	if cap(w.buf)-at < n {
		w.grow(n)
	}
	return unsafe.Pointer(unsafe.SliceData(w.buf)), at
}

// Wrote takes over what the functions below have written up to an offset.
func (w *Writer) Wrote(at int) { w.buf = w.buf[:at] }

// roomText is the room that a text needs in addition to its bytes.
const roomText = 9

// QuickPut writes eight bytes, the lowest first: a key, and what will be written over.
func QuickPut(p unsafe.Pointer, at int, v uint64) { storeAt(p, at, v) }

// PutUint writes an integer that is not negative and returns the offset behind it.
func PutUint(p unsafe.Pointer, at int, v uint64) int {
	if v < 24 {
		*(*byte)(unsafe.Add(p, at)) = byte(v)
		return at + 1
	}
	return putLong(p, at, 0, v)
}

// PutInt writes an integer and returns the offset behind it.
func PutInt(p unsafe.Pointer, at int, v int64) int {
	if uint64(v) < 24 {
		*(*byte)(unsafe.Add(p, at)) = byte(v)
		return at + 1
	}
	return putInt(p, at, v)
}

//go:noinline
func putInt(p unsafe.Pointer, at int, v int64) int {
	return putNumber(p, at, byte(v>>63)&(majorNint<<5), uint64(v^v>>63))
}

func putNumber(p unsafe.Pointer, at int, major byte, v uint64) int {
	if v < 24 {
		*(*byte)(unsafe.Add(p, at)) = major | byte(v)
		return at + 1
	}
	return putLong(p, at, major, v)
}

// putLong is putNumber for 24 and more.
//
//go:noinline
func putLong(p unsafe.Pointer, at int, major byte, v uint64) int {
	low, n := byte(24), 1
	switch {
	case v < 1<<8:
	case v < 1<<16:
		low, n = 25, 2
	case v < 1<<32:
		low, n = 26, 4
	default:
		low, n = 27, 8
	}
	*(*byte)(unsafe.Add(p, at)) = major | low
	storeAt(p, at+1, bits.ReverseBytes64(v<<(64-8*n)))
	return at + 1 + n
}

// PutFloat writes a number as 64 bits and returns the offset behind it.
func PutFloat(p unsafe.Pointer, at int, v float64) int {
	*(*byte)(unsafe.Add(p, at)) = 0xfb
	storeAt(p, at+1, bits.ReverseBytes64(math.Float64bits(v)))
	return at + 9
}

// PutBool writes a truth value and returns the offset behind it.
func PutBool(p unsafe.Pointer, at int, v bool) int {
	c := byte(0xf4)
	if v {
		c = 0xf5
	}
	*(*byte)(unsafe.Add(p, at)) = c
	return at + 1
}

// PutText writes a text and returns the offset behind it.
func PutText(p unsafe.Pointer, at int, s string) int {
	n := len(s)
	from := unsafe.Pointer(unsafe.StringData(s))
	if n >= 24 {
		return putLongText(p, at, s)
	}
	*(*byte)(unsafe.Add(p, at)) = majorText<<5 | byte(n)
	p = unsafe.Add(p, at+1)
	at += 1 + n
	if n >= 8 { // in words, of which the last may lie over the one before
		if n > 16 {
			storeAt(p, 8, loadAt(from, 8))
		}
		last := loadAt(from, n-8)
		storeAt(p, 0, loadAt(from, 0))
		storeAt(p, n-8, last)
		return at
	}
	for i := 0; i < n; i++ {
		*(*byte)(unsafe.Add(p, i)) = *(*byte)(unsafe.Add(from, i))
	}
	return at
}

func putLongText(p unsafe.Pointer, at int, s string) int {
	at = putLong(p, at, majorText<<5, uint64(len(s)))
	copyText(p, at, s)
	return at + len(s)
}

// PutBytes writes a byte string and returns the offset behind it.
func PutBytes(p unsafe.Pointer, at int, b []byte) int {
	at = putNumber(p, at, majorBytes<<5, uint64(len(b)))
	copyText(p, at, unsafe.String(unsafe.SliceData(b), len(b)))
	return at + len(b)
}

// PutTexts writes a list of texts and returns the offset behind it.
func PutTexts(p unsafe.Pointer, at int, list []string) int {
	at = putNumber(p, at, majorArray<<5, uint64(len(list)))
	for i := range list {
		at = PutText(p, at, list[i])
	}
	return at
}

// RoomTexts is the room that the texts of a list need.
func RoomTexts(list []string) (n int) {
	for i := range list {
		n += roomText + len(list[i])
	}
	return n
}
