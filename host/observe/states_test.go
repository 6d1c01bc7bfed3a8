package observe

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

var errBoom = errors.New("boom")

// faulty counts, and fails when it is told to.
func faulty() host.Props {
	return host.Func(func(ctx *host.Context, m host.Message) error {
		var text string
		if m.Decode(&text) == nil && text == "fail" {
			return errBoom
		}
		return ctx.Reply(ctx.Head().Incarnation())
	})
}

// echoImage is a guest that answers with what it was told.
func echoImage(t testing.TB, instances int) *runtime.Image {
	t.Helper()
	code, err := os.ReadFile("../testdata/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	engine, err := runtime.New(t.Context(), runtime.NewConfig().WithMaxInstances(instances))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	image, err := engine.Load(t.Context(), code, runtime.ImageConfig{Name: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

const subject = "/user/top/subject"

// below starts the subject of a test below a supervisor with a strategy.
func (s *stage) below(strategy supervision.Strategy, p host.Props) {
	s.t.Helper()
	s.spawn("top", quietActor().WithSupervision(strategy).WithChildren(host.Child{Name: "subject", Props: p}))
	s.run()
}

func (s *stage) at(path string) host.Ref {
	s.t.Helper()
	ref, err := s.Lookup(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

func (s *stage) tell(path string, v any) {
	s.t.Helper()
	if err := s.Tell(s.at(path), v); err != nil {
		s.t.Fatal(err)
	}
}

// row is the actor at a path, nil if there is none.
func (s *stage) row(path string) *Actor {
	s.t.Helper()
	p, err := s.Actors(Query{Select: Select{Paths: []string{path}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(p.Actors) == 0 {
		return nil
	}
	return &p.Actors[0]
}

var (
	restarting = supervision.Default()
	delaying   = supervision.Default().WithBackoff(supervision.Backoff{Policy: backoff.WithJitter(backoff.Constant(time.Minute), backoff.NoJitter())})
	suspending = supervision.Default().WithOtherwise(supervision.Suspend)
)

// situations bring the subject into each state.
var situations = []struct {
	name  string
	state State
	make  func(t testing.TB) *stage
}{
	{"running", Running, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.below(restarting, faulty())
		return s
	}},
	{"starting", Starting, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.spawn("top", quietActor().WithChildren(host.Child{Name: "subject", Props: faulty()}))
		for s.row(subject) == nil {
			s.Step()
		}
		return s
	}},
	{"asleep", Asleep, func(t testing.TB) *stage {
		s := newStage(t, func(c host.Config) host.Config { return c.WithIdleAfter(time.Second) })
		s.below(restarting, host.Guest(echoImage(t, 10), "echo"))
		s.sleep()
		return s
	}},
	{"starved", Starved, func(t testing.TB) *stage {
		s := newStage(t, func(c host.Config) host.Config { return c.WithIdleAfter(time.Second) })
		image := echoImage(t, 2)
		s.below(restarting, host.Guest(image, "echo"))
		s.sleep()
		for range 2 { // nobody could be put to sleep for them
			x, err := sandbox.Get(image)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.Put)
		}
		s.tell(subject, "hello")
		s.run()
		return s
	}},
	{"delayed", Delayed, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.below(delaying, faulty())
		s.tell(subject, "fail")
		s.run()
		return s
	}},
	{"left suspended", Suspended, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.below(suspending, faulty())
		s.tell(subject, "fail")
		s.run()
		return s
	}},
	{"suspended with its parent", Suspended, func(t testing.TB) *stage {
		s := newStage(t, func(c host.Config) host.Config { return c.WithGuardian(suspending) })
		s.spawn("top", faulty().WithChildren(host.Child{Name: "subject", Props: faulty()}))
		s.run()
		s.tell("/user/top", "fail")
		s.run()
		return s
	}},
	{"paused", Paused, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.below(restarting, faulty())
		if err := s.Operate().Pause(s.at(subject), false); err != nil {
			t.Fatal(err)
		}
		s.run()
		return s
	}},
	{"stopping", Stopping, func(t testing.TB) *stage {
		s := newStage(t, nil)
		s.below(restarting, faulty().WithChildren(host.Child{Name: "kid", Props: quietActor()}))
		s.Stop(s.at(subject))
		s.Step()
		return s
	}},
}

// sleep has the guests fall asleep.
func (s *stage) sleep() {
	s.run()
	for range 4 {
		s.clock.Advance(time.Second)
		s.run()
	}
}

// TestEveryStateIsSeen: the row, the detail, the selection by state and the sums agree.
func TestEveryStateIsSeen(t *testing.T) {
	for _, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(t)
			a := s.row(subject)
			if a == nil || a.State != c.state {
				t.Fatalf("%+v, want %s", a, c.state)
			}
			d, err := s.Actor(subject)
			if err != nil || d.State != c.state || d.Supervisor != "/user/top" {
				t.Errorf("%v, %+v", err, d)
			}
			p, err := s.Actors(Query{Select: Select{States: []State{c.state}, Paths: []string{"/user/**"}}})
			if err != nil || p.Total == 0 {
				t.Errorf("by state: %v, %+v", err, p)
			}
			for _, other := range States() {
				if p, _ := s.Actors(Query{Select: Select{States: []State{other}, Paths: []string{subject}}}); other != c.state && p.Total != 0 {
					t.Errorf("it is %s, too", other)
				}
			}
			if x := s.Observer.System(); x.States[c.state] == 0 {
				t.Errorf("%+v", x.States)
			}
			tree, err := s.Observer.Tree(TreeQuery{})
			if err != nil || tree.Below.States[c.state] == 0 {
				t.Errorf("%v, %+v", err, tree.Below.States)
			}
			switch c.name {
			case "delayed":
				if a.DueNS != int64(time.Minute) || d.Record == nil || d.Record.Failures != 1 || d.LastFailure == nil || a.Failure != "guest_error: boom" {
					t.Errorf("%+v %+v %+v", a, d.Record, d.LastFailure)
				}
				s.clock.Advance(time.Second)
				if a := s.row(subject); a.DueNS != int64(59*time.Second) {
					t.Errorf("%v is left", time.Duration(a.DueNS))
				}
			case "left suspended":
				if d.Record == nil || !d.Record.Left {
					t.Errorf("%+v", d.Record)
				}
			case "suspended with its parent":
				if d.Record == nil || d.Record.Left || a.Crashes != 0 {
					t.Errorf("%+v", d.Record)
				}
			case "starved":
				if a.Mailbox != 1 {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// What every verb does in every state: the state then, "gone", and how many incarnations
// later; an error leaves it as it was.
func TestEveryVerbInEveryState(t *testing.T) {
	const (
		refused = "refused" // an error, and nothing changes
		gone    = "gone"
	)
	type want struct {
		after string
		more  uint64 // incarnations
	}
	table := map[string]map[string]want{
		"running": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"running", 1}, VerbPause: {"paused", 0}, VerbUnpause: {"running", 0},
			VerbCrash: {"running", 1}, VerbDecide: {refused, 0}, VerbResetBackoff: {"running", 0},
		},
		"starting": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {refused, 0}, VerbPause: {"paused", 0}, VerbUnpause: {"running", 0},
			VerbCrash: {refused, 0}, VerbDecide: {refused, 0}, VerbResetBackoff: {"running", 0},
		},
		"asleep": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"running", 1}, VerbPause: {"paused", 0}, VerbUnpause: {"asleep", 0},
			VerbCrash: {"running", 1}, VerbDecide: {refused, 0}, VerbResetBackoff: {"asleep", 0},
		},
		"starved": { // there is no instance for the next incarnation either, which waits, too
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"starved", 1}, VerbPause: {"paused", 0}, VerbUnpause: {"starved", 0},
			VerbCrash: {"starved", 1}, VerbDecide: {refused, 0}, VerbResetBackoff: {"starved", 0},
		},
		"delayed": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"running", 1}, VerbPause: {"delayed", 0}, VerbUnpause: {"delayed", 0},
			VerbCrash: {refused, 0}, VerbDecide: {refused, 0}, VerbResetBackoff: {"delayed", 0},
		},
		"left suspended": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"running", 1}, VerbPause: {"suspended", 0}, VerbUnpause: {"suspended", 0},
			VerbCrash: {refused, 0}, VerbDecide: {"running", 1}, VerbResetBackoff: {"suspended", 0},
		},
		"suspended with its parent": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"suspended", 1}, VerbPause: {"suspended", 0}, VerbUnpause: {"suspended", 0},
			VerbCrash: {"suspended", 0}, VerbDecide: {refused, 0}, VerbResetBackoff: {"suspended", 0},
		},
		"paused": {
			VerbStop: {gone, 0}, VerbKill: {gone, 0}, VerbRestart: {"paused", 1}, VerbPause: {"paused", 0}, VerbUnpause: {"running", 0},
			VerbCrash: {"paused", 1}, VerbDecide: {refused, 0}, VerbResetBackoff: {"paused", 0},
		},
		"stopping": {
			VerbStop: {refused, 0}, VerbKill: {refused, 0}, VerbRestart: {refused, 0}, VerbPause: {refused, 0}, VerbUnpause: {refused, 0},
			VerbCrash: {refused, 0}, VerbDecide: {refused, 0}, VerbResetBackoff: {refused, 0},
		},
	}
	for _, c := range situations {
		for _, verb := range Verbs() {
			t.Run(c.name+"/"+verb, func(t *testing.T) {
				want, ok := table[c.name][verb]
				if !ok {
					t.Fatal("the table has no row for it")
				}
				s := c.make(t)
				before := s.row(subject)
				v := Verb{Verb: verb, Select: Select{Paths: []string{subject}}}
				if verb == VerbDecide {
					v.Directive = "restart"
				}
				dry := v
				dry.DryRun = true
				would := s.do(dry)
				if c.name != "stopping" && c.name != "starting" { // these do not last
					s.run()
				}
				if after := s.row(subject); c.name != "starting" && (after == nil || after.State != before.State || after.Incarnation != before.Incarnation || after.Paused != before.Paused) {
					t.Fatalf("the dry run has changed %+v to %+v", before, after)
				}
				did := s.do(v)
				if did.Did != would.Did || did.Error != would.Error || c.name != "starting" && did != would {
					t.Errorf("it does %+v and would have done %+v", did, would)
				}
				if (did.Error != "") != (want.after == refused) || did.Did == "" && did.Error == "" {
					t.Fatalf("%+v", did)
				}
				s.run()
				after := s.row(subject)
				passing := c.name == "stopping" || c.name == "starting"
				switch {
				case want.after == gone:
					if after != nil {
						t.Errorf("there is %+v", after)
					}
				case want.after == refused && passing:
				case after == nil:
					t.Error("it has gone")
				case want.after == refused:
					if after.State != before.State || after.Incarnation != before.Incarnation {
						t.Errorf("%s has become %s", before.State, after.State)
					}
				case string(after.State) != want.after || after.Incarnation != before.Incarnation+want.more:
					t.Errorf("%s, incarnation %d; want %s, %d", after.State, after.Incarnation, want.after, before.Incarnation+want.more)
				}
				paused := before.Paused && verb != VerbUnpause || verb == VerbPause
				if after != nil && after.Paused != paused {
					t.Errorf("paused: %v", after.Paused)
				}
			})
		}
	}
}

