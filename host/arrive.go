package host

import (
	"strings"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

func init() {
	network.Join = func(system any, c network.Carrier) (network.Port, error) {
		s := system.(*System)
		return s.far.Join(c, home{kernel{s}})
	}
}

// home is the system as what arrives from other nodes sees it: a network.Home.
type home struct{ kernel }

// Strayed implements network.Home.
func (h home) Strayed(by, to abi.Ref) {
	if a := h.here(by); a != nil {
		a.strayed(nil, to)
	}
}

// Tree implements network.Home.
func (h home) Tree(of abi.Ref) (tree any, here bool) {
	if a := h.table.Peek(of); a != nil {
		return a.tree, true
	}
	return nil, h.outside.Has(of)
}

// Had implements network.Home.
func (h home) Had(to abi.Ref) bool { _, ok := h.recent.Find(to); return ok }

// ByPath implements network.Home, for a message that another node has addressed by a path. Who is there may answer, which is what the
// asker has asked this node for.
func (h home) ByPath(root abi.Ref, elements []string, e *mailbox.Envelope) {
	s, below := h.System, ""
	var to []*actor
	if e.Flags&mark.Control == 0 && !glob.HasMeta(strings.Join(elements, "")) {
		if a, name := s.findDoor(elements); a != nil {
			to, below = []*actor{a}, name
		}
	} else {
		to = s.nodes.Match(elements)
	}
	if len(to) == 0 {
		s.refuse(nil, DeadUnknown, ErrUnknown, root, "/"+strings.Join(elements, "/"), e)
	}
	for _, a := range to {
		one := message.CloneEnvelope(e)
		one.Flags, one.Value = e.Flags, e.Value
		if below != "" {
			one.Attached = &mailbox.Attached{Below: below}
		}
		s.delegate(nil, one, root, a.uid)
		_ = s.deliverTo(nil, a, one)
	}
	e.Free()
}
