package sql

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
)

// Value is a parameter. The zero Value is null.
type Value struct {
	kind  kind
	num   int64
	float float64
	text  string
	blob  []byte
}

type kind uint8

const (
	kindNull kind = iota
	kindInt
	kindFloat
	kindText
	kindBlob
	kindBool
	kindTime
)

// Null is NULL.
func Null() Value { return Value{} }

// Int is an integer of 64 bits.
func Int(v int64) Value { return Value{kind: kindInt, num: v} }

// Float is a float. NaN is refused by the host.
func Float(v float64) Value { return Value{kind: kindFloat, float: v} }

// Text is a text in UTF-8.
func Text(v string) Value { return Value{kind: kindText, text: v} }

// Blob is bytes. They are copied when the turn ends.
func Blob(v []byte) Value { return Value{kind: kindBlob, blob: v} }

// Bool is true or false; SQLite stores it as 1 or 0.
func Bool(v bool) Value {
	b := Value{kind: kindBool}
	if v {
		b.num = 1
	}
	return b
}

// Time is a time in nanoseconds, of the years 1678 to 2262; SQLite stores it as a text that sorts as times
// do: 2024-02-29T12:00:00.000000000Z.
func Time(v time.Time) Value { return Value{kind: kindTime, num: v.UnixNano()} }

// MarshalCBOR implements actor.Encoder.
func (v Value) MarshalCBOR(w *abi.Writer) {
	switch v.kind {
	case kindInt:
		w.Int(v.num)
	case kindFloat:
		w.Float(v.float)
	case kindText:
		w.Text(v.text)
	case kindBlob:
		w.ByteString(v.blob)
	case kindBool:
		w.Bool(v.num != 0)
	case kindTime:
		w.Map(1)
		w.Text("time")
		w.Int(v.num)
	default:
		w.Null()
	}
}
