package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// FromJSON turns one JSON value into a payload: whole numbers become integers,
// others floats.
func FromJSON(text []byte) (host.Raw, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	v, err := numbers(v, 0)
	if err != nil {
		return nil, err
	}
	return host.Encode(v)
}

// numbers replaces json.Number by integers and floats.
func numbers(v any, depth int) (any, error) {
	if depth > abi.MaxNesting {
		return nil, fmt.Errorf("nested more than %d deep", abi.MaxNesting)
	}
	var err error
	switch v := v.(type) {
	case json.Number:
		return fromNumber(v)
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = numbers(v[k], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// tooLarge is a whole number that would have to be rounded.
func tooLarge(number string) error {
	return fmt.Errorf("the whole number %s does not fit 64 bits; write it as a text", printable.Line(number, 60))
}

func fromNumber(n json.Number) (any, error) {
	text := n.String()
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return nil, tooLarge(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", text)
	}
	return f, nil
}

// ToJSON turns a payload into JSON. Byte strings become base64, keys that are
// not texts are written as such, and what JSON has no numbers for (NaN and the
// infinities) becomes a text.
func ToJSON(payload []byte) ([]byte, error) {
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
	return bytes.TrimSpace(b.Bytes()), nil
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
		return f
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
