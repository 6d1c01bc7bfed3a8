package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
)

// Member is a node as the directory has it.
type Member struct {
	Number uint16   `cbor:"1,keyasint"`
	ID     uint64   `cbor:"2,keyasint"` // of its start: random
	Name   string   `cbor:"3,keyasint"`
	Roles  []string `cbor:"4,keyasint,omitempty"`
	Gone   bool     `cbor:"5,keyasint,omitempty"` // it has left, or was evicted
	Beat   uint64   `cbor:"6,keyasint"`           // how often it has renewed its lease
	Born   uint64   `cbor:"7,keyasint,omitempty"` // the revision at which it got its number; 0 in the entry that takes it
	Zone   string   `cbor:"8,keyasint,omitempty"` // a name, or nothing

	// Oldest and Newest are the versions of the protocol between nodes that it understands.
	Oldest uint16 `cbor:"9,keyasint"`
	Newest uint16 `cbor:"10,keyasint"`

	Identity []byte `cbor:"11,keyasint,omitempty"` // see Config.Identity

	Doubter uint16 `cbor:"12,keyasint,omitempty"` // the node that hears nothing of it, and waits for another one to agree; 0: none
	Passed  uint64 `cbor:"13,keyasint,omitempty"` // how often two nodes have agreed, see Node.Passed

	revision uint64 // of the entry
}

// Bounds of a member's entry.
const (
	MaxRoles    = 32
	MaxIdentity = 1 << 10 // bytes
	maxEntry    = 8 << 10
	memberKeys  = "node."
)

func memberKey(number uint16) string { return memberKeys + strconv.Itoa(int(number)) }

func (m *Member) encode() []byte {
	b, err := cbor.Marshal(m)
	if err != nil {
		panic(err) // of numbers and texts
	}
	return b
}

var memberDecoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 64, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// decodeMember reads an entry of a node. Its Born is that of the entry, or the entry's revision.
func decodeMember(e Entry) (Member, error) {
	number, err := strconv.ParseUint(strings.TrimPrefix(e.Key, memberKeys), 10, 16)
	m := Member{}
	switch {
	case err != nil || number == 0 || number > abi.MaxNode || memberKey(uint16(number)) != e.Key:
		return m, fmt.Errorf("cluster: %q is no key of a node", e.Key)
	case len(e.Value) > maxEntry:
		return m, fmt.Errorf("cluster: the entry of node %d has %d bytes, at most %d", number, len(e.Value), maxEntry)
	}
	if err := memberDecoder.Unmarshal(e.Value, &m); err != nil {
		return m, fmt.Errorf("cluster: the entry of node %d: %w", number, err)
	}
	if m.Number != uint16(number) || m.ID == 0 || len(m.Roles) > MaxRoles || !abi.ValidName([]byte(m.Name)) ||
		slices.ContainsFunc(m.Roles, func(r string) bool { return !abi.ValidName([]byte(r)) }) || m.Born > e.Revision || m.Zone != "" && !abi.ValidName([]byte(m.Zone)) ||
		len(m.Identity) > MaxIdentity || m.Doubter > abi.MaxNode || m.Oldest == 0 || m.Newest < m.Oldest {
		return m, fmt.Errorf("cluster: the entry of node %d is not one that a node writes", number)
	}
	if m.revision = e.Revision; m.Born == 0 {
		m.Born = e.Revision
	}
	return m, nil
}

// DecodeMember reads an entry of a node. The error says why it is none.
func DecodeMember(e Entry) (Member, error) { return decodeMember(e) }

// Evicted is the entry that takes a member's number away, at the revision that it has to have.
func (m Member) Evicted() Entry {
	m.Gone = true
	return Entry{Key: memberKey(m.Number), Value: m.encode(), Revision: m.revision}
}

// understands reports whether two nodes have a version of the protocol in common.
func (m *Member) understands(other *Member) bool {
	return m.Oldest <= other.Newest && other.Oldest <= m.Newest
}

// HasRole reports whether a member has a role.
func (m Member) HasRole(role string) bool { return slices.Contains(m.Roles, role) }
