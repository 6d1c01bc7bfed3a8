package remote

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Header marks requests; its value is the version of their form.
const Header = "wasmactors.remote"

const version = "1"

// Bounds of a request, in bytes.
const (
	MaxRequest = 2 << 20
	maxType    = 256
	maxText    = 1 << 10 // of a refusal
	mostPaths  = 64      // of capabilities
	maxPath    = 512
)

// request asks a node to start a child.
type request struct {
	Digest   []byte            `cbor:"1,keyasint,omitempty"`
	Module   string            `cbor:"2,keyasint,omitempty"`
	Type     string            `cbor:"3,keyasint"`
	Name     string            `cbor:"4,keyasint"`
	Args     []byte            `cbor:"5,keyasint,omitempty"`
	Options  []byte            `cbor:"6,keyasint,omitempty"`
	Parent   abi.Ref           `cbor:"7,keyasint"`
	Strategy supervision.Plain `cbor:"8,keyasint"`
	Limits   limits            `cbor:"9,keyasint"`
	Send     []string          `cbor:"10,keyasint,omitempty"`
	Spawn    []string          `cbor:"11,keyasint,omitempty"`
}

// limits are those of the child that travel: the others are the target's own.
type limits struct {
	Mailbox      int           `cbor:"1,keyasint,omitempty"`
	MailboxBytes int64         `cbor:"2,keyasint,omitempty"`
	Fuel         uint64        `cbor:"3,keyasint,omitempty"`
	Deadline     time.Duration `cbor:"4,keyasint,omitempty"`
	Memory       uint64        `cbor:"5,keyasint,omitempty"`
	Outbox       uint64        `cbor:"6,keyasint,omitempty"`
	Message      int64         `cbor:"7,keyasint,omitempty"`
	Children     int           `cbor:"8,keyasint,omitempty"`
	Timers       int           `cbor:"9,keyasint,omitempty"`
	Watches      int           `cbor:"10,keyasint,omitempty"`
	Asks         int           `cbor:"11,keyasint,omitempty"`
	Stash        int           `cbor:"12,keyasint,omitempty"`
	Replies      int           `cbor:"13,keyasint,omitempty"`
	Held         int64         `cbor:"14,keyasint,omitempty"`
}

var (
	errLarge     = fmt.Errorf("remote: arguments and options of a child on another node may have %d bytes together at most", MaxRequest/2)
	errMalformed = errors.New("remote: the request is malformed")
)

func requestOf(c *Child) (*request, error) {
	p, err := c.Supervision.Plain()
	if err != nil {
		return nil, fmt.Errorf("a child on another node is supervised there, without its parent: %w", err)
	}
	l := c.Limits
	r := &request{
		Digest: c.Digest, Module: c.Module, Type: c.Type, Args: c.Args, Options: c.Options, Parent: c.Parent.UID(), Strategy: p,
		Limits: limits{l.Mailbox, l.MailboxBytes, l.Fuel, l.Deadline, l.Memory, l.Outbox, l.Message, l.Children, l.Timers, l.Watches, l.Asks, l.Stash, l.Replies, l.Held},
	}
	r.Send = first(c.Capabilities.Send)
	for _, x := range c.Capabilities.Spawn {
		if _, _, on := cutRole(x); !on {
			r.Spawn = append(r.Spawn, x)
		}
	}
	r.Spawn = first(r.Spawn)
	if len(r.Args)+len(r.Options) > MaxRequest/2 {
		return nil, errLarge
	}
	r.Args, r.Options = slices.Clone(r.Args), slices.Clone(r.Options)
	return r, r.check()
}

// first are as many as may travel: the child may do less then.
func first(all []string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(x string) bool { return len(x) > maxPath })
	return all[:min(len(all), mostPaths)]
}

// encode is the request for a child of a name.
func (r request) encode(name string) []byte {
	if abi.ValidName([]byte(name)) {
		r.Name = name
	}
	b, err := cbor.Marshal(&r)
	if err != nil {
		panic(err) // of numbers and texts
	}
	return b
}

