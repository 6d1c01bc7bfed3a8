package rebuild

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
)

// inputs are what comes from outside, one after the other.
func inputs(w *world) []func() {
	at := map[string]host.Ref{}
	spawn := func(names ...string) func() {
		return func() {
			for _, name := range names {
				ref, err := w.Spawn(name, w.props[name])
				if err != nil {
					w.t.Fatal(err)
				}
				at[name] = ref
				w.looks()
			}
		}
	}
	tell := func(name string, vs ...any) func() {
		return func() {
			ref, err := w.Lookup("/user/" + name)
			if err != nil {
				return // it has ended
			}
			for _, v := range vs {
				_ = w.Tell(ref, v)
			}
		}
	}
	add := script(rec(recAdd, 1))
	toOther := script(rec(0, 0, send("/user/other", add), send("/user/other", script(rec(0, 0, send("/user/sink", text("from other")))))))
	trapping := script(rec(recAdd, 5), rec(0, trap, send("/user/sink", text("never"))))
	all := []func(){
		spawn("sink", "wat", "other", "top", "soft", "victim"),
		tell("wat", add, toOther, add, toOther, add),
		tell("other", add, add, trapping, add, script(rec(0, 0, abi.AppendTimer(nil, 3, 100*ms, 0, text("late"))))),
		tell("top/p", add, script(rec(0, 0, abi.AppendTimer(nil, 3, 40*ms, 0, nil))), add),
		tell("soft/q", add, add, add, trapping, add, add),
		tell("other", script(rec(0, last, abi.AppendStash(nil))), add, script(rec(0, 0, abi.AppendReceiveTimeout(nil, 15*ms)))),
		tell("top/p", trapping, add, add),
		tell("wat", script(rec(0, last, abi.AppendWatch(nil, 0, "/user/victim"))), toOther),
		tell("other", script(rec(0, last, abi.AppendUnstash(nil))), add),
		func() {
			ref := at["victim"]
			var kill func()
			kill = func() {
				if *w.onPop = kill; !w.looking {
					*w.onPop = nil
					w.StopNow(ref)
				}
			}
			*w.onPop = kill
			tell("victim", script(rec(0, spinning, send("/user/sink", text("never")))), add)()
		},
		tell("wat", script(rec(0, 0, abi.AppendAsk(nil, 0, "/user/other", 9, 3*ms, nil, add))), add),
		tell("sink", 1, 2, 3),
		func() { _ = w.Operate().Kill(at["soft"]); tell("soft/q", add, add)() },
		tell("top/p", add, trapping, add),
		func() { w.Stop(at["other"]) },
		tell("wat", toOther, add),
	}
	if _, ok := w.props["boss"]; ok {
		all = append(all, spawn("boss", "worker"),
			tell("worker", 1, 2, "roll", "later", 3), tell("boss", "a", "b"), tell("worker", "ask-self", "roll", "kids", 4, 5),
			tell("boss/a", 1, "roll", "panic now", 2), tell("worker", 6, "fail no", 7), tell("boss/b", "kids", "quit", 1),
			tell("worker", "roll", 8))
	}
	return all
}

// twin is what the recorded system was like, by what each actor had taken in.
type twin struct {
	*world
	states map[abi.Ref]map[int]*rebuild.State    // after so many of its own records
	mail   map[abi.Ref]map[[2]int]*rebuild.State // and so many messages
	now    counts
}

// counts are what actors have taken in.
type counts struct {
	own    map[abi.Ref]int // signals and turns, and lives of children
	came   map[abi.Ref]int // messages
	last   map[abi.Ref]record.Kind
	parent map[abi.Ref]abi.Ref
}

func newCounts() counts {
	return counts{map[abi.Ref]int{}, map[abi.Ref]int{}, map[abi.Ref]record.Kind{}, map[abi.Ref]abi.Ref{}}
}

// add counts a record.
func (c counts) add(r *record.Record) {
	of := r.Actor
	switch r.Kind {
	case record.Began:
		c.own[of], c.parent[of] = 0, r.Life.Parent
		c.own[r.Life.Parent]++
		return
	case record.Ended:
		of = c.parent[of]
	case record.Accepted:
		c.came[of]++
		return
	case record.Restarted:
		return
	}
	c.own[of]++
	c.last[of] = r.Kind
}

// capture notes the states of all actors that rest.
func (w *twin) capture() {
	w.looking = true
	defer func() { w.looking = false }()
	for ref := range w.states {
		x := rebuild.Look(w.System, ref)
		if x != nil && x.Held {
			continue
		}
		n, m := w.now.own[ref], w.now.came[ref]
		if w.states[ref][n] == nil || x != nil {
			w.states[ref][n] = x
		}
		w.mail[ref][[2]int{n, m}] = x
	}
}

// runTwin runs the inputs, with a look at everything after each step.
func runTwin(t *testing.T, w *world) *twin {
	x := &twin{w, map[abi.Ref]map[int]*rebuild.State{}, map[abi.Ref]map[[2]int]*rebuild.State{}, newCounts()}
	w.j.seen = func(k int) {
		var r record.Record
		if err := cbor.Unmarshal(w.j.log[k-1], &r); err != nil {
			t.Fatal(err)
		}
		x.now.add(&r)
		of := []abi.Ref{r.Actor}
		if r.Kind == record.Began {
			of = append(of, r.Life.Parent)
		}
		for _, ref := range of {
			if x.states[ref] == nil {
				x.states[ref], x.mail[ref] = map[int]*rebuild.State{}, map[[2]int]*rebuild.State{}
			}
		}
	}
	w.looks = x.capture
	do := inputs(w)
	for i := 0; i < 40 || i < len(do)+30; i++ {
		if i < len(do) {
			do[i]()
			x.capture()
		}
		for range 30 {
			if !w.Step() {
				break
			}
			x.capture()
		}
		w.clock.Advance(2 * time.Millisecond)
		x.capture()
	}
	for w.j.flush() { // all that is in the log takes effect
		for w.Step() {
			x.capture()
		}
	}
	return x
}

