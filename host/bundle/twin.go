package bundle

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/runtime"
)

// twinSection is the name of a custom section that makes other code of a module, and changes nothing of what it does.
const twinSection = "wasmactors.twin"

// Module is what the actors of a module of the manifest take their code from; nil: there is no such module.
func (b *Bundle) Module(name string) *host.Module { return b.modules[name] }

// Twin loads the code of a module once more, under the same limits and in the same environment: as it is, so that states of one
// image are states of the other, or with a custom section, so that it is other code to the host. It is for simulations of upgrades.
// The image is closed with the bundle. It is called before the first start, or between two.
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
	b.twins = append(b.twins, &loaded{spec: mod, image: image, hash: hashOf(code), fetch: fetching(code)})
	return image, nil
}

// KeepTwin has the store of the system that runs keep the code of a twin, as that of any upgrade is kept before it. Without durable
// actors that may run it there is nothing to do.
func (b *Bundle) KeepTwin(ctx context.Context, image *runtime.Image) error {
	for _, l := range b.twins {
		if l.image == image {
			return b.keepCode(ctx, b.Manifest, l.spec.Name, l)
		}
	}
	return nil
}

// twinOf is the twin with a fingerprint; nil: none has it.
func (b *Bundle) twinOf(fingerprint []byte) *loaded {
	i := slices.IndexFunc(b.twins, func(l *loaded) bool { return bytes.Equal(l.sum, fingerprint) })
	if i < 0 {
		return nil
	}
	return b.twins[i]
}
