package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// identity is what an actor is called and what it was made as. It is fixed when the actor is made.
type identity struct {
	uid      abi.Ref
	path     string   // with scheme and system
	props    *Props   // args apart: see rules
	elements []string // of the path, without the system
}

// Name is the last element of the path.
func (i *identity) Name() string { return i.path[strings.LastIndexByte(i.path, '/')+1:] }

// Type is the type that the actor's props state.
func (i *identity) Type() string { return i.props.typ }

// Lifetime says after which kinds of end the actor is restarted.
func (i *identity) Lifetime() supervision.Lifetime { return i.props.life }

// Significant reports whether its end counts for its supervisor's.
func (i *identity) Significant() bool { return i.props.significant }

func (i *identity) ref() Ref { return newRef(i.uid, i.path) }
