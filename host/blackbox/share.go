package blackbox

import "github.com/wasmactors/wasmactors/internal/sandbox"

// What recordings share with crash files: how an image is written down.

// AppendImage writes down what an image is made of: its module by its hash, and its configuration.
func AppendImage(b []byte, image *sandbox.Image) ([]byte, error) {
	i, err := imageOf(image)
	if err != nil {
		return b, err
	}
	return i.append(b), nil
}

// ReadImage reads all of b. The error says where in b it is wrong.
func ReadImage(b []byte) (i Image, at int, err error) {
	r := reader{b: b}
	r.image(&i)
	if r.err == nil && r.at != len(b) {
		r.fail("%d bytes too many", len(b)-r.at)
	}
	return i, r.at, r.err
}

// imageOf describes an image.
func imageOf(image *sandbox.Image) (i Image, err error) {
	i = Image{Name: image.Name(), Module: sandbox.ModuleSum(image), Config: sandbox.ConfigOf(image)}
	i.Dirs, i.Config.Dirs, i.Config.Progress = len(i.Config.Dirs) > 0, nil, nil
	i.Identity, err = sandbox.Identity(image)
	return i, err
}
