package bundle

import (
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/plainjson"
)

// FromJSON turns one JSON value into a payload: whole numbers become integers,
// others floats.
func FromJSON(text []byte) (host.Raw, error) {
	v, err := plainjson.Parse(text)
	if err != nil {
		return nil, err
	}
	return host.Encode(v)
}
