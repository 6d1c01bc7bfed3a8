package shard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/supervision"
)

// pad is a memory that all nodes of a simulation have. It answers at once, or when late is called.
type pad struct {
	lives   map[string]bool
	why     error // why nothing is recorded
	waits   bool
	late    []func()
	written int
}

func (*pad) Serve(string, int, uint64, uint64) {}
func (*pad) Release(string, int)               {}

func (p *pad) Recall(_ string, shard int, done func([]string, error)) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.lives)) {
		if Of(name, shards) == shard {
			names = append(names, name)
		}
	}
	done(names, nil)
}

func (p *pad) Lives(_ string, _ int, name string) bool { return p.lives[name] }

func (p *pad) Remember(_ string, _ int, name string, done func(error)) {
	f := func() {
		if p.written++; p.why == nil {
			p.lives[name] = true
		}
		done(p.why)
	}
	if p.waits {
		p.late = append(p.late, f)
		return
	}
	f()
}

func (p *pad) Forget(_ string, _ int, name string) { delete(p.lives, name) }
func (p *pad) Settled(string, int) bool            { return len(p.late) == 0 }

// remembering are three nodes with a pad.
func remembering(t *testing.T, b broken, starts int, change func(keyed.Config) keyed.Config) (*sim, *pad) {
	p := &pad{lives: map[string]bool{}}
	s := newSim(8, map[string]int{}, b)
	t.Cleanup(s.close)
	s.memory = func(c keyed.Config) (keyed.Config, Memory, int) {
		c = c.WithIdle(time.Hour).WithSupervision(supervision.Stopping())
		if change != nil {
			c = change(c)
		}
		return c, p, starts
	}
	for range 3 {
		s.start()
	}
	s.pass(5 * time.Second)
	return s, p
}

func (s *sim) tell(key, op string) {
	s.ask(s.up()[0], keyed.For(key, note{Op: op, Key: key}), nil)
	s.after(100 * time.Millisecond)
}

// after has time pass, whatever happens in it.
func (s *sim) after(d time.Duration) {
	s.Clock.AfterFunc(d, func() {})
	s.pass(d)
}

func (s *sim) acting(key string) (n int) {
	for _, w := range s.living[key] {
		if w.life.acts() {
			n++
		}
	}
	return n
}

// What becomes of a key says whether it is to live. Each case breaks a rule, too, and notices it.
func TestWhoIsRemembered(t *testing.T) {
	moved := func(s *sim) {
		o, next := s.owner("k1"), s.up()[0]
		if next == o {
			next = s.up()[1]
		}
		s.ask(o, o.order("move", wish{Key: "k1", Node: next.number}), nil)
		s.after(2 * time.Second)
		if s.owner("k1") != next {
			t.Error("it has not moved")
		}
	}
	for _, c := range []struct {
		name  string
		does  func(*sim)
		lives bool
		guard guard
	}{
		{"nothing happens", func(*sim) {}, true, 0},
		{"it ends by itself", func(s *sim) { s.tell("k1", "end") }, false, 0},
		{"it is stopped", func(s *sim) {
			o := s.owner("k1")
			ref, err := o.system.Lookup("/user/carts/k1")
			if err != nil {
				t.Error(err)
			}
			o.system.Stop(ref)
			s.after(time.Second)
		}, false, 0},
		{"it is idle", func(s *sim) { s.after(2 * time.Hour) }, false, 0},
		{"it fails, and is stopped for that", func(s *sim) { s.tell("k1", "crash") }, true, guardFailed},
		{"its shard moves", moved, true, guardSent},
		{"its shard moves, and then it ends", func(s *sim) { moved(s); s.tell("k1", "end") }, false, 0},
		{"its node is lost", func(s *sim) { s.owner("k1").machine.Crash(); s.after(3 * lease) }, true, 0},
		{"it is drained with its node", func(s *sim) {
			o := s.owner("k1")
			s.ask(o, o.order("drain", wish{On: true}), nil)
			s.after(3 * time.Second)
		}, true, guardSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(b broken) (listed bool, alive int) {
				s, p := remembering(t, b, DefaultStarts, nil)
				s.tell("k1", "tell")
				c.does(s)
				s.after(5 * time.Second)
				if s.failure != "" {
					t.Error(s.failure)
				}
				return p.lives["k1"], s.acting("k1")
			}
			if listed, alive := run(broken{}); listed != c.lives || (alive == 1) != c.lives {
				t.Errorf("it is to live: %v, %d actors; it should: %v", listed, alive, c.lives)
			}
			if c.guard != 0 {
				if listed, _ := run(broken{guard: c.guard}); listed == c.lives {
					t.Error("without the rule it is the same")
				}
			}
		})
	}
}

