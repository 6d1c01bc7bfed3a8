package abi

import "unicode/utf8"

// Major types of CBOR (RFC 8949, 3.1).
const (
	majorUint  = 0
	majorNint  = 1
	majorBytes = 2
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	majorTag   = 6
	majorOther = 7

	nullByte = 0xf6
)

// head reads one head of the integer-like majors (0 to 6) and returns its
// argument and the offset behind it. Strict: definite and shortest only.
func head(b []byte, at int) (major byte, arg uint64, next int, err *Error) {
	if at >= len(b) {
		return 0, 0, at, ErrTruncated
	}
	c := b[at]
	major, low := c>>5, c&31
	if low < 24 {
		return major, uint64(low), at + 1, nil
	}
	return longHead(b, at, major, low)
}

func longHead(b []byte, at int, major, low byte) (byte, uint64, int, *Error) {
	switch {
	case low == 31:
		return 0, 0, at, ErrIndefinite
	case low > 27:
		return 0, 0, at, ErrReserved
	}
	n := 1 << (low - 24)
	if len(b)-at-1 < n {
		return 0, 0, at, ErrTruncated
	}
	var arg uint64
	for _, c := range b[at+1 : at+1+n] {
		arg = arg<<8 | uint64(c)
	}
	if major != majorOther {
		if low == 24 && arg < 24 || low > 24 && arg>>(4*n) == 0 {
			return 0, 0, at, ErrNotShortest
		}
	}
	return major, arg, at + 1 + n, nil
}

// binary8 is the big-endian number in 8 bytes.
func binary8(b []byte) uint64 {
	_ = b[7]
	return uint64(b[7]) | uint64(b[6])<<8 | uint64(b[5])<<16 | uint64(b[4])<<24 |
		uint64(b[3])<<32 | uint64(b[2])<<40 | uint64(b[1])<<48 | uint64(b[0])<<56
}

// putBinary8 is the inverse of binary8.
func putBinary8(b []byte, v uint64) {
	_ = b[7]
	b[0], b[1], b[2], b[3] = byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32)
	b[4], b[5], b[6], b[7] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// readUint knows the two usual forms itself: below 24, and in 8 bytes (refs, times).
func readUint(b []byte, at int) (uint64, int, *Error) {
	if at < len(b) {
		c := b[at]
		if c < 24 {
			return uint64(c), at + 1, nil
		}
		if c == majorUint<<5|27 && len(b)-at >= 9 {
			if v := binary8(b[at+1 : at+9]); v>>32 != 0 {
				return v, at + 9, nil
			}
		}
	}
	return readLongUint(b, at)
}

func readLongUint(b []byte, at int) (uint64, int, *Error) {
	m, v, next, err := head(b, at)
	if err != nil {
		return 0, at, err
	}
	if m != majorUint {
		return 0, at, ErrType
	}
	return v, next, nil
}

func readInt(b []byte, at int) (int64, int, *Error) {
	if at < len(b) && b[at] < majorNint<<5 {
		v, next, err := readUint(b, at)
		if err == nil && v > 1<<63-1 {
			return 0, at, ErrRange
		}
		return int64(v), next, err
	}
	m, v, next, err := head(b, at)
	switch {
	case err != nil:
		return 0, at, err
	case m > majorNint:
		return 0, at, ErrType
	case v > 1<<63-1:
		return 0, at, ErrRange
	case m == majorNint:
		return -1 - int64(v), next, nil
	}
	return int64(v), next, nil
}

// readBytes reads a byte string.
func readBytes(b []byte, at int) ([]byte, int, *Error) {
	if at < len(b) {
		if n := int(b[at] - majorBytes<<5); n < 24 && n < len(b)-at {
			return b[at+1 : at+1+n : at+1+n], at + 1 + n, nil
		}
	}
	return readString(b, at, majorBytes, len(b))
}

// readString reads a byte string or a text of at most limit bytes.
func readString(b []byte, at int, want byte, limit int) ([]byte, int, *Error) {
	m, n, next, err := head(b, at)
	switch {
	case err != nil:
		return nil, at, err
	case m != want:
		return nil, at, ErrType
	case n > uint64(len(b)-next):
		return nil, at, ErrTruncated
	case n > uint64(limit):
		return nil, at, ErrTooLong
	}
	s := b[next : next+int(n) : next+int(n)]
	if want == majorText && !utf8.Valid(s) {
		return nil, at, ErrUTF8
	}
	return s, next + int(n), nil
}

func isNull(b []byte, at int) bool { return at < len(b) && b[at] == nullByte }

// readHeaders reads null or a map of text to text, and returns it encoded.
func readHeaders(b []byte, at int) ([]byte, int, *Error) {
	if isNull(b, at) {
		return nil, at + 1, nil
	}
	return readHeaderMap(b, at)
}

func readHeaderMap(b []byte, at int) ([]byte, int, *Error) {
	m, n, next, err := head(b, at)
	switch {
	case err != nil:
		return nil, at, err
	case m != majorMap:
		return nil, at, ErrType
	case n > MaxHeaders:
		return nil, at, ErrTooLong
	}
	var keys [MaxHeaders][]byte
	for i := range int(n) {
		var key []byte
		if key, next, err = readString(b, next, majorText, MaxHeaderKey); err != nil {
			return nil, next, err
		}
		for _, k := range keys[:i] {
			if string(k) == string(key) {
				return nil, next, ErrDuplicate
			}
		}
		keys[i] = key
		if _, next, err = readString(b, next, majorText, MaxHeaderValue); err != nil {
			return nil, next, err
		}
	}
	return b[at:next:next], next, nil
}

// appendHead writes a head in its shortest form.
func appendHead(dst []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return append(dst, major|25, byte(n>>8), byte(n))
	case n < 1<<32:
		return append(dst, major|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(dst, major|27, byte(n>>56), byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

func appendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return appendHead(dst, majorNint, uint64(-1-v))
	}
	return appendHead(dst, majorUint, uint64(v))
}

func appendBytes(dst, s []byte) []byte {
	return append(appendHead(dst, majorBytes, uint64(len(s))), s...)
}

func appendText(dst []byte, s string) []byte {
	return append(appendHead(dst, majorText, uint64(len(s))), s...)
}

// appendRaw writes an item that is encoded already, null for none.
func appendRaw(dst, item []byte) []byte {
	if len(item) == 0 {
		return append(dst, nullByte)
	}
	return append(dst, item...)
}

// headSize is the length of a head.
func headSize(n uint64) int {
	switch {
	case n < 24:
		return 1
	case n < 1<<8:
		return 2
	case n < 1<<16:
		return 3
	case n < 1<<32:
		return 5
	}
	return 9
}
