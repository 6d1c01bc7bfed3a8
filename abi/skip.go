package abi

import (
	"math"
	"unicode/utf8"
)

// skip checks one generic item and steps over it, without recursion. It is nested
// within that many containers already. Maps may have keys of any kind; their
// uniqueness is not checked here.
func skip(b []byte, at, within int) (int, *Error) {
	var left [MaxNesting]uint64 // items still to come, a level each
	depth := 0
	for {
		next, open, err := one(b, at)
		if err != nil {
			return at, err
		}
		if major := b[at] >> 5; depth+within >= MaxNesting && (major == majorArray || major == majorMap) {
			return at, ErrNesting // an empty one counts, too
		}
		at = next
		if open > 0 {
			left[depth] = open
			depth++
			continue
		}
		for depth > 0 {
			left[depth-1]--
			if left[depth-1] > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			return at, nil
		}
	}
}

// one reads a head with its own content; open is the number of items within it.
func one(b []byte, at int) (next int, open uint64, bad *Error) {
	m, n, next, err := head(b, at)
	if err != nil {
		return at, 0, err
	}
	rest := uint64(len(b) - next)
	switch m {
	case majorBytes, majorText:
		if n > rest {
			return at, 0, ErrTruncated
		}
		end := next + int(n)
		if m == majorText && !utf8.Valid(b[next:end]) {
			return at, 0, ErrUTF8
		}
		return end, 0, nil
	case majorArray:
		if n > rest {
			return at, 0, ErrTruncated
		}
		return next, n, nil
	case majorMap:
		if n > rest/2 {
			return at, 0, ErrTruncated
		}
		return next, 2 * n, nil
	case majorTag:
		return at, 0, ErrTag
	case majorOther:
		if _, err := simple(b[at], n); err != nil {
			return at, 0, err
		}
	}
	return next, 0, nil
}

// simple classifies an item of major type 7 by its first byte.
func simple(first byte, arg uint64) (Type, *Error) {
	switch first {
	case 0xf4, 0xf5:
		return TypeBool, nil
	case 0xf6:
		return TypeNull, nil
	case 0xf9, 0xfa, 0xfb:
		return TypeFloat, nil
	}
	return 0, ErrSimple
}

// float widens the argument of a float item to 64 bits.
func float(first byte, arg uint64) float64 {
	switch first {
	case 0xf9:
		return half(uint16(arg))
	case 0xfa:
		return float64(math.Float32frombits(uint32(arg)))
	}
	return math.Float64frombits(arg)
}

// half widens an IEEE 754 binary16.
func half(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&1023)
	var v float64
	switch exp {
	case 0:
		v = math.Ldexp(frac, -24)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(frac+1024, exp-25)
	}
	if h>>15 != 0 {
		v = -v
	}
	return v
}

// Valid reports whether b is exactly one well-formed item in the strict subset:
// definite and shortest heads, no tags, no simple values but false, true and
// null, text in UTF-8, nested at most MaxNesting deep. The error is an *At.
func Valid(b []byte) error {
	at, err := skip(b, 0, 0)
	if err == nil && at != len(b) {
		err = ErrTrailing
	}
	if err != nil {
		return &At{Offset: at, Err: err}
	}
	return nil
}
