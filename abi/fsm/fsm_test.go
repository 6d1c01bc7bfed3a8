package fsm

import (
	"math/rand"
	"strings"
	"testing"
	"time"
)

func light() *Table {
	t := NewTable("Off")
	t.Declare("Off")
	t.Declare("On")
	t.Declare("Broken")
	t.Edge("Off", "On", "pressed")
	t.Edge("On", "Off", "pressed: or over; <time> #1")
	t.Edge("On", "Broken", "")
	t.Timeout("On", 1500*time.Millisecond)
	t.Timeout("Broken", Forever)
	return t
}

func TestMermaid(t *testing.T) {
	want := `stateDiagram-v2
    [*] --> Off
    Off
    On : after 1.5s
    Broken
    Off --> On : pressed
    On --> Off : pressed  or over   time   1
    On --> Broken
`
	if got := light().Mermaid(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDefinitionsAreChecked(t *testing.T) {
	if err := light().Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  string
		spoil func(*Table)
	}{
		{`the initial state "Of" has no handler`, func(x *Table) { x.initial = "Of" }},
		{`On -> Up names the state "Up"`, func(x *Table) { x.Edge("On", "Up", "") }},
		{`Up -> On names the state "Up"`, func(x *Table) { x.Edge("Up", "On", "") }},
		{`"a b" cannot be a state`, func(x *Table) { x.Declare("a b") }},
		{`"*" cannot be a state`, func(x *Table) { x.Declare(Any) }},
		{`"" cannot be a state`, func(x *Table) { x.Declare("") }},
		{`"1a" cannot be a state`, func(x *Table) { x.Declare("1a") }},
		{`cannot be a state`, func(x *Table) { x.Declare(State(strings.Repeat("x", MaxName+1))) }},
		{`the timeout of On is negative`, func(x *Table) { x.Timeout("On", -1) }},
		{`the label of On -> Off is longer`, func(x *Table) { x.Edge("On", "Off", strings.Repeat("x", MaxLabel+1)) }},
		{`more than 256 states`, func(x *Table) {
			for i := range MaxStates {
				x.Declare(State("s" + strings.Repeat("x", i%50) + strings.Repeat("y", i/50)))
			}
		}},
	} {
		x := light()
		c.spoil(x)
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// A name is made of letters, digits behind the first place, and _.
func TestNamesOfStates(t *testing.T) {
	for name, want := range map[State]bool{
		"azAZ_09": true, "_": true, State(strings.Repeat("x", MaxName)): true,
		"0a": false, "9a": false, "a/": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false, "aé": false,
	} {
		x := light()
		x.Declare(name)
		if err := x.Check(); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// model is a machine with time: maps instead of slots, and when things come.
type model struct {
	state    State
	edges    map[[2]State]bool
	defaults map[State]time.Duration
	due      time.Duration   // of the state timeout; 0: none
	timers   map[string]bool // to whether they repeat
}

// TestMachineAgainstAModel: random steps have the same outcome, timers and timeouts are active when
// the model says so, and a slot belongs to one name at a time.
func TestMachineAgainstAModel(t *testing.T) {
	states := []State{"Off", "On", "Broken", "Missing"}
	names := []string{"a", "b", "c"}
	for seed := range int64(300) {
		rnd := rand.New(rand.NewSource(seed))
		table := light()
		m := NewMachine(table)
		x := model{
			state: "Off", edges: map[[2]State]bool{{"Off", "On"}: true, {"On", "Off"}: true, {"On", "Broken"}: true},
			defaults: map[State]time.Duration{"On": 1500 * time.Millisecond, "Broken": Forever}, timers: map[string]bool{},
		}
		slots := map[string]int{}
		outcome := func(c Change, from State, fires bool, max time.Duration) {
			want := max
			if want == 0 {
				want = x.defaults[x.state]
			}
			if want == Forever {
				want = 0
			}
			if c.From != from || c.To != x.state || c.Fires != fires || c.Arm != want || c.Disarm != (want == 0 && x.due > 0) {
				t.Fatalf("seed %d: %+v, want %s -> %s, fires %v, arm %v, of %v", seed, c, from, x.state, fires, want, x.due)
			}
			x.due = want
		}
		outcome(m.Begin(0), "Off", true, 0)
		for range 200 {
			maxes := []time.Duration{0, 0, 5, Forever}
			s := Step{Max: maxes[rnd.Intn(4)]}
			name := names[rnd.Intn(3)]
			switch rnd.Intn(8) {
			case 0, 1:
				s.Kind, s.To = Goto, states[rnd.Intn(4)]
				from := x.state
				ok := s.To != "Missing" && (s.To == from || x.edges[[2]State{from, s.To}])
				c, err := m.Apply(s)
				if (err == nil) != ok {
					t.Fatalf("seed %d: %s -> %s: %v", seed, from, s.To, err)
				}
				if ok {
					x.state = s.To
					outcome(c, from, true, s.Max)
				}
			case 2:
				s.Kind = Stay
				c, err := m.Apply(s)
				if err != nil {
					t.Fatal(err)
				}
				outcome(c, x.state, false, s.Max)
			case 3:
				to, d := states[rnd.Intn(4)], time.Duration(rnd.Intn(3))
				if err := m.SetTimeout(to, d); (err == nil) != (to != "Missing") {
					t.Fatalf("%s: %v", to, err)
				}
				if to != "Missing" {
					x.defaults[to] = d
				}
			case 4:
				repeat := rnd.Intn(2) == 0
				slot, err := m.SetTimer(name, repeat)
				if err != nil {
					t.Fatal(err)
				}
				if _, active := x.timers[name]; active && slots[name] != slot {
					t.Fatalf("seed %d: the timer that is replaced has the slot %d, not %d", seed, slot, slots[name])
				}
				x.timers[name], slots[name] = repeat, slot
				for other := range x.timers {
					if other != name && slots[other] == slot {
						t.Fatalf("seed %d: %s and %s share a slot", seed, other, name)
					}
				}
			case 5:
				_, active := x.timers[name]
				if slot, ok := m.CancelTimer(name); ok != active || ok && slot != slots[name] {
					t.Fatalf("seed %d: cancel %s: %d %v", seed, name, slot, ok)
				}
				delete(x.timers, name)
			case 6:
				slot := rnd.Intn(4)
				want := ""
				for n := range x.timers {
					if slots[n] == slot {
						want = n
					}
				}
				got, ok := m.Rung(uint64(slot))
				if got != want || ok != (want != "") {
					t.Fatalf("seed %d: %q rings, want %q", seed, got, want)
				}
				if ok && !x.timers[want] {
					delete(x.timers, want)
				}
			case 7:
				if _, err := m.Apply(Step{}); err == nil {
					t.Fatal("a step without a kind")
				}
			}
			if m.State() != x.state || m.TimedOut() != (x.due > 0) {
				t.Fatalf("seed %d: %s %v, want %s %v", seed, m.State(), m.TimedOut(), x.state, x.due)
			}
			for _, n := range names {
				if _, active := x.timers[n]; m.TimerActive(n) != active {
					t.Fatalf("seed %d: timer %s: %v", seed, n, !active)
				}
			}
		}
	}
}

func TestStopTakesTheTimeoutBack(t *testing.T) {
	m := NewMachine(light())
	if c := m.Begin(time.Second); c.Arm != time.Second {
		t.Fatalf("%+v", c)
	}
	c, err := m.Apply(Step{Kind: Stop})
	if err != nil || !c.Disarm || c.Fires || !m.Stopped() || m.TimedOut() {
		t.Errorf("%+v %v", c, err)
	}
}

func TestTimersHaveABound(t *testing.T) {
	m := NewMachine(light())
	for i := range MaxTimers {
		if _, err := m.SetTimer(strings.Repeat("x", i+1), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.SetTimer("one more", false); err == nil {
		t.Error("there is no bound")
	}
	if _, ok := m.Rung(MaxTimers); ok {
		t.Error("a slot that there is not")
	}
}

// The slot of a timer that has ended is taken again, the lowest one first; a timer that is set again keeps its own.
func TestSlotsOfTimersAreReused(t *testing.T) {
	m := NewMachine(light())
	name := func(i int) string { return strings.Repeat("x", i+1) }
	for i := range MaxTimers {
		if slot, err := m.SetTimer(name(i), false); err != nil || slot != i {
			t.Fatal(slot, err)
		}
	}
	for _, i := range []int{2, 5} {
		if slot, ok := m.CancelTimer(name(i)); !ok || slot != i {
			t.Error(slot, ok)
		}
	}
	for _, c := range []struct {
		name string
		slot int
	}{{name(6), 6}, {"a", 2}, {name(3), 3}, {"b", 5}, {"a", 2}} {
		if slot, err := m.SetTimer(c.name, false); err != nil || slot != c.slot {
			t.Errorf("%s: slot %d, %v; want %d", c.name, slot, err, c.slot)
		}
	}
	if _, err := m.SetTimer("c", false); err == nil {
		t.Error("there is no bound")
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	m := NewMachine(light())
	m.Begin(0)
	to := []State{"On", "Off"}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := m.Apply(Step{Kind: Goto, To: to[i%2]}); err != nil {
			t.Fatal(err)
		}
		i++
		_, _ = m.SetTimer("a", false)
		m.Rung(0)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
