package dormant

import (
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// Sort is what says how to make an actor again, besides its parent, its name and its arguments.
type Sort struct {
	_       struct{} `cbor:",toarray"`
	Type    string
	Code    []byte // fingerprint
	Spawned bool   // by its parent, with these options
	Options []byte
}

var encoder, decoder = func() (cbor.EncMode, cbor.DecMode) {
	enc, wrong := cbor.EncOptions{Sort: cbor.SortCoreDeterministic, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden}.EncMode()
	dec, err := cbor.DecOptions{IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, MaxNestedLevels: 4}.DecMode()
	if err = errors.Join(err, wrong); err != nil {
		panic(err)
	}
	return enc, dec
}()

// Text is the sort as an index has it: CBOR.
func (s Sort) Text() string {
	b, _ := encoder.Marshal(&s) // none of it can fail
	return string(b)
}

// sortOf is the inverse of Text.
func sortOf(text string) (s Sort, ok bool) {
	ok = decoder.Unmarshal([]byte(text), &s) == nil
	return s, ok
}