// A system that is killed at any record is rebuilt from those before as it was: memory, mailbox, timers, children,
// incarnations, and what supervisors have noted.
func TestRebuiltAtEveryRecord(t *testing.T) {
	for _, compiler := range []string{"none", "go", "tinygo"} {
		t.Run(compiler, func(t *testing.T) {
			puppets := puppetImage(t)
			family := puppets
			if family = nil; compiler != "none" {
				family = familyImage(t, compiler)
			}
			w := newWorld(t, puppets, family)
			x := runTwin(t, w)
			defer w.end()
			records, err := w.j.read(len(w.j.log))
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for i := range records {
				switch r := &records[i]; {
				case r.Entry != nil && r.Entry.Cut != nil:
					seen["cut"]++
				case r.Entry != nil && r.Entry.Failure != nil:
					seen["failed"]++
				case r.Entry != nil && len(r.Entry.Mail) > 1:
					seen["batch"]++
				case r.Signal != nil:
					seen["took "+r.Signal.What]++
				default:
					seen[r.Kind.String()]++
				}
			}
			t.Logf("%d records in %d syncs: %v", len(records), w.j.syncs, seen)
			then, compared := newCounts(), map[string]int{}
			for k := 0; k <= len(records); k++ {
				if k > 0 {
					then.add(&records[k-1])
				}
				r, now, err := rebuilt(t, records[:k], puppets, family)
				if err != nil {
					t.Fatalf("killed after %d records: %v%s", k, err, show(records[max(k-8, 0):k]))
				}
				for _, ref := range slices.Sorted(maps.Keys(then.own)) {
					got := rebuild.Look(now.System, ref)
					compared[x.compare(ref, then, got)]++
				}
				r.Release()
				now.end()
				if t.Failed() {
					t.Fatalf("killed after %d records, the last %s", k, show(records[max(k-6, 0):k]))
				}
			}
			t.Log(compared)
		})
	}
}

func show(rs []record.Record) (text string) {
	for _, r := range rs {
		text += fmt.Sprintf("\n%v %016x %+v %+v %+v", r.Kind, uint64(r.Actor), r.Signal, r.Entry, r.Message)
	}
	return text
}

// compare compares an actor with the twin. A signal that is to lead to a turn
// which is in no record is taken once more when the system goes on.
func (w *twin) compare(ref abi.Ref, then counts, got *rebuild.State) string {
	own, came := then.own[ref], then.came[ref]
	want, ok := w.states[ref][own]
	if !ok { // the twin was on its way from one state to another
		before, after := own, own
		for ; before > 0 && w.states[ref][before] == nil; before-- {
		}
		for ; after < own+4 && w.states[ref][after] == nil; after++ {
		}
		if same(w.states[ref][before], got) {
			return "as before the step"
		}
		if same(w.states[ref][after], got) {
			return "as after the step"
		}
		if got != nil && got.Held {
			return "held at its start, as the twin was"
		}
		w.t.Errorf("%s is on its way from\n %s to\n %s", brief(got), brief(w.states[ref][before]), brief(w.states[ref][after]))
		return "other"
	}
	switch {
	case same(want, got):
	case then.last[ref] == record.Took && same(w.states[ref][own-1], got):
		return "as before the signal"
	case w.states[ref][own+1] != nil && same(w.states[ref][own+1], got): // it has ended in the rebuilt system with its last turn, which is in the records
		return "a child's end is not in the records yet"
	default:
		w.t.Errorf("%016x after %d of its own records and %d messages:\n got %s\nwant %s", uint64(ref), own, came, brief(got), brief(want))
		return "other"
	}
	if got == nil {
		return "gone"
	}
	for m := came; m < came+50; m++ {
		if y := w.mail[ref][[2]int{own, m}]; y != nil {
			var left []record.Message
			for _, e := range y.Mail {
				if e.Position <= uint64(came) {
					left = append(left, e)
				}
			}
			if said, g := fmt.Sprintf("%+v", left), fmt.Sprintf("%+v", got.Mail); g != said {
				w.t.Errorf("%s after %d of its own records and %d messages: mail\n got %s\nwant %s", got.Path, own, came, g, said)
			}
			return "equal, with mail"
		}
	}
	return "equal"
}

func same(a, b *rebuild.State) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Mail, y.Mail, x.Held, y.Held, x.Position, y.Position, x.Rest, y.Rest = nil, nil, false, false, 0, 0, "", ""
	return fmt.Sprintf("%+v", x) == fmt.Sprintf("%+v", y)
}

func brief(x *rebuild.State) string {
	if x == nil {
		return "nothing"
	}
	y := *x
	y.Saved = []byte(fmt.Sprint(len(x.Saved), " bytes"))
	return fmt.Sprintf("%s %s incarnation %d turns %d timers %v children %v saved %s held %v", y.Path, y.Life, y.Incarnation, y.Turns, y.Timers, y.Children, y.Saved, y.Held)
}
