package flow

import (
	"math"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/host"
)

// CBOR is the codec of elements that are messages of host: what host.Encode takes and Message.Decode reads.
func CBOR[T any]() rules.Codec[T] {
	reflected := rules.Codec[T]{Put: func(w *abi.Writer, v T) {
		payload, err := host.Encode(v)
		if err != nil {
			w.Null() // which the reader refuses, unless it is what T has
			return
		}
		w.Raw(payload)
	}, Get: func(r *abi.Reader) (v T) {
		raw := r.Raw()
		if r.Err() == nil && (host.Message{Payload: raw}).Decode(&v) != nil {
			r.Fail(abi.ErrType)
		}
		return v
	}}
	return plain(reflected)
}

// plain is the codec of a plain type that writes the same, and reads it without reflection. Whatever else stands there the other codec
// reads.
func plain[T any](reflected rules.Codec[T]) rules.Codec[T] {
	switch c := any(reflected).(type) {
	case rules.Codec[int]:
		return same[T](rules.Codec[int]{Put: func(w *abi.Writer, v int) { w.Int(int64(v)) }, Get: func(r *abi.Reader) int {
			if !integer(r) || math.MaxInt != math.MaxInt64 {
				return c.Get(r)
			}
			return int(r.Int())
		}})
	case rules.Codec[int64]:
		return same[T](rules.Codec[int64]{Put: (*abi.Writer).Int, Get: func(r *abi.Reader) int64 {
			if !integer(r) {
				return c.Get(r)
			}
			return r.Int()
		}})
	case rules.Codec[string]:
		return same[T](rules.Codec[string]{Put: (*abi.Writer).Text, Get: func(r *abi.Reader) string {
			if r.Peek() != abi.TypeText {
				return c.Get(r)
			}
			return r.Text()
		}})
	}
	return reflected
}

func integer(r *abi.Reader) bool { return r.Peek() == abi.TypeUint || r.Peek() == abi.TypeNint }

// of2 is a codec of A, which is T.
func same[T, A any](c rules.Codec[A]) rules.Codec[T] {
	t, _ := any(c).(rules.Codec[T])
	return t
}
