//go:build !wasip1

package actortest

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/internal/bridge"
	"github.com/wasmactors/wasmactors/guest-sdk/keyed"
)

// Tester is the ref that messages come from and that asks are answered to, if the
// test does not name another.
const Tester actor.Ref = 1

// Actor is one actor under test. It is for one goroutine at a time.
type Actor struct {
	t       testing.TB
	config  config
	start   abi.Start
	state   any // the SDK's
	first   *Turn
	now     time.Time
	failure *abi.Failure // of the turn before, until the restart
	ended   bool

	asked   uint64 // correlations that Send has used
	turns   uint64
	order   uint64 // of what becomes due at the same time
	timers  map[uint64]*due
	asks    map[uint64]*due
	receive *due
	stash   []abi.Envelope
	kept    kept

	world *World // nil: the test is everyone else
}

type config struct {
	name   string
	parent actor.Ref
	ref    actor.Ref
	seed   uint64
	at     time.Time
	args   actor.Encoder
	key    string

	services []abi.Service // sorted by name
	without  []string      // names
	kept     kept          // what it has stored before
}

// Option changes how an actor is spawned.
type Option func(*config)

// Args is what the actor is started with; null if there are none.
func Args(v actor.Encoder) Option { return func(c *config) { c.args = v } }

// Seed chooses another sequence of random numbers.
func Seed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// At is the clock at the start; without it 2000-01-01 UTC.
func At(t time.Time) Option { return func(c *config) { c.at = t } }

// Named is the last part of the path, which is /user/ and the type without it.
// Actors of the same name have the same ref.
func Named(name string) Option { return func(c *config) { c.name = name } }

// Key makes it the keyed actor of a key: actor.Context.Key is the key. Its path is /user/, the type, or what
// Named says, and the name of the key.
func Key(key string) Option { return func(c *config) { c.key = key } }

// Parent is the ref of the actor's parent; without it there is none. In a [World] it is the
// parent that the actor is started below.
func Parent(ref actor.Ref) Option { return func(c *config) { c.parent = ref } }

// Service gives the actor, and what it spawns, the grant of a service, whose requests go to ref. In a [World]
// use [World.Serve].
func Service(name string, ref actor.Ref) Option {
	return func(c *config) {
		c.services = append(slices.Clone(c.services), abi.Service{Name: name, Ref: ref})
		slices.SortFunc(c.services, func(a, b abi.Service) int { return strings.Compare(a.Name, b.Name) })
	}
}

// Without withholds the grants of these services of its [World] from the actor and what it spawns.
func Without(names ...string) Option {
	return func(c *config) { c.without = append(slices.Clone(c.without), names...) }
}

// Spawn starts an actor of a registered type. How its start went is in
// [Actor.Started].
func Spawn(t testing.TB, typ string, options ...Option) *Actor {
	t.Helper()
	c := config{name: typ, at: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, o := range options {
		o(&c)
	}
	c.keyed(t)
	return spawn(t, typ, c)
}

// keyed puts the name of the key, if there is one, below the name.
func (c *config) keyed(t testing.TB) {
	t.Helper()
	if c.key == "" {
		return
	}
	name, err := keyed.Name(c.key)
	if err != nil {
		t.Fatalf("actortest: %.40q: %v", c.key, err)
	}
	c.name += "/" + name
}

// Child starts the child that a turn has spawned, under the ref that the parent
// knows it by.
func (a *Actor) Child(s Spawned) *Actor {
	a.t.Helper()
	name := s.Name
	if name == "" {
		name = "child"
	}
	c := a.config
	c.name, c.key, c.parent, c.ref, c.at, c.args = a.config.name+"/"+name, "", a.Ref(), s.Ref, a.now, actor.Raw(s.Args)
	return spawn(a.t, s.Type, c)
}

func spawn(t testing.TB, typ string, c config) *Actor {
	t.Helper()
	a := newActor(t, typ, c)
	a.first = a.begin()
	return a
}

// newActor prepares an actor that is still to begin.
func newActor(t testing.TB, typ string, c config) *Actor {
	t.Helper()
	known := false
	for _, name := range bridge.Loop.Types() {
		known = known || name == typ
	}
	if !known {
		t.Fatalf("actortest: no type %q is registered; there are: %s", typ, strings.Join(bridge.Loop.Types(), ", "))
	}
	if c.ref == 0 {
		sum := hash(c.name)
		c.ref = actor.Ref(binary.LittleEndian.Uint64(sum[:])>>10 | 1<<53) // not the tester
	}
	a := &Actor{t: t, config: c, now: c.at, timers: map[uint64]*due{}, asks: map[uint64]*due{}, kept: c.kept}
	a.start = abi.Start{Type: typ, Path: "wasm://test/user/" + c.name + "#" + decimal(uint64(c.ref)), Self: c.ref, Parent: c.parent,
		Args: encode(c.args), Key: c.key}
	for _, s := range c.services {
		if !slices.Contains(c.without, s.Name) {
			a.start.Services = append(a.start.Services, s)
		}
	}
	key := hash(c.name, c.seed)
	copy(a.start.RefKey[:], key[:])
	return a
}

// begin runs the start turn of an incarnation.
func (a *Actor) begin() *Turn {
	a.t.Helper()
	a.state = nil
	seed := hash(a.config.name, a.config.seed, a.start.Incarnation+1)
	copy(a.start.Seed[:], seed[:])
	turn := a.run(abi.Envelope{Kind: abi.KindStart, Payload: abi.AppendStart(nil, &a.start)})
	turn.Recovered = a.feed(turn)
	return turn
}

// Restart makes a new actor, as a supervisor does after a failure, and returns
// the turn of its start. Timers and open asks are gone; what was stashed comes
// back.
func (a *Actor) Restart() *Turn {
	a.t.Helper()
	if a.ended {
		a.t.Fatal("actortest: the actor has ended: it cannot be restarted")
	}
	a.start.Incarnation++
	a.start.Reason = "restarted by the test"
	if a.failure != nil {
		a.start.Reason = a.failure.Error()
	}
	a.failure, a.receive = nil, nil
	clear(a.timers)
	clear(a.asks)
	turn := a.begin()
	if a.failure == nil {
		a.unstash(turn)
	}
	return turn
}

// Started is the turn of the first start.
func (a *Actor) Started() *Turn { return a.first }

// Ref is the actor's ref.
func (a *Actor) Ref() actor.Ref { return a.start.Self }

// Now is the actor's clock.
func (a *Actor) Now() time.Time { return a.now }

// Ended reports whether the actor was stopped, by itself or by [Actor.Stop].
func (a *Actor) Ended() bool { return a.ended }

// Actor is the Go value that the factory has made for this incarnation.
func (a *Actor) Actor() actor.Actor {
	v, _ := bridge.Loop.Actor(a.state).(actor.Actor)
	if x, is := v.(interface{ Unwrap() actor.Actor }); is {
		return x.Unwrap()
	}
	return v
}

// hash is the SHA-256 of a name and numbers.
func hash(name string, numbers ...uint64) [sha256.Size]byte {
	in := []byte(name)
	for _, n := range numbers {
		in = binary.LittleEndian.AppendUint64(in, n)
	}
	return sha256.Sum256(in)
}