// Nothing of a key happens before it is recorded. What comes meanwhile waits, in order, and no more than may.
func TestAKeyWaitsUntilItIsRecorded(t *testing.T) {
	s, p := remembering(t, broken{}, DefaultStarts, nil)
	p.waits = true
	o := s.owner("k1")
	var asks []*host.Pending
	for range buffer/4 + 3 {
		q, err := o.system.Request(o.region, keyed.For("k1", note{Op: "ask", Key: "k1"}))
		if err != nil {
			t.Fatal(err)
		}
		asks = append(asks, q)
	}
	s.after(time.Second)
	if n := s.acting("k1"); n != 0 || len(p.late) != 1 {
		t.Fatalf("%d actors, %d keys are being recorded", n, len(p.late))
	}
	if o.state.waits != buffer/4 {
		t.Errorf("%d messages wait", o.state.waits)
	}
	p.late[0]()
	p.late = nil
	s.after(time.Second)
	for i, q := range asks {
		select {
		case m := <-q.Answer():
			if err := m.Err(); (err == nil) != (i < buffer/4) || err != nil && !strings.Contains(err.Error(), ErrBuffer.Error()) {
				t.Errorf("question %d: %v", i, err)
			}
		default:
			t.Errorf("question %d has no answer", i)
		}
	}
	if o.state.waits != 0 || o.state.weight != 0 || len(o.state.mem.asked) != 0 {
		t.Errorf("%d messages and %d bytes wait, for %d keys", o.state.waits, o.state.weight, len(o.state.mem.asked))
	}
}

// A key that cannot be recorded does not begin, and who asks learns why. The next one that asks has it tried again.
func TestAKeyThatIsNotRecorded(t *testing.T) {
	s, p := remembering(t, broken{}, DefaultStarts, nil)
	p.why = errors.New("there are too many")
	o := s.owner("k1")
	for _, c := range []struct {
		why  error
		want string
	}{{p.why, "there are too many"}, {p.why, "there are too many"}, {nil, ""}} {
		p.why = c.why
		q, err := o.system.Request(o.region, keyed.For("k1", note{Op: "ask", Key: "k1"}))
		if err != nil {
			t.Fatal(err)
		}
		s.after(time.Second)
		m := <-q.Answer()
		if err := m.Err(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if s.acting("k1") != 1 || p.written != 3 {
		t.Errorf("%d actors, %d times recorded", s.acting("k1"), p.written)
	}
}

// A key that the bounds of the kind refuse is not recorded, or not for longer than that is known.
func TestRefusedKeysAreNotRemembered(t *testing.T) {
	s, p := remembering(t, broken{}, DefaultStarts, func(c keyed.Config) keyed.Config { return c.WithMax(2) })
	for i := range keys {
		s.tell(fmt.Sprint("k", i), "tell")
	}
	alive := 0
	for i := range keys {
		key := fmt.Sprint("k", i)
		alive += s.acting(key)
		if p.lives[key] != (s.acting(key) == 1) {
			t.Errorf("%s is to live: %v, and has %d actors", key, p.lives[key], s.acting(key))
		}
	}
	if alive == 0 || alive == keys {
		t.Errorf("%d of %d keys live", alive, keys)
	}
	for _, l := range s.up() {
		if m := l.state.mem; len(m.starts) != 0 || len(m.ill) != 0 {
			t.Errorf("%v are to be started, %v later", m.starts, m.ill)
		}
	}
}

// A region that gets many keys starts so many a second, and who is asked before its turn begins at once.
func TestKeysBeginOneAfterTheOther(t *testing.T) {
	p := &pad{lives: map[string]bool{}}
	s := newSim(8, map[string]int{}, broken{})
	t.Cleanup(s.close)
	const many = 100
	for i := range many {
		p.lives[fmt.Sprint("k", i)] = true
	}
	s.memory = func(c keyed.Config) (keyed.Config, Memory, int) { return c.WithIdle(time.Hour), p, 10 }
	s.start()
	s.pass(time.Second)
	count := func() (n int) {
		for i := range many {
			n += s.acting(fmt.Sprint("k", i))
		}
		return n
	}
	before := count()
	for range 3 {
		s.after(time.Second)
		n := count()
		if n-before < 9 || n-before > 11 {
			t.Errorf("%d keys have begun in a second", n-before)
		}
		before = n
	}
	last := ""
	for i := range many {
		if key := fmt.Sprint("k", i); s.acting(key) == 0 {
			last = key
		}
	}
	s.tell(last, "tell")
	if s.acting(last) != 1 {
		t.Errorf("%s does not begin when it is told something", last)
	}
	s.after(15 * time.Second)
	if n := count(); n != many {
		t.Errorf("%d of %d keys live", n, many)
	}
}

// Keys for which a node has no room wait, and the state of the region says so. They begin when there is some.
func TestKeysForWhichThereIsNoRoom(t *testing.T) {
	p := &pad{lives: map[string]bool{}}
	s := newSim(8, map[string]int{}, broken{})
	t.Cleanup(s.close)
	for i := range keys {
		p.lives[fmt.Sprint("k", i)] = true
	}
	s.memory = func(c keyed.Config) (keyed.Config, Memory, int) { return c.WithIdle(time.Hour).WithMax(2), p, 10 }
	s.start()
	s.pass(3 * time.Second)
	l := s.up()[0]
	var x State
	if s.ask(l, l.order("state", wish{}), &x); x.Starting != keys-2 || x.Keys != 2 || !strings.Contains(x.Unstarted, "limit of keys") {
		t.Errorf("%+v", x)
	}
	for range keys {
		for key := range p.lives {
			if s.acting(key) == 1 {
				s.tell(key, "end")
			}
		}
		s.after(3 * time.Second)
	}
	x = State{}
	if s.ask(l, l.order("state", wish{}), &x); len(p.lives) != 0 || x.Starting != 0 || s.failure != "" {
		t.Errorf("%d keys are to live still, %+v %s", len(p.lives), x, s.failure)
	}
}
