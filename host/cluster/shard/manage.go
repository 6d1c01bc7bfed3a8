package shard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
)

// Place says where a shard is.
type Place struct {
	Shard int    `cbor:"shard"`
	Epoch uint64 `cbor:"epoch"`
	Node  uint16 `cbor:"node"`           // that has the shard or is about to get it; 0: none
	From  uint16 `cbor:"from,omitempty"` // that has it until it has handed it over; 0: none
	Pin   uint16 `cbor:"pin,omitempty"`  // that it was moved to by hand; 0: none
}

// Host is a region that takes shards.
type Host struct {
	Node    uint16 `cbor:"node"`
	Weight  int    `cbor:"weight"`
	Leaving bool   `cbor:"leaving,omitempty"`
	Shards  int    `cbor:"shards"` // that it has or is about to hand over
}

// State is what a region knows.
type State struct {
	Hosts   []Host `cbor:"hosts"`
	Shards  int    `cbor:"shards"`            // in all
	Owned   int    `cbor:"owned"`             // that are here, until they are handed over
	Moving  int    `cbor:"moving"`            // that are about to move, in all
	Waiting int    `cbor:"waiting"`           // messages that wait here for shards
	Keys    int    `cbor:"keys"`              // that have an actor here
	Pending bool   `cbor:"pending"`           // something is under way here
	Leaving bool   `cbor:"leaving,omitempty"` // this node is drained
	Wrong   string `cbor:"wrong,omitempty"`   // why the other fields may be too low

	Starting  int    `cbor:"starting,omitempty"`  // keys that are to live, and wait for their start here
	Unstarted string `cbor:"unstarted,omitempty"` // why they wait longer than for their turn

	In      uint64 `cbor:"in"`       // shards that were begun here, since the region is there
	Out     uint64 `cbor:"out"`      // that were handed over
	GivenUp uint64 `cbor:"given_up"` // that could not be handed over, since their keys did not rest
	Stolen  uint64 `cbor:"stolen"`   // that a table has given to others without this node; they were kept
}

// Where says where the shard of a key is, as the region knows it; it may be asked on any node.
func Where(ctx context.Context, sys *host.System, region host.Ref, key string) (Place, error) {
	return asked[Place](ctx, sys, region, "where", wish{Key: key})
}

// Move has the shard of a key moved to a node, and stay there as long as the node takes shards; 0: back to where its hash says.
func Move(ctx context.Context, sys *host.System, region host.Ref, key string, node uint16) (Place, error) {
	return asked[Place](ctx, sys, region, "move", wish{Key: key, Node: node})
}

// Drain has all shards of this node moved to others, or with false lets it have some again. It has ended when the State says
// that none are owned. A node without which there is no other keeps its shards.
func Drain(ctx context.Context, sys *host.System, region host.Ref, drain bool) (State, error) {
	return asked[State](ctx, sys, region, "drain", wish{On: drain})
}

// Look returns what the region knows.
func Look(ctx context.Context, sys *host.System, region host.Ref) (State, error) {
	return asked[State](ctx, sys, region, "state", wish{})
}

type wish struct {
	Key  string `cbor:"key,omitempty"`
	Node uint16 `cbor:"node,omitempty"`
	On   bool   `cbor:"on,omitempty"`
}

// doors are the keys of regions of this process: who has one is Go code that has the system. Another node may state any sender.
var doors sync.Map // of door to uint64

type door struct {
	sys    *host.System
	region abi.Ref
}

func asked[T any](ctx context.Context, sys *host.System, region host.Ref, op string, w wish) (T, error) {
	if _, begun := doors.Load(door{sys, region.UID()}); !begun && (op == "move" || op == "drain") {
		var none T
		return none, ErrNotBegun
	}
	return host.AskAs[T](ctx, sys, region, manageOrder(sys, region, op, w))
}

// ErrNotBegun says that what was to move shards is no region of this process, or one that has just started: then it can be told
// again soon.
var ErrNotBegun = errors.New("shard: there is no region, or it has not begun yet")

func manageOrder(sys *host.System, region host.Ref, op string, w wish) host.Headed {
	key, _ := doors.Load(door{sys, region.UID()})
	n, _ := key.(uint64)
	return host.Headed{Value: w, Headers: map[string]string{Header: op + ":" + strconv.FormatUint(n, 16)}}
}

// manage carries out an order of Go code that has the system.
func (r *region) manage(ctx *host.Context, m host.Message, op string) {
	op, key, _ := strings.Cut(op, ":")
	if n, err := strconv.ParseUint(key, 16, 64); err != nil || n == 0 || n != r.st.key {
		ctx.Head().Unhandled()
		return
	}
	answer, err := r.managed(ctx, m, op)
	switch {
	case m.Correlation == 0:
	case err != nil:
		_ = ctx.ReplyError(err.Error())
	default:
		_ = ctx.Reply(answer)
	}
}

// errNoTable says that the region has begun a short while ago, or that no node takes shards of the kind.
var errNoTable = errors.New("shard: the table of the kind is not known yet: try again")

func (r *region) managed(ctx *host.Context, m host.Message, op string) (any, error) {
	var w wish
	if err := m.Decode(&w); err != nil {
		return nil, fmt.Errorf("shard: the order is malformed: %w", err)
	}
	switch {
	case op == "state":
		return r.state(), nil
	case r.wrong != nil:
		return nil, r.wrong
	case r.table == nil && op != "drain":
		return nil, errNoTable
	}
	s := 0
	if r.single == "" && (op == "where" || op == "move") {
		name, err := keyed.Name(w.Key)
		if err != nil {
			return nil, err
		}
		s = Of(name, r.shards)
	}
	switch op {
	case "where":
	case "move":
		here := w.Node == 0
		for _, h := range r.table.hosts {
			here = here || h.Ref.Node() == w.Node && !h.Leaving
		}
		if !here {
			return nil, fmt.Errorf("shard: node %d takes no shards of the kind", w.Node)
		}
		r.pins[s] = w.Node
		delete(r.until, s)
		r.write(ctx)
	case "drain":
		r.me.Leaving, r.st.leaving = w.On, w.On
		r.write(ctx)
		return r.state(), nil
	default:
		return nil, fmt.Errorf("shard: there is no order %.40q", op)
	}
	p := r.table.places[s]
	return Place{s, p.epoch, p.owner.Node(), p.from.Node(), p.pin}, nil
}

// state is what the region knows.
func (r *region) state() State {
	x := State{Shards: r.shards, Waiting: r.waits, Keys: len(r.Names()), Pending: len(r.open) > 0 || r.putting, Leaving: r.me.Leaving}
	x.In, x.Out, x.GivenUp, x.Stolen = r.st.counts.In, r.st.counts.Out, r.st.counts.GivenUp, r.st.counts.Stolen
	if r.wrong != nil {
		x.Wrong = r.wrong.Error()
	}
	x.Starting = len(r.mem.starts) + len(r.mem.ill)
	if r.mem.full != nil && x.Starting > 0 {
		x.Unstarted = r.mem.full.Error()
	}
	if r.table == nil {
		if r.wrong == nil && r.hosts() { // one that takes none has none
			x.Wrong = errNoTable.Error()
		}
		return x
	}
	held := map[abi.Ref]int{}
	for _, p := range r.table.places {
		who := p.owner
		if p.from != 0 {
			who = p.from
			x.Moving++
		}
		held[who]++
	}
	x.Owned = held[r.self.UID()]
	for _, h := range r.table.hosts {
		x.Hosts = append(x.Hosts, Host{h.Ref.Node(), h.Weight, h.Leaving, held[h.Ref]})
	}
	return x
}
