// Package plainjson reads and writes the JSON of messages: nothing is rounded, and nothing nests
// deeper than a payload may.
package plainjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Parse reads one value: whole numbers become int64 or uint64, others float64. What host.ToJSON has written of
// texts, numbers, lists and maps it reads back as it was.
func Parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return numbers(v, 0)
}

// numbers replaces json.Number by integers and floats.
func numbers(v any, depth int) (any, error) {
	if depth > abi.MaxNesting {
		return nil, fmt.Errorf("nested more than %d deep", abi.MaxNesting)
	}
	var err error
	switch v := v.(type) {
	case json.Number:
		return Number(v)
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

// TooLarge is a whole number that would have to be rounded.
func TooLarge(number string) error {
	return fmt.Errorf("the whole number %s does not fit 64 bits; write it as a text", printable.Line(number, 60))
}

// Number is a number as int64, uint64 or float64. -0 is a float: no whole number is like it.
func Number(n json.Number) (any, error) {
	text := n.String()
	if text == "-0" {
		return math.Copysign(0, -1), nil
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return nil, TooLarge(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", text)
	}
	return f, nil
}
