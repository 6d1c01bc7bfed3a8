package plainjson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// FromCBOR turns a payload into JSON. Byte strings become base64, keys that are
// not texts are written as texts, and what JSON has no numbers for (NaN and the
// infinities) becomes a text. Floats have a point or an exponent, so that they are read as floats
// again. Control characters are escaped.
func FromCBOR(payload []byte) ([]byte, error) {
	if len(payload) == 0 {
		return []byte("null"), nil
	}
	r := abi.NewReader(payload)
	v := fromCBOR(r)
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("the payload is not valid CBOR: %w", err)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return printable.JSON(bytes.TrimSpace(b.Bytes())), nil
}

// number is a number that is written as no whole number is.
type number float64

// MarshalJSON implements json.Marshaler, with the notations of encoding/json.
func (f number) MarshalJSON() ([]byte, error) {
	x := float64(f)
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(nil, x, 'e', -1, 64), nil
	}
	b := strconv.AppendFloat(nil, x, 'f', -1, 64)
	if bytes.IndexByte(b, '.') < 0 {
		b = append(b, ".0"...)
	}
	return b, nil
}

// fromCBOR reads one item. The reader bounds lengths; Valid bounds the nesting
// before anything recurses.
func fromCBOR(r *abi.Reader) any {
	probe := *r
	probe.Skip()
	if err := probe.Err(); err != nil {
		*r = probe
		return nil
	}
	return item(r)
}

func item(r *abi.Reader) any {
	switch r.Peek() {
	case abi.TypeUint:
		return r.Uint()
	case abi.TypeNint:
		return r.Int()
	case abi.TypeBytes:
		return base64.StdEncoding.EncodeToString(r.ByteString())
	case abi.TypeText:
		return r.Text()
	case abi.TypeBool:
		return r.Bool()
	case abi.TypeFloat:
		f := r.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return number(f)
	case abi.TypeArray:
		n := r.Array()
		list := make([]any, 0, min(n, 1024))
		for range n {
			list = append(list, item(r))
		}
		return list
	case abi.TypeMap:
		n := r.Map()
		m := make(map[string]any, min(n, 1024))
		for range n {
			key := item(r)
			if s, ok := key.(string); ok {
				m[s] = item(r)
			} else {
				m[fmt.Sprint(key)] = item(r)
			}
		}
		return m
	}
	r.Skip() // null
	return nil
}
