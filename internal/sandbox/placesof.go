package sandbox

import (
	"fmt"

	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// PlacesOf knows which instructions of a module the code of its image, one with Places, stands for. It takes as long as to rewrite the module.
func PlacesOf(i *Image, module []byte) (*rewrite.Sites, error) {
	m, err := wasm.Decode(module)
	if err == nil {
		var res *rewrite.Result
		cfg := i.cfg
		cfg.Places = true
		if res, err = rewrite.Instrument(m, cfg.rewriting()); err == nil {
			return res.Sites(), nil
		}
	}
	return nil, fmt.Errorf("runtime: %s: %w", i.cfg.Name, err)
}
