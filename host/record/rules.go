package record

import (
	"fmt"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/supervision"
)

// Rules are what an actor's props say of it besides limits, as far as it decides about a turn or a signal that is repeated.
type Rules struct {
	_ struct{} `cbor:",toarray"`

	Lifetime    supervision.Lifetime
	Significant bool
	Letter      bool // the message of a turn that fails becomes a dead letter
	Redelivered int  // after so many further turns, 0 to 1000

	// What it may do. With Inherits it is what its parent may do where that comes in the records, and the rest is empty.
	Inherits          bool
	Send, Spawn, Stop []string // as in host.Capabilities
	Services          []string // sorted: those that it has a grant for
}

// MostRedelivered bounds Redelivered.
const MostRedelivered = 1000

// Wrong says why r are no rules; empty: they may be.
func (r *Rules) Wrong() string {
	switch {
	case r.Lifetime > supervision.Temporary:
		return fmt.Sprintf("a lifetime %d", r.Lifetime)
	case r.Redelivered < 0 || r.Redelivered > MostRedelivered:
		return fmt.Sprintf("a message that is delivered %d times", r.Redelivered)
	case r.Inherits && len(r.Send)+len(r.Spawn)+len(r.Stop)+len(r.Services) > 0:
		return "rights that are its parent's and its own"
	case len(r.Services) > abi.MaxServices:
		return fmt.Sprintf("%d services", len(r.Services))
	}
	return ""
}

// Equal reports whether two say the same.
func (r *Rules) Equal(o *Rules) bool {
	return r.Lifetime == o.Lifetime && r.Significant == o.Significant && r.Letter == o.Letter && r.Redelivered == o.Redelivered && r.Inherits == o.Inherits &&
		slices.Equal(r.Send, o.Send) && slices.Equal(r.Spawn, o.Spawn) && slices.Equal(r.Stop, o.Stop) && slices.Equal(r.Services, o.Services)
}

// Of are the rules without what they inherit: that of the parent's rules, which inherit nothing; nil: they are not known.
func (r *Rules) Of(parent *Rules) *Rules {
	if !r.Inherits || parent == nil {
		return r
	}
	own := *r
	own.Inherits, own.Send, own.Spawn, own.Stop, own.Services = false, parent.Send, parent.Spawn, parent.Stop, parent.Services
	return &own
}
