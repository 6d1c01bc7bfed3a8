package bundle

import (
	"context"
	"fmt"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// twinSection is the name of a custom section that makes other code of a module, and changes nothing of what it does.
const twinSection = "wasmactors.twin"

// Module is what the actors of a module of the manifest take their code from; nil: there is no such module.
func (b *Bundle) Module(name string) *host.Module { return b.modules[name] }

// Twin loads the code of a module once more, under the same limits and in the same environment: as it is, so that states of one
// image are states of the other, or with a custom section, so that it is other code to the host. It is for simulations of upgrades.
// The image is closed with the bundle.
func (b *Bundle) Twin(ctx context.Context, name string, other bool) (*runtime.Image, error) {
	mod, ok := b.Manifest.Module(name)
	l := b.loaded[name]
	if !ok || l == nil {
		return nil, fmt.Errorf("the bundle %s has no module %q", b.Manifest.Name, name)
	}
	code, err := l.fetch(ctx)
	if err != nil {
		return nil, b.Manifest.ModuleError(mod, err)
	}
	if other {
		code = append(code[:len(code):len(code)], 0, byte(1+len(twinSection)), byte(len(twinSection)))
		code = append(code, twinSection...)
	}
	image, err := b.engine.Load(ctx, code, mod.ImageConfig())
	if err != nil {
		return nil, b.Manifest.ModuleError(mod, err)
	}
	return image, nil
}
