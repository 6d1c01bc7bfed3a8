// Package saved has what is stored of actors, as plain values with a codec: of a guest between two turns, and of all durable
// actors at one point of the log. What is read is checked as far as that does not depend on the actor.
package saved

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/timers"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// Version is the version of the bytes. It goes up with every field: a host that does not know all fields
// would restore a different actor. Version 2 has the lookouts, version 3 mailbox and life, version 4 the
// limits, version 5 the code of the next incarnation, version 6 what an actor has for going back to its old code, version 7 what is noted about
// an actor with the actor instead of with its parent, version 8 what was asked of services, version 9 the rules. Versions from Oldest on are
// read.
const (
	Version = 9
	Oldest  = 3
)

// State is what the bytes hold. Times are absolute, so that what was due meanwhile is
// due at once.
type State struct {
	Version     int      `cbor:"1,keyasint"`
	Ref         abi.Ref  `cbor:"2,keyasint"`
	Type        string   `cbor:"3,keyasint"`
	Incarnation uint64   `cbor:"4,keyasint"`
	Turns       uint64   `cbor:"5,keyasint"`
	Spawned     uint64   `cbor:"6,keyasint"` // children that it has asked for
	Guest       []byte   `cbor:"7,keyasint"` // see sandbox.AppendSnapshot
	Receive     int64    `cbor:"8,keyasint"` // receive timeout, ns; 0: none
	Timers      []Timer  `cbor:"9,keyasint"`
	Asks        []Ask    `cbor:"10,keyasint"`
	Watches     []Watch  `cbor:"11,keyasint"`
	Stash       []Mail   `cbor:"12,keyasint"`
	Children    []Child  `cbor:"13,keyasint"`
	Lookouts    []string `cbor:"14,keyasint"` // paths with patterns, as it has written them

	Whole *Whole `cbor:"15,keyasint,omitempty"` // of an actor in a checkpoint

	Requests []Request `cbor:"16,keyasint,omitempty"` // of its asks
	Asked    uint64    `cbor:"17,keyasint,omitempty"` // number of the last request of its life
}

// Request is what was asked of a service.
type Request struct {
	_           struct{} `cbor:",toarray"`
	Correlation uint64
	To          abi.Ref
	Number      uint64
	Key         []byte
	Headers     []byte
	Payload     []byte
}

type Timer struct {
	_       struct{} `cbor:",toarray"`
	Key     uint64
	Due     int64 // ns since 1970
	Period  int64 // ns
	Payload []byte
	Headers []byte
	Pace    uint8
	Waits   bool // its envelope waits in the mailbox
}

type Ask struct {
	_           struct{} `cbor:",toarray"`
	Correlation uint64
	Target      abi.Ref
	Answerers   []abi.Ref
	Due         int64
	Trace       []byte
	Observers   []abi.Ref
	Waits       bool // the envelope of its end waits in the mailbox
}

type Watch struct {
	_    struct{} `cbor:",toarray"`
	Ref  abi.Ref
	Path string
}

type Mail struct {
	_           struct{} `cbor:",toarray"`
	Kind        abi.Kind
	Flags       uint16
	Sender      abi.Ref
	SenderPath  string
	Correlation uint64
	Headers     []byte
	Payload     []byte
	Due         int64
	Position    uint64
	Mark        Mark
	Incarnation uint64 // stashed
	Text        string // stashed, ended: the path
	Attempts    int    // how often its turn has failed
}

// Mark is what travels beside an envelope within the host. It is in stores: a number never gets another meaning.
type Mark uint8

const (
	Unmarked  Mark = 0
	Current   Mark = 1 // it is of the timer, the ask or the receive timeout that is there
	Stashed   Mark = 2
	Lasting   Mark = 3 // stashed, and valid in every incarnation
	EndedPath Mark = 4 // the path of who has ended
)

// Child is a child and what its supervisor has noted about it.
type Child struct {
	_           struct{} `cbor:",toarray"`
	Ref         abi.Ref
	Name        string
	Type        string
	Args        []byte
	Lifetime    uint8
	Significant bool
	Record      supervision.ChildState
	Orders      uint64
	Suspended   bool
}

// ErrState wraps the reason why bytes are no state of an actor.
var ErrState = errors.New("host: not the state of this actor")

// The lists of a state have usualElements at most, and a long mailbox mostElements: limits.mailbox is 16 Mi at most, and more may be forced in.
// A message has leastMail bytes at least. So the bound grows with the bytes: else some that claim many empty elements would have the host make
// room for far more.
const (
	usualElements = 1 << 20
	mostElements  = 1 << 25
	leastMail     = 14 // a head, and 13 values
)

// Encoder writes states.
var Encoder = func() cbor.EncMode {
	enc, err := cbor.EncOptions{Sort: cbor.SortCoreDeterministic, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden}.EncMode()
	if err != nil {
		panic(err)
	}
	return enc
}()

