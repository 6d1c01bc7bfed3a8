package sql

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Int
	Float
	Text
	Blob
	Bool
	Time
)

// Value is a parameter, or the value of a column. The zero Value is null. Values are never
// converted between a guest and a driver.
type Value struct {
	Kind  Kind
	Int   int64   // Int; Bool: 0 or 1
	Float float64 // Float, never NaN
	Text  string  // Text, in UTF-8
	Blob  []byte  // Blob
	Time  time.Time
}

// TimeLayout is how a time is stored where a database has no type for it: always UTC and always
// nanoseconds, so that texts sort as times do, and SQLite's date functions read it.
const TimeLayout = "2006-01-02T15:04:05.000000000Z"

// ParseTime parses a text in [TimeLayout], and no other form: only then formatting the time gives
// the same text.
func ParseTime(s string) (time.Time, bool) {
	if len(s) != len(TimeLayout) {
		return time.Time{}, false
	}
	t, err := time.Parse(TimeLayout, s)
	if err != nil || t.Format(TimeLayout) != s || !inNanoseconds(t) {
		return time.Time{}, false
	}
	return t, true
}

// inNanoseconds reports whether t fits into 64 bits of nanoseconds since 1970.
func inNanoseconds(t time.Time) bool { return time.Unix(0, t.UnixNano()).Equal(t) }

// readValue reads a value: null, true, false, an integer of 64 bits with a sign, a float, a
// text, a byte string, or {"time": ns since 1970}.
func readValue(r *abi.Reader) Value {
	switch r.Peek() {
	case abi.TypeNull:
		r.Null()
		return Value{}
	case abi.TypeBool:
		v := Value{Kind: Bool}
		if r.Bool() {
			v.Int = 1
		}
		return v
	case abi.TypeUint, abi.TypeNint:
		return Value{Kind: Int, Int: r.Int()}
	case abi.TypeFloat:
		v := Value{Kind: Float, Float: r.Float()}
		if math.IsNaN(v.Float) {
			r.Fail(errNaN)
		}
		return v
	case abi.TypeText:
		return Value{Kind: Text, Text: r.Text()}
	case abi.TypeBytes:
		return Value{Kind: Blob, Blob: r.Bytes()}
	case abi.TypeMap:
		if r.Map() != 1 || string(r.TextBytes()) != "time" {
			r.Fail(errValue)
			return Value{}
		}
		return Value{Kind: Time, Time: time.Unix(0, r.Int()).UTC()}
	}
	r.Fail(errValue)
	return Value{}
}

var (
	errNaN   = &abi.Error{Reason: "NaN is not a value in SQL"}
	errValue = &abi.Error{Reason: `a value is null, a bool, a number, a text, a byte string or {"time": ns}`}
)

// appendValue appends the encoding of v. A text that is not UTF-8 is sent as bytes.
func appendValue(w *abi.Writer, v *Value) {
	switch v.Kind {
	case Int:
		w.Int(v.Int)
	case Float:
		w.Float(v.Float)
	case Text:
		if !utf8.ValidString(v.Text) {
			w.ByteString([]byte(v.Text))
			return
		}
		w.Text(v.Text)
	case Blob:
		w.ByteString(v.Blob)
	case Bool:
		w.Bool(v.Int != 0)
	case Time:
		w.Map(1)
		w.Text("time")
		w.Int(v.Time.UnixNano())
	default:
		w.Null()
	}
}
