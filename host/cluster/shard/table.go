package shard

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
)

// Bounds of a table.
const (
	MaxShards = 4096
	maxHosts  = abi.MaxNode
	maxTable  = 256 << 10 // bytes
	MaxWeight = 100

	mostEpochs = 8 // of a shard, that one change of a table begins, and more
)

// Table says which region has each shard of a kind. It is one value of the directory: whoever changes it has seen all of it.
type table struct {
	hosts    []hosting // sorted by ref
	places   []place   // one for each shard
	revision uint64
}

// hosting is a region that takes shards.
type hosting struct {
	Ref     abi.Ref `cbor:"1,keyasint"`
	Born    uint64  `cbor:"2,keyasint"` // the life of its node
	Weight  int     `cbor:"3,keyasint"`
	Leaving bool    `cbor:"4,keyasint,omitempty"` // it is to have no shards
	Passed  uint64  `cbor:"5,keyasint,omitempty"` // of a kind whose owners are fenced: its node's count when it began to take shards
}

// place is where a shard is.
type place struct {
	owner abi.Ref // who has it, or gets it from from
	from  abi.Ref // who has it until it has handed it over; 0: nobody
	epoch uint64  // grows with each change of owner and from, but not when from has handed over
	pin   uint16  // the node that it should be on; 0: where its hash says
}

// written is a table in the directory: refs are positions in Hosts, counted from 1.
type written struct {
	Hosts  []hosting `cbor:"1,keyasint"`
	Owners []int     `cbor:"2,keyasint"`
	From   []int     `cbor:"3,keyasint"`
	Epochs []uint64  `cbor:"4,keyasint"`
	Pins   []uint16  `cbor:"5,keyasint,omitempty"`
}

var decoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: MaxShards, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

func (t *table) index(ref abi.Ref) int {
	i, ok := slices.BinarySearchFunc(t.hosts, ref, func(h hosting, r abi.Ref) int { return cmp.Compare(h.Ref, r) })
	if !ok {
		return -1
	}
	return i
}

func (t *table) host(ref abi.Ref) (hosting, bool) {
	if i := t.index(ref); i >= 0 {
		return t.hosts[i], true
	}
	return hosting{}, false
}

func (t *table) encode() []byte {
	w := written{Hosts: t.hosts, Owners: []int{}, From: []int{}, Epochs: []uint64{}}
	if w.Hosts == nil {
		w.Hosts = []hosting{}
	}
	pins := make([]uint16, len(t.places))
	for i, p := range t.places {
		w.Owners, w.From, w.Epochs = append(w.Owners, t.index(p.owner)+1), append(w.From, t.index(p.from)+1), append(w.Epochs, p.epoch)
		if p.pin != 0 {
			pins[i], w.Pins = p.pin, pins
		}
	}
	b, err := cbor.Marshal(&w)
	if err != nil {
		panic(err) // of numbers
	}
	return b
}

// decodeTable reads an entry of the directory.
func decodeTable(e cluster.Entry) (*table, error) {
	var w written
	if len(e.Value) > maxTable {
		return nil, fmt.Errorf("shard: the table %s has %d bytes, at most %d", e.Key, len(e.Value), maxTable)
	}
	if err := decoder.Unmarshal(e.Value, &w); err != nil {
		return nil, fmt.Errorf("shard: the table %s: %w", e.Key, err)
	}
	n := len(w.Owners)
	bad := n < 1 || n > MaxShards || len(w.From) != n || len(w.Epochs) != n || len(w.Hosts) > maxHosts || w.Pins != nil && len(w.Pins) != n
	for i, h := range w.Hosts {
		bad = bad || h.Ref.Node() == 0 || h.Weight < 1 || h.Weight > MaxWeight || i > 0 && w.Hosts[i-1].Ref >= h.Ref
	}
	if bad {
		return nil, fmt.Errorf("shard: the table %s is not one that a node writes", e.Key)
	}
	t := &table{hosts: w.Hosts, places: make([]place, n), revision: e.Revision}
	for i := range t.places {
		o, f := w.Owners[i], w.From[i]
		if o < 0 || f < 0 || o > len(w.Hosts) || f > len(w.Hosts) || o == f && o != 0 || o == 0 && f != 0 || w.Pins != nil && w.Pins[i] > abi.MaxNode {
			return nil, fmt.Errorf("shard: the table %s: shard %d is where none can be", e.Key, i)
		}
		p := &t.places[i]
		if p.epoch = w.Epochs[i]; p.epoch > mostEpochs*e.Revision {
			return nil, fmt.Errorf("shard: the table %s: shard %d has epoch %d, which no node has given it", e.Key, i, p.epoch)
		}
		if o > 0 {
			p.owner = w.Hosts[o-1].Ref
		}
		if f > 0 {
			p.from = w.Hosts[f-1].Ref
		}
		if w.Pins != nil {
			p.pin = w.Pins[i]
		}
	}
	return t, nil
}

func (t *table) clone() *table {
	c := *t
	c.hosts, c.places = slices.Clone(t.hosts), slices.Clone(t.places)
	return &c
}

func (t *table) same(o *table) bool {
	return slices.Equal(t.hosts, o.hosts) && slices.Equal(t.places, o.places)
}

// Of is the shard of a key's name among n.
func Of(name string, n int) int { return int(cluster.Hash(name) % uint64(n)) }

// ideal is the region that a shard should be on: the one that its pin names, or else the winner of weighted rendezvous hashing
// (Schindelhauer and Schomaker's logarithmic method), so that a region that comes or goes moves its own shards only. Those that
// leave count only if there are no others. It returns 0 if there are none.
func (t *table) ideal(s int) (best abi.Ref) {
	score := math.Inf(-1)
	staying := slices.ContainsFunc(t.hosts, func(h hosting) bool { return !h.Leaving })
	for _, h := range t.hosts {
		if h.Leaving && staying {
			continue
		}
		if p := t.places[s].pin; p != 0 && h.Ref.Node() == p {
			return h.Ref
		}
		u := (float64(cluster.Mix(uint64(h.Ref)^cluster.Mix(h.Born)^cluster.Mix(uint64(s)+1)<<1)>>11) + 0.5) / (1 << 53)
		if x := -float64(h.Weight) / math.Log(u); x > score {
			best, score = h.Ref, x
		}
	}
	return best
}
