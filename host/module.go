package host

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
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
// one and inboxes at least as large. Incarnations that have begun keep theirs.
func (m *Module) Replace(image *runtime.Image) error {
	for {
		old := m.image.Load()
		d := image.Description()
		for _, t := range old.Description().Types {
			if !d.Has(t) {
				return fmt.Errorf("%w: the new image has no actor type %q, it has %s", ErrBadProps, t, strings.Join(d.Types, ", "))
			}
		}
		if sandbox.InboxCap(image) < sandbox.InboxCap(old) {
			return fmt.Errorf("%w: the new image has an inbox of %d bytes, the old one of %d", ErrBadProps, sandbox.InboxCap(image), sandbox.InboxCap(old))
		}
		if sandbox.Large(old) && !sandbox.Large(image) {
			return fmt.Errorf("%w: the new image takes no messages that are larger than its inbox, the old one does", ErrBadProps)
		}
		if m.image.CompareAndSwap(old, image) {
			return nil
		}
	}
}

// Guest makes props of an actor that runs in an instance of an image.
func Guest(image *runtime.Image, typ string) Props { return GuestOf(NewModule(image), typ) }

// GuestOf is [Guest] for a module, whose image may be replaced while it has actors.
func GuestOf(m *Module, typ string) Props {
	p := Props{module: m, typ: typ, strategy: supervision.Default(), make: func(a *actor) Behaviour { return newGuest(a, m) }}
	if m.Image() == nil {
		p.make = nil
	}
	return p
}

func newGuest(a *actor, m *Module) *guest {
	g := &guest{actor: a, module: m}
	g.node.Init(g, uint64(a.uid), &a.tree.awake)
	return g
}
