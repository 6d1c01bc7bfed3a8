// Package remote has children of actors run on other nodes of a cluster. A spawn names a role, or a node. In the child's place its parent
// has an actor that stands for it, with the name and the ref of the spawn: what it is sent it passes on, in order. On the node that was
// chosen a door checks what the node accepts ([Accept]), and starts the child below an actor that supervises it there, by the strategy,
// lifetime and limits that the request has as values. Each side watches the other: when one ends, or its node is lost, so does the
// other.
//
// Nodes talk by ordinary messages between actors, so a node that knows nothing of this answers that it has no door.
package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Door is the name of the actor below /system that takes requests of other nodes. Children run at /system/remote.N/K/NAME, where N is the
// node of their parent.
const Door = "remote"

// Node is what is needed of a node of the cluster; *cluster.Node is one.
type Node interface {
	Self() cluster.Member
	// Acting reports whether the node may act.
	Acting() bool
	// Members are the nodes that are there, by their numbers.
	Members() []cluster.Member
}

// The errors of spawns.
var (
	// ErrNoNode says that no node was found that takes the child.
	ErrNoNode = errors.New("remote: no node takes the child")
	// ErrUnknown says that it is not known whether the child was started. If it was, it ends, and nothing it was sent was handled.
	ErrUnknown = errors.New("remote: the node has not answered whether it takes the child")
)

// Place says on which node a child is to run. The zero value is any node that takes it, this one included.
type Place struct {
	Role string // that the node has; empty: any
	Node string // its name; empty: any
}

// Check reports a place that cannot be one.
func (p Place) Check() error {
	for _, x := range []string{p.Role, p.Node} {
		if x != "" && !abi.ValidName([]byte(x)) {
			return fmt.Errorf("remote: %.80q is no name of a role or a node", x)
		}
	}
	return nil
}

// May reports whether a list of capabilities (host.Capabilities.Spawn) allows to spawn a type in the place. Entries with a role, TYPE@ROLE,
// are for other nodes, and others are not. A place without a role needs TYPE@*.
func (p Place) May(spawn []string, typ string) bool {
	for _, x := range spawn {
		t, role, on := cutRole(x)
		if on && glob.Match(t, typ) && (role == "*" || p.Role != "" && glob.Match(role, p.Role)) {
			return true
		}
	}
	return false
}

func cutRole(x string) (typ, role string, on bool) {
	if i := strings.LastIndexByte(x, '@'); i >= 0 {
		return x[:i], x[i+1:], true
	}
	return x, "", false
}

// Child is what is to run elsewhere.
type Child struct {
	Digest []byte // SHA-256 of the module's code; empty: an actor in Go, which nodes know by its type
	// Code reads the code, for a node that lacks it; nil: such a node is passed over. Any goroutine may call it.
	Code         func(context.Context) ([]byte, error)
	Module       string // what the module is called here
	Type         string
	Args         []byte // CBOR; empty: none
	Options      []byte // of the spawn, as a guest writes them; empty: none
	Parent       host.Ref
	Limits       host.Limits
	Capabilities host.Capabilities
	Supervision  supervision.Strategy // that the child is under
}

// Props make the actor that stands for a child in its place; it is to be spawned as a child of the parent. The error says why the
// child cannot run elsewhere: its supervision asks the parent, or it is too large.
func Props(node Node, place Place, c Child) (host.Props, error) {
	if err := place.Check(); err != nil {
		return host.Props{}, err
	}
	r, err := requestOf(&c)
	if err != nil {
		return host.Props{}, err
	}
	limits := c.Limits
	limits.Fuel, limits.Memory, limits.Message = 0, 0, 0
	return host.Behave("remote/"+c.Type, func() host.Behaviour {
		return &standIn{node: node, place: place, typ: c.Type, offer: offer{read: c.Code}}
	}).WithArgs(r).WithLimits(limits).WithLifetime(supervision.Temporary), nil
}

// Times of a spawn.
const (
	findTime  = 3 * time.Second  // for a node's answer whether it has a door
	startTime = 10 * time.Second // for the answer that the child is there
	mostTries = 16               // nodes that are asked
)
