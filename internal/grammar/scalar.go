package grammar

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/internal/plainjson"
)

// WholeOf is the value of a whole number: decimal digits, also behind zeros, or what else YAML has, such as 0x10.
func WholeOf(n *yaml.Node) (i int64, err error) {
	if i, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
		err = n.Decode(&i)
	}
	return i, err
}

// Scalar is the value of a scalar as in the args of actors: !duration, !size and !count are read, whole numbers are int64 or uint64.
func Scalar(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return i, nil
		}
		var u uint64
		if n.Decode(&u) == nil {
			return u, nil
		}
		return nil, plainjson.TooLarge(n.Value)
	case "!!float":
		// The YAML library reads whole numbers beyond 64 bits as floats, and rounds them.
		if v, err := plainjson.Number(json.Number(strings.ReplaceAll(n.Value, "_", ""))); err != nil {
			return nil, err
		} else if f, ok := v.(float64); ok && !strings.HasPrefix(n.Value, ".") {
			return f, nil
		}
		var f float64
		err := n.Decode(&f)
		return f, err
	case "!duration":
		d, err := ParseDuration(n.Value)
		return d.Nanoseconds(), err
	case "!size":
		return ParseSize(n.Value)
	case "!count":
		return ParseCount(n.Value)
	}
	return n.Value, nil
}