// check reports what no node asks for.
func (r *request) check() error {
	l := &r.Limits
	bad := len(r.Digest) != 0 && len(r.Digest) != 32 || r.Type == "" || len(r.Type) > maxType || len(r.Module) > maxType || r.Name != "" && !abi.ValidName([]byte(r.Name)) ||
		r.Parent == 0 || len(r.Options) > abi.MaxOptions || len(r.Send) > mostPaths || len(r.Spawn) > mostPaths ||
		min(int64(l.Mailbox), l.MailboxBytes, int64(l.Deadline), l.Message, int64(l.Children), int64(l.Timers), int64(l.Watches), int64(l.Asks), int64(l.Stash), int64(l.Replies), l.Held) < 0
	for _, list := range [][]string{r.Send, r.Spawn} {
		for _, x := range list {
			bad = bad || len(x) > maxPath
		}
	}
	for _, x := range r.Spawn { // a right to spawn on other nodes does not travel
		bad = bad || strings.Contains(x, "@")
	}
	if bad {
		return errMalformed
	}
	return r.Strategy.Check()
}

var decoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 8, MaxArrayElements: 4096, MaxMapPairs: 64, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// decodeRequest reads one of another node.
func decodeRequest(b []byte) (*request, error) {
	r := &request{}
	if len(b) > MaxRequest || decoder.Unmarshal(b, r) != nil {
		return nil, errMalformed
	}
	return r, r.check()
}

// answer is what a node says to a request: the child, or why there is none, or who fetches the code, which the asker has offered. Who
// fetches it answers with an error, or that it is there. All but the first say that nothing was started.
type answer struct {
	Child   abi.Ref `cbor:"1,keyasint,omitempty"`
	Refused string  `cbor:"2,keyasint,omitempty"`
	Fetch   abi.Ref `cbor:"3,keyasint,omitempty"`
	Fetched bool    `cbor:"4,keyasint,omitempty"`
}

func decodeAnswer(b []byte) (a answer, ok bool) {
	if len(b) > 2*maxText || decoder.Unmarshal(b, &a) != nil {
		return answer{}, false
	}
	n := 0
	for _, said := range []bool{a.Child != 0, a.Refused != "", a.Fetch != 0, a.Fetched} {
		if said {
			n++
		}
	}
	return a, n == 1
}

func refusal(err error) answer {
	text := err.Error()
	return answer{Refused: strings.ToValidUTF8(text[:min(len(text), maxText)], "")} // what is not UTF-8 could not be decoded
}

// narrow is the lesser of the limits of the parent's node and of this one.
func (l *limits) narrow(own host.Limits) host.Limits {
	asked := host.Limits{
		Mailbox: l.Mailbox, MailboxBytes: l.MailboxBytes, Fuel: l.Fuel, Memory: l.Memory, Outbox: l.Outbox, Children: l.Children,
		Timers: l.Timers, Watches: l.Watches, Asks: l.Asks, Stash: l.Stash, Replies: l.Replies, Held: l.Held,
	}
	asked.SetDefaults()
	own.SetDefaults()
	own.Mailbox, own.MailboxBytes, own.Fuel, own.Outbox = min(own.Mailbox, asked.Mailbox), min(own.MailboxBytes, asked.MailboxBytes), min(own.Fuel, asked.Fuel), min(own.Outbox, asked.Outbox)
	own.Children, own.Timers, own.Watches = min(own.Children, asked.Children), min(own.Timers, asked.Timers), min(own.Watches, asked.Watches)
	own.Asks, own.Stash, own.Replies, own.Held = min(own.Asks, asked.Asks), min(own.Stash, asked.Stash), min(own.Replies, asked.Replies), min(own.Held, asked.Held)
	own.Deadline, own.Memory, own.Message = lesser(own.Deadline, l.Deadline), lesser(own.Memory, asked.Memory), lesser(own.Message, l.Message)
	own.Tree, own.Durable = host.TreeLimits{}, 0
	return own
}

// lesser is the lesser of two bounds, of which 0 is none.
func lesser[T time.Duration | uint64 | int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
