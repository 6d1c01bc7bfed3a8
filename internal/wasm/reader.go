package wasm

import (
	"strconv"
	"unicode/utf8"
)

// Error says where a module is malformed, or asks for what is not supported.
type Error struct {
	Offset  int    // in the module, in bytes
	Section string // "" outside sections
	Func    int    // index of the function whose code it is, or -1
	Reason  string
}

func (e *Error) Error() string {
	s := "wasm: offset 0x" + strconv.FormatInt(int64(e.Offset), 16)
	if e.Section != "" {
		s += ", " + e.Section + " section"
	}
	if e.Func >= 0 {
		s += ", function " + strconv.Itoa(e.Func)
	}
	return s + ": " + e.Reason
}

// reader reads b, which lies at offset base of the module. The first error
// sticks, and everything reads as zero from there on.
type reader struct {
	b    []byte
	at   int
	base int
	err  error
}

func (r *reader) fail(reason string) {
	if r.err == nil {
		r.err = &Error{Offset: r.base + r.at, Func: -1, Reason: reason}
		r.at = len(r.b)
	}
}

func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail("unexpected end")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) skip(n int) []byte {
	if n < 0 || n > r.left() {
		r.fail("unexpected end")
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at : r.at]
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		r.at++
		return uint32(r.b[r.at-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v >= 1<<32 {
				r.fail("a number does not fit 32 bits")
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("a number is encoded in too many bytes")
	return 0
}

// sleb reads a signed LEB128 of n bits.
func (r *reader) sleb(n int) int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		if shift >= n {
			r.fail("a number is encoded in too many bytes")
			return 0
		}
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c >= 0x80 {
			continue
		}
		if left := n - shift; left < 7 {
			// The unused bits repeat the sign.
			if top := int8(c<<1) >> 1 >> (left - 1); top != 0 && top != -1 {
				r.fail("a number does not fit")
				return 0
			}
		}
		if s := 64 - shift - 7; s > 0 {
			v = v << s >> s
		}
		return v
	}
}

func (r *reader) s32() int64 { return r.sleb(32) }
func (r *reader) s33() int64 { return r.sleb(33) }
func (r *reader) s64() int64 { return r.sleb(64) }

// blockType reads a type index, or a value type or none as a negative number. What
// else is negative is refused: typed references are followed by more bytes, which
// wazero reads even though they are not enabled, and every instruction behind them
// would be another one than it seems.
func (r *reader) blockType() int64 {
	at := r.at
	t := r.s33()
	if r.err != nil || t >= 0 || t == -64 {
		return t
	}
	switch ValType(t & 0x7f) {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		if t >= -64 {
			return t
		}
	}
	r.at = at
	r.fail("unknown block type")
	return 0
}

// count reads the length of a vector whose items take at least size bytes each.
func (r *reader) count(size int) int {
	n := r.u32()
	if uint64(n)*uint64(size) > uint64(r.left()) {
		r.fail("a vector is longer than the section")
		return 0
	}
	return int(n)
}

func (r *reader) zero() {
	if r.byte() != 0 {
		r.at--
		r.fail("a zero byte is expected: there is one memory")
	}
}

func (r *reader) memArg() {
	align := r.u32()
	if align >= 32 {
		r.fail("malformed alignment: multiple memories are not supported")
	}
	r.u32()
}

func (r *reader) name() string {
	b := r.skip(r.count(1))
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}

func (r *reader) valType() ValType {
	switch t := ValType(r.byte()); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return t
	default:
		r.at--
		r.fail("unknown value type 0x" + hex(byte(t)))
		return 0
	}
}

func (r *reader) refType() ValType {
	t := r.valType()
	if r.err == nil && !t.IsRef() {
		r.at--
		r.fail("a reference type is expected")
	}
	return t
}

func (r *reader) limits() Limits {
	switch flag := r.byte(); flag {
	case 0:
		return Limits{Min: r.u32()}
	case 1:
		l := Limits{Min: r.u32(), Max: r.u32(), HasMax: true}
		if r.err == nil && l.Min > l.Max {
			r.fail("the minimum is above the maximum")
		}
		return l
	case 2, 3:
		r.fail("shared memories (threads) are not supported")
	case 4, 5, 6, 7:
		r.fail("64-bit memories are not supported")
	default:
		r.fail("unknown limits")
	}
	return Limits{}
}

func (r *reader) globalType() GlobalType {
	g := GlobalType{Type: r.valType()}
	switch r.byte() {
	case 0:
	case 1:
		g.Mutable = true
	default:
		r.at--
		r.fail("a global is either constant or mutable")
	}
	return g
}

// expr reads a constant expression.
func (r *reader) expr() Expr {
	it := NewInstrs(r.b[r.at:], r.base+r.at)
	var in Instr
	for {
		ok, err := it.Next(&in)
		switch {
		case err != nil:
			r.err = err
			return nil
		case !ok:
			r.fail("a constant expression has no end")
			return nil
		}
		switch {
		case in.Op == OpEnd:
			return Expr(r.skip(in.End))
		case in.Op >= OpI32Const && in.Op <= OpF64Const, in.Op == OpGlobalGet, in.Op == OpRefNull, in.Op == OpRefFunc, in.Op == OpSIMD && in.Sub == 12:
		default:
			r.at += in.Start
			r.fail("not a constant expression")
			return nil
		}
	}
}
