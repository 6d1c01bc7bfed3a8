package persist

import (
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
)

// Upcaster makes of an old event what the code of today knows: one event or several, which may have other types, or
// none. What it returns is upcast itself unless it is known. Number and Time stay the old event's.
type Upcaster func(e Event) ([]Event, error)

// Schema is what an actor's code knows about events. It is made once and must not change afterwards.
type Schema struct {
	known   []kind
	ups     []upcaster
	adapter func(*Event) error
}

type kind struct {
	name    string
	version uint16
}

type upcaster struct {
	kind
	f Upcaster // nil: such events are dropped
}

// Type adds a type of event in the version that Apply takes and Persist stores. A name that cannot be one of a message, a
// version 0 and a second version of one type panic.
func (s *Schema) Type(name string, version uint16) *Schema {
	if !abi.ValidMessageName(name) || version == 0 {
		panic("persist: " + name + " cannot be a type of event: such as bank.paid, with a version from 1")
	}
	if s.find(name) > 0 {
		panic("persist: the type " + name + " twice")
	}
	s.known = append(s.known, kind{name, version})
	return s
}

// Upcast adds an upcaster for events of a type and a version that Apply does not take. A second one, and one for a
// version that Apply takes, panic.
func (s *Schema) Upcast(name string, version uint16, f Upcaster) *Schema {
	if s.find(name) == version || s.upcaster(name, version) != nil || !abi.ValidMessageName(name) {
		panic("persist: an upcaster for " + abi.JoinMessageType(name, version) + ", which has one, or needs none")
	}
	s.ups = append(s.ups, upcaster{kind{name, version}, f})
	return s
}

// Drop says that events of a type and a version count no more.
func (s *Schema) Drop(name string, version uint16) *Schema { return s.Upcast(name, version, nil) }

// Adapt has f change events before they are checked and stored: it adds tags, or makes another payload.
func (s *Schema) Adapt(f func(*Event) error) *Schema { s.adapter = f; return s }

// find is the known version of a type, 0 if there is none.
func (s *Schema) find(name string) uint16 {
	for i := range s.known {
		if s.known[i].name == name {
			return s.known[i].version
		}
	}
	return 0
}

func (s *Schema) upcaster(name string, version uint16) *upcaster {
	for i := range s.ups {
		if u := &s.ups[i]; u.name == name && u.version == version {
			return u
		}
	}
	return nil
}

// Check says why an event cannot be stored, as a *Rejected, or as what the adapter has returned.
func (s *Schema) Check(e *Event) error {
	if s.adapter != nil {
		if err := s.adapter(e); err != nil {
			return err
		}
	}
	if v := s.find(e.Type); v != e.Version {
		return &Rejected{"the type " + abi.JoinMessageType(e.Type, e.Version) + " is not one that the actor's code knows"}
	}
	if why := e.check(); why != "" {
		return &Rejected{why}
	}
	return nil
}

// Bounds of what becomes of one event.
const (
	mostSteps = 64   // upcasters, one after the other
	mostParts = 1024 // events, and upcasters that are called
)

// Upcasted calls apply with what has become of a stored event: itself, or what upcasters make of it. The error is an
// *UnknownEvent, or one of an upcaster's or of apply.
func (s *Schema) Upcasted(e *Event, apply func(*Event) error) error {
	if s.find(e.Type) == e.Version {
		return apply(e)
	}
	parts := 0
	return s.upcast(e, 0, &parts, apply)
}

func (s *Schema) upcast(e *Event, steps int, parts *int, apply func(*Event) error) error {
	if *parts++; *parts > mostParts {
		return &Rejected{"upcasters make more than " + strconv.Itoa(mostParts) + " events of event " + strconv.FormatUint(e.Number, 10)}
	}
	if s.find(e.Type) == e.Version {
		return apply(e)
	}
	u := s.upcaster(e.Type, e.Version)
	switch {
	case u == nil:
		return &UnknownEvent{Number: e.Number, Type: e.Type, Version: e.Version}
	case u.f == nil:
		return nil
	case steps == mostSteps:
		return &Rejected{"upcasters come to no end with event " + strconv.FormatUint(e.Number, 10)}
	}
	list, err := u.f(*e)
	if err != nil {
		return &Failed{e.Number, e.Type, e.Version, err}
	}
	if len(list) > mostParts {
		return &Rejected{"upcasters make more than " + strconv.Itoa(mostParts) + " events of event " + strconv.FormatUint(e.Number, 10)}
	}
	for i := range list {
		part := &list[i]
		part.ID, part.Number, part.Time, part.Offset = e.ID, e.Number, e.Time, e.Offset
		if err := s.upcast(part, steps+1, parts, apply); err != nil {
			return err
		}
	}
	return nil
}

// Failed is the error of a recovery that an upcaster or Apply has ended.
type Failed struct {
	Number  uint64
	Type    string
	Version uint16
	Err     error
}

func (e *Failed) Error() string {
	return "persist: event " + strconv.FormatUint(e.Number, 10) + " (" + abi.JoinMessageType(e.Type, e.Version) + "): " + e.Err.Error()
}

// failed says of which event an error is, unless it says so itself.
func failed(e *Event, err error) error {
	if _, is := err.(*Failed); is {
		return err
	}
	return &Failed{e.Number, e.Type, e.Version, err}
}

// Unwrap is what was wrong.
func (e *Failed) Unwrap() error { return e.Err }
