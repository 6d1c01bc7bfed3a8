package simnet

import (
	"slices"
	"time"
)

// values are what services of all machines share under a name, as service.Shared says.
type values struct {
	entries map[string]entry
	keys    []string // that there ever were, in order
	last    uint64
	watches []*watch
}

type entry struct {
	value []byte
	at    uint64    // the revision; 0: there is none
	until time.Time // when it is forgotten; zero: never
}

type watch struct {
	by   *Machine
	each func(string, []byte, uint64)
	over bool
}

// Shared is a machine's way to what services of all machines share under a name. A machine that is cut off gets an error after two
// seconds. It implements service.Shared, for any goroutine.
type Shared struct {
	m     *Machine
	name  string
	lease time.Duration
	acts  func() bool
}

// Shared is the way to what is shared under a name. lease is that of the machine's node, and acts whether it may act: a node that must
// not act neither reads nor writes.
func (m *Machine) Shared(name string, lease time.Duration, acts func() bool) *Shared {
	return &Shared{m, name, lease, acts}
}

// sharedTime is how long a request takes to the values, and as long back.
const sharedTime = 500 * time.Microsecond

// Lease implements service.Shared.
func (s *Shared) Lease() time.Duration { return s.lease }

// do has f done with the values, some time later, and then what it returns on the machine.
func (s *Shared) do(f func(*values) func(), fails func(error)) {
	w := s.m.world
	if s.m.buried { // nothing is put into the world's time any more
		return
	}
	w.Clock.AfterFunc(sharedTime, func() {
		switch {
		case s.m.unreached(func() { fails(ErrDirectory) }):
		case !s.m.Runs():
			s.m.run(func() { s.do(f, fails) })
		case !s.acts():
			fails(ErrDirectory)
		default:
			v := w.shared[s.name]
			if v == nil {
				v = &values{entries: map[string]entry{}}
				w.shared[s.name] = v
			}
			after := sharedTime
			if w.Faults.Late > 0 { // nothing is drawn otherwise
				after += w.late(w.Faults.Late)
			}
			if w.Faults.Fail > 0 && w.chance(w.Faults.Fail) {
				if w.chance(500) {
					f(v)
				}
				w.Clock.AfterFunc(after, func() { s.m.run(func() { fails(ErrDirectory) }) })
				return
			}
			then := f(v)
			w.Clock.AfterFunc(after, func() { s.m.run(then) })
		}
	})
}

// of is the entry of a key now.
func (v *values) of(key string, now time.Time) entry {
	e := v.entries[key]
	if !e.until.IsZero() && !now.Before(e.until) {
		return entry{}
	}
	return e
}

// Put implements service.Shared.
func (s *Shared) Put(key string, value []byte, revision uint64, stay int64, done func(uint64, bool, error)) {
	value = slices.Clone(value)
	s.do(func(v *values) func() {
		now := s.m.world.Clock.Now()
		if v.of(key, now).at != revision {
			return func() { done(0, false, nil) }
		}
		if _, was := v.entries[key]; !was {
			v.keys = append(v.keys, key)
		}
		v.last++
		e := entry{value: value, at: v.last}
		if stay > 0 {
			e.until = now.Add(time.Duration(stay) * time.Second)
		}
		v.entries[key] = e
		for _, x := range v.watches {
			x.tell(key, e)
		}
		return func() { done(e.at, true, nil) }
	}, func(err error) { done(0, false, err) })
}

func (x *watch) tell(key string, e entry) {
	x.by.order(func() {
		if !x.over {
			x.each(key, slices.Clone(e.value), e.at)
		}
	})
}

// Get implements service.Shared.
func (s *Shared) Get(key string, done func([]byte, uint64, error)) {
	s.do(func(v *values) func() {
		e := v.of(key, s.m.world.Clock.Now())
		return func() { done(slices.Clone(e.value), e.at, nil) }
	}, func(err error) { done(nil, 0, err) })
}

// Watch implements service.Shared. What a machine that is cut off has missed it is told when it is not any more.
func (s *Shared) Watch(each func(string, []byte, uint64), ready func()) (stop func()) {
	x := &watch{by: s.m, each: each}
	begin := func(v *values) func() {
		now := s.m.world.Clock.Now()
		for _, key := range v.keys {
			if e := v.of(key, now); e.at != 0 {
				x.tell(key, e)
			}
		}
		s.m.order(func() {
			if !x.over {
				ready()
			}
		})
		v.watches = append(v.watches, x)
		return func() {}
	}
	var try func()
	try = func() {
		s.do(begin, func(error) { s.m.world.Clock.AfterFunc(time.Second, func() { s.m.run(try) }) })
	}
	try()
	return func() {
		if s.m.buried {
			return
		}
		s.m.world.Clock.AfterFunc(0, func() {
			x.over = true
			if v := s.m.world.shared[s.name]; v != nil {
				v.watches = slices.DeleteFunc(v.watches, func(o *watch) bool { return o == x })
			}
		})
	}
}