// decoders read states, each twice as many elements as the one before.
var decoders = func() (all []cbor.DecMode) {
	for most := usualElements; most <= mostElements; most *= 2 {
		dec, err := cbor.DecOptions{
			DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
			ExtraReturnErrors: cbor.ExtraDecErrorUnknownField, MaxNestedLevels: 8, MaxArrayElements: most, MaxMapPairs: 64,
		}.DecMode()
		if err != nil {
			panic(err)
		}
		all = append(all, dec)
	}
	return all
}()

// unmarshal reads a state, or a part of one.
func unmarshal(b []byte, v any) error {
	i := 0
	for most := usualElements; i < len(decoders)-1 && most < len(b)/leastMail; most *= 2 {
		i++
	}
	return decoders[i].Unmarshal(b, v)
}

// Decode reads what save has written and checks all that does not depend on the
// actor. b must not change afterwards.
func Decode(b []byte) (*State, error) {
	no := func(why string, args ...any) (*State, error) {
		return nil, fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(why, args...))
	}
	s := &State{}
	if err := unmarshal(b, s); err != nil {
		var other struct {
			Version int `cbor:"1,keyasint"`
		}
		if s.Version == 0 && cbor.Unmarshal(b, &other) == nil {
			s.Version = other.Version
		}
		if s.Version == 0 || s.Version >= Oldest && s.Version <= Version {
			return no("%v", err)
		}
	}
	switch {
	case s.Version < Oldest || s.Version > Version:
		return no("version %d, this host reads versions %d to %d", s.Version, Oldest, Version)
	case s.Ref == 0 || !abi.ValidTypeName([]byte(s.Type)):
		return no("it has no ref or no type")
	case s.Receive < 0 || s.Receive > int64(abi.MaxDuration):
		return no("a receive timeout of %d ns", s.Receive)
	}
	for i, t := range s.Timers {
		if t.Period < 0 || t.Period > int64(abi.MaxDuration) || t.Pace > uint8(timers.FixedRate) || i > 0 && t.Key <= s.Timers[i-1].Key {
			return no("timer %d is out of order or out of range", i)
		}
	}
	for i, a := range s.Asks {
		if a.Correlation == 0 || i > 0 && a.Correlation <= s.Asks[i-1].Correlation {
			return no("ask %d is out of order", i)
		}
	}
	twice := map[uint64]bool{}
	for i, r := range s.Requests {
		_, asked := slices.BinarySearchFunc(s.Asks, r.Correlation, func(a Ask, c uint64) int { return cmp.Compare(a.Correlation, c) })
		had := twice[r.Correlation]
		twice[r.Correlation] = true
		switch {
		case !asked || had || r.To == 0 || len(r.Key) != mailbox.EffectKey:
			return no("request %d belongs to no ask, or has no key", i)
		case r.Number == 0 || r.Number > s.Asked || i > 0 && r.Number <= s.Requests[i-1].Number:
			return no("request %d is out of order", i)
		}
	}
	for i, w := range s.Watches {
		if w.Ref == 0 || i > 0 && w.Ref <= s.Watches[i-1].Ref {
			return no("watch %d is out of order", i)
		}
	}
	for i, text := range s.Lookouts {
		if text == "" || len(text) > abi.MaxPath || i > 0 && text <= s.Lookouts[i-1] {
			return no("pattern %d for future actors is out of order or out of range", i)
		}
	}
	for i := range s.Stash {
		if why := s.Stash[i].wrong(); why != "" {
			return no("stashed message %d is %s", i, why)
		}
	}
	seen := map[string]bool{}
	for i, k := range s.Children {
		if k.Ref == 0 || seen[k.Name] || k.Name == "" || supervision.Lifetime(k.Lifetime) > supervision.Temporary {
			return no("child %d is malformed", i)
		}
		seen[k.Name] = true
	}
	if s.Whole != nil {
		if why := s.Whole.wrong(); why != "" {
			return no("%s", why)
		}
	}
	return s, nil
}

// Part implements rebuild.Part.
func Part(b []byte) (rebuild.PartOf, error) {
	var head Head
	if err := unmarshal(b, &head); err == nil && head.Version >= Oldest && head.Version <= Version {
		return rebuild.PartOf{Busy: busy(&head.Super)}, nil
	}
	s, err := Decode(b)
	if err != nil || s.Whole == nil {
		return rebuild.PartOf{}, errors.Join(err, ErrState)
	}
	of := rebuild.PartOf{
		Path: s.Whole.Path, Type: s.Type, Ref: s.Ref, Parent: s.Whole.Parent, Turns: s.Turns, Codes: [3][]byte{s.Whole.Code, s.Whole.Next},
		Name: s.Whole.name(), Busy: busy(&s.Whole.Super), Incarnation: s.Incarnation, Held: len(s.Guest),
	}
	if s.inert() {
		of.Sort = s.sort()
	}
	of.Steady = s.steady()
	if s.Whole.Trial != nil {
		of.Codes[2] = s.Whole.Trial.Code
	}
	return of, nil
}

// Bytes is the state that save writes, encoded.
func Bytes(save func(*State) error) ([]byte, error) {
	s := &State{}
	if err := save(s); err != nil {
		return nil, err
	}
	return Encoder.Marshal(s)
}
