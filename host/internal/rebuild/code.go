package rebuild

import (
	"bytes"
	"fmt"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// CodeOf is the image with a fingerprint that records of an actor of a type name: its module's present image, or one that the recorder
// has. The error wraps ErrCode: nobody has it, or it is not what the actor could go on with.
func CodeOf(own *sandbox.Image, typ string, fingerprint []byte, from record.Recorder) (*sandbox.Image, error) {
	if is(own, fingerprint) {
		return own, nil
	}
	has, ok := from.(record.Codes)
	if !ok {
		return nil, ErrCode
	}
	image, err := has.Code(fingerprint)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCode, err)
	}
	d := image.Description()
	switch {
	case !is(image, fingerprint):
		return nil, fmt.Errorf("%w: what is kept of that code has become other code", ErrCode)
	case !d.Has(typ):
		return nil, fmt.Errorf("%w: that code has no %s", ErrCode, typ)
	case sandbox.CannotSave(image) != "":
		return nil, fmt.Errorf("%w: that code cannot be copied: %s", ErrCode, sandbox.CannotSave(image))
	}
	return image, nil
}

// is reports whether an image has a fingerprint. One that is closed has none.
func is(image *sandbox.Image, fingerprint []byte) bool {
	var has []byte
	if image != nil {
		if sum, err := sandbox.Fingerprint(image); err == nil {
			has = sum[:]
		}
	}
	return bytes.Equal(has, fingerprint)
}