// do does it to one actor.
func (s *stage) do(v Verb) Change {
	s.t.Helper()
	out, err := s.Do(v)
	if err != nil {
		s.t.Fatal(err)
	}
	if out.Total != 1 || len(out.Changed) != 1 || out.Done+out.Failed != 1 || out.DryRun != v.DryRun || out.Verb != v.Verb {
		s.t.Fatalf("%+v", out)
	}
	return out.Changed[0]
}

func TestVerbsThatAreNotValid(t *testing.T) {
	s := newStage(t, nil)
	s.below(restarting, faulty())
	all := Select{Paths: []string{"/**"}}
	for _, c := range []struct {
		v    Verb
		says string
	}{
		{Verb{Verb: "explode", Select: all}, `no verb "explode"`},
		{Verb{Verb: VerbStop}, "which actors?"},
		{Verb{Verb: VerbStop, Select: Select{Paths: []string{"user"}}}, "begins with /"},
		{Verb{Verb: VerbStop, Select: Select{Paths: []string{"/**/x"}}}, "before its end"},
		{Verb{Verb: VerbStop, Select: Select{States: []State{"tired"}}}, `no state "tired"`},
		{Verb{Verb: VerbStop, Select: Select{Refs: []string{"12"}}}, "16 hexadecimal"},
		{Verb{Verb: VerbDecide, Select: all}, "resume, restart or stop"},
		{Verb{Verb: VerbDecide, Select: all, Directive: "escalate"}, "resume, restart or stop"},
		{Verb{Verb: VerbCrash, Select: all, Kind: "sadness"}, `kind "sadness"`},
		{Verb{Verb: VerbCrash, Select: all, Reason: strings.Repeat("x", 2000)}, "at most 1024"},
		{Verb{Verb: VerbStop, Select: all, Reason: "x"}, "takes no directive"},
		{Verb{Verb: VerbKill, Select: all, Subtree: true}, "takes no directive"},
	} {
		_, err := s.Do(c.v)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.v, err)
		}
	}
	s.run()
	if x := s.Observer.System(); x.Actors != 2 {
		t.Errorf("%+v", x)
	}
}
