package persist

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// MaxState bounds the bytes of a state that is kept whole, see [Latest]. A message of 1 MiB has room for it and what comes with it.
const MaxState = MaxEvent - 4<<10

// Latest is how far an actor has come that keeps its latest state, and not what has led to it, without the actor. A state is an event:
// it has the next number, and whatever was stored before is deleted in the same turn.
type Latest struct {
	Type    string // of the states, such as cart.state: it is stored with them
	Version uint16 // in which they are written now
	// Step is the migration of a state from a version to the next one; nil, or a nil function: there is none.
	Step func(from uint16) func(payload []byte) ([]byte, error)
	// Events knows what was stored as events before, for the function apply of Replay; nil: nothing was.
	Events *Schema

	last     uint64
	there    bool // a state is kept, or something else that was stored before
	known    bool // kept and tags are what it is
	kept     []byte
	tags     []string
	finished bool
	loading  bool
	entries  [3]Entry
}

// Check says whether the definition can be one: the error is for who has written it.
func (c *Latest) Check() error {
	switch {
	case !abi.ValidMessageName(c.Type):
		return errors.New("persist: " + strconv.Quote(c.Type) + " cannot be the type of a state: a name such as cart.state")
	case c.Version == 0:
		return errors.New("persist: versions of a state begin with 1, and end with 65535")
	}
	return nil
}

// Last is the number of the last event: the revision of the state.
func (c *Latest) Last() uint64 { return c.last }

// There reports whether anything is kept.
func (c *Latest) There() bool { return c.there }

// Recovered reports whether the recovery has ended.
func (c *Latest) Recovered() bool { return c.finished && !c.loading }

// Rests takes a state as what there is already, although nothing is kept: it is stored when it has changed.
func (c *Latest) Rests(payload []byte) {
	c.known, c.kept, c.tags = true, append(c.kept[:0], payload...), nil
}

// Keep is what has to be stored so that payload is what is kept: nothing if it is already, with the same tags. No payload is
// [Latest.Forget]. What it returns is valid until the next call, and aliases payload and tags. After an error, a *Rejected or
// ErrRecovering, nothing has changed.
func (c *Latest) Keep(payload []byte, tags []string) ([]Entry, error) {
	switch {
	case !c.Recovered():
		return nil, ErrRecovering
	case len(payload) == 0:
		return c.Forget()
	case c.known && same(payload, c.kept) && (!c.there || sameTags(tags, c.tags)):
		return nil, nil
	case len(payload) > MaxState:
		return nil, &Rejected{"the state has " + strconv.Itoa(len(payload)) + " bytes, of at most " + strconv.Itoa(MaxState) + ": what grows without end is kept elsewhere, or in several actors"}
	}
	e := Event{Number: c.last + 1, Type: c.Type, Version: c.Version, Tags: tags, Payload: payload}
	if why := e.check(); why != "" {
		return nil, &Rejected{why}
	}
	list := c.deletes()
	c.entries[len(list)] = Entry{Kind: EntryEvent, Event: e}
	c.last, c.there, c.known = e.Number, true, true
	c.kept, c.tags = append(c.kept[:0], payload...), append(c.tags[:0], tags...)
	return c.entries[:len(list)+1], nil
}

// same is bytes.Equal, which guests in Go do byte by byte: a state is compared in each turn.
func same(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for len(a) >= 8 {
		if binary.LittleEndian.Uint64(a) != binary.LittleEndian.Uint64(b) {
			return false
		}
		a, b = a[8:], b[8:]
	}
	return string(a) == string(b)
}

func sameTags(a, b []string) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// Forget is what has to be stored so that nothing is kept: nothing if nothing is. Numbers are not used again.
func (c *Latest) Forget() ([]Entry, error) {
	if !c.Recovered() {
		return nil, ErrRecovering
	}
	list := c.deletes()
	c.there, c.known, c.kept, c.tags = false, false, c.kept[:0], c.tags[:0]
	return list, nil
}

// deletes are the entries that delete all that there is. They come first: so whoever reads them knows that nothing before counts.
func (c *Latest) deletes() []Entry {
	if !c.there {
		return nil
	}
	c.entries[0] = Entry{Kind: EntryDeleteEvents, To: c.last}
	c.entries[1] = Entry{Kind: EntryDeleteSnapshots, To: c.last}
	return c.entries[:2]
}

// Restored notes a snapshot of events that the recovery begins with: it was stored before.
func (c *Latest) Restored(s *Snapshot) { c.last, c.there, c.known = s.Number, true, false }

// Replay is for an event of the recovery. load gets a state in the present version; apply, which may be nil, what the Events know.
func (c *Latest) Replay(e *Event, load func(payload []byte) error, apply func(*Event) error) error {
	c.last, c.there, c.known = e.Number, true, false
	c.loading = true
	err := c.replay(e, load, apply)
	c.loading = false
	return err
}

func (c *Latest) replay(e *Event, load func(payload []byte) error, apply func(*Event) error) error {
	if e.Type == c.Type {
		err := c.load(e, load)
		if err == nil && e.Version == c.Version { // otherwise it is stored anew
			c.known, c.kept, c.tags = true, append(c.kept[:0], e.Payload...), append(c.tags[:0], e.Tags...)
		}
		return err
	}
	if c.Events == nil || apply == nil {
		return &UnknownEvent{Number: e.Number, Type: e.Type, Version: e.Version, Kept: c.Type}
	}
	return c.Events.Upcasted(e, func(e *Event) error {
		if e.Type == c.Type {
			return c.load(e, load)
		}
		if err := apply(e); err != nil {
			return failed(e, err)
		}
		return nil
	})
}

func (c *Latest) load(e *Event, load func(payload []byte) error) error {
	payload := e.Payload
	if e.Version > c.Version {
		return failed(e, errors.New("this code reads the state up to version "+strconv.Itoa(int(c.Version))+": it was kept by newer code"))
	}
	for v := e.Version; v < c.Version; v++ {
		var step func([]byte) ([]byte, error)
		if c.Step != nil {
			step = c.Step(v)
		}
		if step == nil {
			return failed(e, errors.New("no migration leads from version "+strconv.Itoa(int(v))+" to "+strconv.Itoa(int(v)+1)+", and this code reads version "+strconv.Itoa(int(c.Version))+": add the migration, what was kept is as it was"))
		}
		var err error
		if payload, err = step(payload); err == nil && abi.Valid(payload) != nil {
			err = errors.New("what it has written is not one item of CBOR")
		}
		if err != nil {
			return failed(e, errors.New("the migration from version "+strconv.Itoa(int(v))+": "+err.Error()))
		}
	}
	if err := load(payload); err != nil {
		return failed(e, err)
	}
	return nil
}

// Finish ends the recovery. last is the number of the last event ever stored.
func (c *Latest) Finish(last uint64) { c.last, c.finished = last, true }
