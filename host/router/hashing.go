package router

import (
	"fmt"
	"math"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// DefaultVirtualNodes is how many points a routee has on the ring of consistent hashing.
const DefaultVirtualNodes = 10

// Bounds of [Hashing].
const (
	MaxVirtualNodes = 1000
	// MaxKeyed is how much of a payload Field looks at, in bytes.
	MaxKeyed = 64 << 10
	// MaxFields is how many keys of a map Field looks at.
	MaxFields = 64
)

// Hashing says how [ConsistentHashing] finds the key of a message, and how evenly it spreads keys. The key
// comes from Key; else from the header; else from the field.
type Hashing struct {
	// Key returns the key of a message; if it is nil, or returns nil, there is none. It must retain
	// nothing of the message, and its result is used before it is called again.
	Key func(m *host.Message) []byte
	// Header is the header with the key; empty: [HeaderKey].
	Header string
	// Field is the field of payloads that are maps: the encoding of its value is the
	// key. Empty: none.
	Field string
	// VirtualNodes are the points that each routee has on the ring, up to MaxVirtualNodes; 0
	// means DefaultVirtualNodes. The more there are, the more even the spread.
	VirtualNodes int
	// Load bounds how many messages may wait at one routee, as a multiple of the mean, above 1: a
	// message whose routee is at the bound goes to the next on the ring (Mirrokni, Thorup and
	// Zadimoghaddam, Consistent hashing with bounded loads, 2018). 0 means no bound: all
	// messages with a key go to one routee.
	Load float64
}

// Check says what is wrong with the parameters, nil if nothing is.
func (h Hashing) Check() error {
	switch {
	case h.VirtualNodes < 0 || h.VirtualNodes > MaxVirtualNodes:
		return fmt.Errorf("router: %d virtual nodes, must be from 1 to %d", h.VirtualNodes, MaxVirtualNodes)
	case h.Load != 0 && !(h.Load > 1 && h.Load <= 1000):
		return fmt.Errorf("router: a bound of %v times the mean load, must be more than 1", h.Load)
	case len(h.Header) > abi.MaxHeaderKey:
		return fmt.Errorf("router: a header's name of %d bytes, at most %d", len(h.Header), abi.MaxHeaderKey)
	}
	return nil
}

// ConsistentHashing sends messages with the same key to the same routee, as long as it stays one;
// a message without a key is answered with ErrNoKey. If [Hashing.Check] finds something wrong with h,
// the defaults are used.
func ConsistentHashing(h Hashing) Make {
	if h.Check() != nil {
		h.VirtualNodes, h.Load, h.Header = 0, 0, ""
	}
	if h.VirtualNodes == 0 {
		h.VirtualNodes = DefaultVirtualNodes
	}
	if h.Header == "" {
		h.Header = HeaderKey
	}
	return func(seed uint64) Logic { return &hashing{Hashing: h, seed: seed, waiting: waiting} }
}

type hashing struct {
	Hashing
	seed    uint64
	ring    ring
	read    abi.Reader
	waiting func(*Routee) int
}

// waiting is how many messages wait at a routee.
func waiting(r *Routee) int {
	l, _ := r.Load()
	return l.Waiting
}

// Changed implements Changing.
func (h *hashing) Changed(routees []Routee) {
	h.ring.fill(h.seed, h.VirtualNodes, func(i int) string { return routees[i].Name }, len(routees))
}

func (h *hashing) Pick(picked []int, m *host.Message, routees []Routee) ([]int, error) {
	key := h.key(m)
	if key == nil {
		return picked, ErrNoKey
	}
	at := h.ring.find(hash(h.seed, key))
	if h.Load == 0 {
		return append(picked, h.ring.points[at].routee), nil
	}
	return append(picked, h.withRoom(at, routees)), nil
}

// withRoom is the first routee from a point on that is below the bound; there is one, because
// not all can be above the mean.
func (h *hashing) withRoom(at int, routees []Routee) int {
	total := 1
	for i := range routees {
		total += h.waiting(&routees[i])
	}
	most := int(math.Ceil(h.Load * float64(total) / float64(len(routees))))
	for i := range h.ring.points {
		r := h.ring.points[(at+i)%len(h.ring.points)].routee
		if h.waiting(&routees[r]) < most {
			return r
		}
	}
	return h.ring.points[at].routee
}

// key is the key of a message, nil for none.
func (h *hashing) key(m *host.Message) []byte {
	if h.Key != nil {
		if key := h.Key(m); key != nil {
			return key
		}
	}
	if len(m.Headers) > 0 {
		if key, ok := abi.FindHeader(m.Headers, h.Header); ok {
			return key
		}
	}
	if h.Field == "" {
		return nil
	}
	return h.field(m.Payload)
}

// field is the encoding of the field's value in a payload that is a map. It reads only a bounded part,
// because the router pays for it.
func (h *hashing) field(payload []byte) []byte {
	h.read.Reset(payload[:min(len(payload), MaxKeyed)])
	r := &h.read
	if r.Peek() != abi.TypeMap {
		return nil
	}
	for range min(r.Map(), MaxFields) {
		if r.Peek() != abi.TypeText {
			r.Skip()
			r.Skip()
			continue
		}
		if string(r.TextBytes()) == h.Field && r.OK() {
			return r.Raw()
		}
		if r.Skip(); !r.OK() {
			return nil
		}
	}
	return nil
}
