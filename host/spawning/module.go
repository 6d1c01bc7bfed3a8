package spawning

import (
	"fmt"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
)

// Module is a name for an image that may change: actors name the module, and each
// incarnation takes the image that the module has when it begins. It is safe for
// concurrent use.
type Module struct{ image atomic.Pointer[runtime.Image] }

// NewModule makes a module of an image.
func NewModule(image *runtime.Image) *Module {
	m := &Module{}
	m.image.Store(image)
	return m
}

// Image is the present one.
func (m *Module) Image() *runtime.Image { return m.image.Load() }

// Replace gives the module another image, which must have all the types of the present
// one and inboxes at least as large. Incarnations that have begun keep theirs: runtime.Image.Retire closes it after the last one.
func (m *Module) Replace(image *runtime.Image) error {
	for {
		old := m.image.Load()
		if err := sandbox.Replaces(image, old); err != nil {
			return fmt.Errorf("%w: %w", errs.ErrBadProps, err)
		}
		if m.image.CompareAndSwap(old, image) {
			return nil
		}
	}
}
