package host

import (
	"github.com/wasmactors/wasmactors/host/spawning"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// Module is a name for an image that may change: actors name the module, and each
// incarnation takes the image that the module has when it begins. It is safe for
// concurrent use. Package spawning has its methods: Image, Replace.
type Module = spawning.Module

// NewModule makes a module of an image.
func NewModule(image *runtime.Image) *Module { return spawning.NewModule(image) }

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
	g.inst.Init(a.sys.tenant(a), &a.sys.room, uint64(a.uid), &a.tree.awake)
	return g
}
