package remote

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// two is a node whose actors spawn, and one that accepts.
func two(t *testing.T, change func(*Accept)) (s *sim, front, back *life) {
	t.Helper()
	s = newSim(4)
	front, back = s.start("front", func(a *Accept) { a.Find = nil }), s.start("back", change)
	s.pass(5 * time.Second)
	t.Cleanup(func() {
		if s.failure != "" {
			t.Error(s.failure)
		}
	})
	return s, front, back
}

// Entries with a role are for other nodes, those without are not, and a star stands for no role of others.
func TestWhatCapabilitiesAllow(t *testing.T) {
	for _, c := range []struct {
		spawn string
		typ   string
		place Place
		may   bool
	}{
		{"worker@back", "worker", Place{Role: "back"}, true},
		{"worker@back", "worker", Place{Role: "back", Node: "n1"}, true},
		{"worker@back", "worker", Place{Role: "front"}, false},
		{"worker@back", "other", Place{Role: "back"}, false},
		{"worker@back", "worker", Place{Node: "n1"}, false},
		{"worker@*", "worker", Place{Node: "n1"}, true},
		{"worker@*", "worker", Place{}, true},
		{"worker@b*", "worker", Place{Role: "back"}, true},
		{"worker@b*", "worker", Place{}, false},
		{"worker", "worker", Place{Role: "back"}, false},
		{"*", "worker", Place{Role: "back"}, false},
		{"*", "worker", Place{}, false},
		{"*@back", "worker", Place{Role: "back"}, true},
	} {
		if got := c.place.May([]string{"x", c.spawn}, c.typ); got != c.may {
			t.Errorf("%q, %s, %+v: %v", c.spawn, c.typ, c.place, got)
		}
	}
	for _, p := range []Place{{Role: "a/b"}, {Node: strings.Repeat("n", 300)}, {Node: "a b"}} {
		if p.Check() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

// The order of the nodes follows from names and path alone; one that goes leaves that of the others.
func TestWhichNode(t *testing.T) {
	var all []cluster.Member
	for i := range 40 {
		m := cluster.Member{Number: uint16(i + 1), Name: fmt.Sprint("n", i)}
		if i%2 == 0 {
			m.Roles = []string{"back"}
		}
		all = append(all, m)
	}
	names := func(list []cluster.Member) (out []string) {
		for _, m := range list {
			out = append(out, m.Name)
		}
		return out
	}
	p := Place{Role: "back"}
	firsts := map[string]int{}
	for i := range 400 {
		path := fmt.Sprint("/user/a/", i)
		order := names(candidates(all, p, path))
		backwards := slices.Clone(all)
		slices.Reverse(backwards)
		if len(order) != mostTries || !slices.Equal(order, names(candidates(backwards, p, path))) {
			t.Fatalf("%v", order)
		}
		firsts[order[0]]++
		without := slices.DeleteFunc(slices.Clone(all), func(m cluster.Member) bool { return m.Name == order[0] })
		if next := names(candidates(without, p, path)); !slices.Equal(next[:mostTries-1], order[1:]) {
			t.Errorf("without the first: %v, was %v", next, order)
		}
	}
	if len(firsts) != 20 {
		t.Errorf("%d of 20 nodes get children: %v", len(firsts), firsts)
	}
	if got := names(candidates(all, Place{Node: "n4"}, "/user/a")); !slices.Equal(got, []string{"n4"}) {
		t.Errorf("%v", got)
	}
	if got := candidates(all, Place{Role: "back", Node: "n3"}, "/user/a"); len(got) > 0 {
		t.Errorf("a node without the role: %v", names(got))
	}
}

// What is sent in the turn of the spawn, and while the child is being started, arrives in order; each side ends with the other.
func TestAChildElsewhere(t *testing.T) {
	for _, end := range []struct {
		op, gone string
	}{{"stop", "stopped"}, {"quit", "stopped"}, {"end", ""}} {
		s, front, back := two(t, nil)
		x := s.do(front, "spawn", 0)
		for range 20 {
			s.do(front, "tell", 1)
		}
		s.do(front, "ask", 1)
		s.pass(time.Second)
		if x.last != 23 || x.answers != 1 || len(x.living) != 1 || x.living[0].on != back || x.gone+x.missed != "" {
			t.Fatalf("%+v", x)
		}
		if path := x.living[0].ref.Path(); path != fmt.Sprintf("/system/remote.%d/1/c1", front.number) {
			t.Errorf("the child is at %s", path)
		}
		s.do(front, "up", 1)
		s.do(front, end.op, 1)
		s.pass(time.Second)
		if x.gone != end.gone || len(x.living) != 0 || back.count.Here.Load() != 0 || back.count.Started.Load() != 1 {
			t.Errorf("%s: %q, %d live", end.op, x.gone, len(x.living))
		}
		if asks, watches := front.node.Owed(); asks != 0 || watches != 0 {
			t.Errorf("%s: %d asks and %d watches are left", end.op, asks, watches)
		}
	}
}

// The child ends when its parent's node is lost, and its parent is told when the child's node is.
func TestANodeThatIsLost(t *testing.T) {
	s, front, back := two(t, nil)
	x := s.do(front, "spawn", 0)
	s.pass(time.Second)
	front.machine.Crash()
	front.lose()
	s.pass(lease / 2)
	if len(x.living) != 1 {
		t.Error("the child has ended before the lease")
	}
	s.pass(lease + slack - lease/2)
	if len(x.living) != 0 || back.count.Here.Load() != 0 {
		t.Errorf("%v after the end of its parent's node the child lives", lease+slack)
	}
	s, front, back = two(t, nil)
	x = s.do(front, "spawn", 0)
	s.pass(time.Second)
	back.machine.Crash()
	back.lose()
	s.pass(lease + slack)
	if x.gone != cluster.NodeGone {
		t.Errorf("the parent was told %q", x.gone)
	}
}

// The parent's strategy is carried out beside the child.
func TestSupervisionTravels(t *testing.T) {
	s, front, _ := two(t, nil)
	x := s.do(front, "spawn", 0)
	s.pass(time.Second)
	for i := range 3 {
		s.do(front, "crash", 1)
		s.do(front, "tell", 1)
		s.pass(time.Second)
		if len(x.living) != 1 || x.gone != "" || x.last != 4+i {
			t.Fatalf("crash %d: %+v", i, x)
		}
	}
	s.do(front, "crash", 1)
	s.pass(time.Second)
	if len(x.living) != 0 || x.gone == "" {
		t.Errorf("it lives after more restarts than its parent allows: %q", x.gone)
	}
}

// A failure that escalates ends the child, and its parent is told that it has failed, and not that its node is gone, which goes on.
func TestEscalation(t *testing.T) {
	policy, err := backoff.Spec{Curve: "table", Delays: []time.Duration{time.Millisecond}, Jitter: "none"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	nothing := supervision.Rule{Reason: "what no child says", Directive: supervision.Restart}
	all := supervision.Rule{Directive: supervision.Escalate}
	for name, strategy := range map[string]supervision.Strategy{
		"otherwise": supervision.Default().WithOtherwise(supervision.Escalate),
		"exceeded":  supervision.Default().WithMaxRestarts(0, 0).WithExceeded(supervision.Escalate),
		"no rule":   supervision.Default().WithRules(nothing),
		"a rule":    supervision.Default().WithRules(nothing, all),
		"first":     supervision.Default().WithFirst(all),
		"backoff": supervision.Default().WithBackoff(supervision.Backoff{
			Policy: policy, MaxFailures: 1, GiveUp: supervision.GiveUpEscalate, Reset: supervision.ResetManual,
		}),
	} {
		s, front, back := two(t, nil)
		s.strategy = strategy
		x := s.do(front, "spawn", 0)
		s.pass(time.Second)
		for range 3 {
			s.do(front, "crash", 1)
			s.pass(time.Second)
		}
		if len(x.living) != 0 || !strings.Contains(x.gone, "crashed") || back.count.Here.Load() != 0 {
			t.Errorf("%s: %+v", name, x)
		}
		s.strategy = supervision.Default()
		y := s.do(front, "spawn", 0)
		s.pass(time.Second)
		if len(y.living) != 1 {
			t.Errorf("%s: the next one: %+v", name, y)
		}
	}
}

// Strategies that need the parent are refused, with the reason, before anything is sent.
func TestStrategiesThatAskTheParent(t *testing.T) {
	_, front, _ := two(t, nil)
	d := supervision.Default()
	own := backoff.WithJitter(backoff.Constant(time.Second), backoff.NoJitter())
	for why, s := range map[string]supervision.Strategy{
		"itself decides":            d.WithOtherwise(supervision.Ask),
		"the parent itself decides": d.WithRules(supervision.Rule{Directive: supervision.Ask}),
		"all-for-one":               d.WithKind(supervision.AllForOne),
		"rest-for-one":              d.WithKind(supervision.RestForOne),
		"shared":                    d.WithShared(true),
		"code of its own decides":   d.WithDecider(func(string, *abi.Failure) supervision.Directive { return supervision.Stop }),
		"how long to wait":          d.WithBackoff(supervision.Backoff{Policy: own}),
	} {
		_, err := Props(front.node, Place{}, Child{Type: "worker", Parent: front.parent, Supervision: s})
		if !errors.Is(err, supervision.ErrAsksParent) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, err := Props(front.node, Place{}, Child{Type: "worker", Parent: front.parent, Supervision: d, Args: make([]byte, MaxRequest)}); !errors.Is(err, errLarge) {
		t.Errorf("large arguments: %v", err)
	}
}

// A node that does not take a child is passed over; if none does the parent is told why, by a message, and nothing is started.
func TestNodesThatDoNotTakeIt(t *testing.T) {
	none := func(a *Accept) { a.Find = nil }
	for why, change := range map[string]func(*Accept){
		"no children of other nodes": none,
		"cluster.accept.from":        func(a *Accept) { a.From = []string{"other"} },
		"cluster.accept.max":         func(a *Accept) { a.Max = 1 },
		"cluster.accept.total":       func(a *Accept) { a.Total = 1 },
		"the type worker": func(a *Accept) {
			a.Find = func([]byte, string, string) (host.Props, []string, error) {
				return host.Props{}, nil, fmt.Errorf("%w: the type worker", host.ErrDenied)
			}
		},
	} {
		s, front, back := two(t, change)
		s.do(front, "spawn", 0)
		s.pass(time.Second)
		x := s.do(front, "spawn", 0)
		s.pass(time.Second)
		if !strings.Contains(x.missed, why) || x.gone != "not spawned" || x.begun != 0 {
			t.Errorf("%s: %q, %q", why, x.missed, x.gone)
		}
		if asks, _ := front.node.Owed(); asks != 0 {
			t.Errorf("%s: %d asks are left", why, asks)
		}
		s.start("back", nil) // and this one takes it
		s.pass(5 * time.Second)
		x = s.do(front, "spawn", 0)
		s.pass(time.Second)
		if x.missed != "" || len(x.living) != 1 || x.living[0].on == back {
			t.Errorf("%s: another node takes it: %+v", why, x)
		}
	}
	s := newSim(1)
	l := s.start("front", none)
	s.pass(5 * time.Second)
	if x := s.do(l, "spawn", 0); true {
		s.pass(time.Second)
		if !strings.Contains(x.missed, `the role "back"`) {
			t.Errorf("%q", x.missed)
		}
	}
}

// A child that has ended makes room for another one.
func TestRoomIsGivenBack(t *testing.T) {
	s, front, back := two(t, func(a *Accept) { a.Max, a.Total = 1, 1 })
	for i := range 3 {
		x := s.do(front, "spawn", 0)
		s.pass(time.Second)
		if len(x.living) != 1 {
			t.Fatalf("child %d: %q", i+1, x.missed)
		}
		s.do(front, "quit", i+1)
		s.pass(time.Second)
	}
	if n := back.count.Started.Load(); n != 3 {
		t.Errorf("%d were started", n)
	}
}

// A group that was stopped is made again by the next request.
func TestAGroupThatWasStopped(t *testing.T) {
	s, front, back := two(t, nil)
	x := s.do(front, "spawn", 0)
	s.pass(time.Second)
	group, err := back.system.Lookup(fmt.Sprintf("/system/remote.%d", front.number))
	if err != nil {
		t.Fatal(err)
	}
	back.system.Stop(group)
	s.pass(time.Second)
	if len(x.living) != 0 || x.gone != cluster.NodeGone || back.count.Here.Load() != 0 {
		t.Errorf("%+v, %d children are counted", x, back.count.Here.Load())
	}
	if x = s.do(front, "spawn", 0); len(x.living) != 0 {
		t.Fatal("it is there before anything was sent")
	}
	if s.pass(time.Second); len(x.living) != 1 {
		t.Errorf("%+v", x)
	}
}

// leaving are nodes that go one after another, whenever somebody looks.
type leaving struct {
	Node
	all []cluster.Member
}

func (l *leaving) Acting() bool { return true }

func (l *leaving) Members() []cluster.Member {
	now := l.all
	l.all = l.all[1:]
	return now
}

// The roles that count are those of the node that asks, although another one leaves just then.
func TestANodeLeavesDuringARequest(t *testing.T) {
	all := []cluster.Member{{Number: 1, Roles: []string{"front"}}, {Number: 2, Roles: []string{"other"}}, {Number: 3, Roles: []string{"front"}}}
	for number, denied := range map[uint16]bool{2: true, 3: false} {
		if err := (&Accept{Node: &leaving{all: all}, From: []string{"front"}}).member(number); errors.Is(err, host.ErrDenied) != denied {
			t.Errorf("node %d: %v", number, err)
		}
	}
}

// Options give a child no more than any other has here, and what they take is on the account of those that asked.
func TestOptionsOfAChildElsewhere(t *testing.T) {
	p, err := supervision.Default().Plain()
	if err != nil {
		t.Fatal(err)
	}
	r := request{Type: "worker", Parent: 1 << 54, Strategy: p, Options: make([]byte, abi.MaxOptions)}
	if _, err := decodeRequest(r.encode("x")); err != nil {
		t.Error(err)
	}
	r.Options = make([]byte, abi.MaxOptions+1)
	if _, err := decodeRequest(r.encode("x")); err == nil {
		t.Error("options that no guest could write are read")
	}
	var o host.SpawnOptions
	options := func([]byte) (host.SpawnOptions, error) { return o, nil }
	a := Accept{Options: options, Find: func([]byte, string, string) (host.Props, []string, error) { return host.Props{}, nil, nil }}
	for throughput, refused := range map[int]bool{0: false, host.DefaultThroughput: false, host.DefaultThroughput + 1: true} {
		o.Dispatcher = host.Dispatcher{}.WithThroughput(throughput)
		if _, _, err := a.props(&r); errors.Is(err, host.ErrBadProps) != refused {
			t.Errorf("a throughput of %d: %v", throughput, err)
		}
	}

	o = host.SpawnOptions{Held: 1 << 20}
	s, front, back := two(t, func(a *Accept) { a.Options, a.Memory = options, 2<<20 })
	s.spawns[0] = &spawn{by: front}
	refused := hostile(t, s, front, back, func(ctx *host.Context, door host.Ref) {
		r.Options, r.Parent = []byte{0xa0}, front.parent.UID()
		for i := range 4 {
			if err := ctx.Ask(door, host.Headed{Value: host.Raw(r.encode("x")), Headers: map[string]string{Header: version}}, uint64(i+1), time.Second); err != nil {
				t.Error(err)
			}
		}
	})
	if n := back.count.Started.Load(); n != 1 || !strings.Contains(refused[3], "memory") {
		t.Errorf("%d were started, %q", n, refused)
	}
}

// A refusal that is cut short can be read.
func TestALongRefusal(t *testing.T) {
	for i := range 4 {
		b, err := cbor.Marshal(refusal(errors.New(strings.Repeat("x", i) + strings.Repeat("\u20ac", maxText))))
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := decodeAnswer(b); !ok || len(a.Refused) < maxText-3 {
			t.Errorf("%d bytes, %v", len(a.Refused), ok)
		}
	}
}

// What waits for a child that is being started is bounded.
func TestWhatWaits(t *testing.T) {
	s, front, back := two(t, nil)
	back.machine.Pause()
	x := s.do(front, "spawn", 0)
	for range 1200 {
		s.do(front, "tell", 1)
	}
	s.settle()
	letters, n := front.system.DeadLetters()
	if n < 200 || len(letters) == 0 {
		t.Errorf("%d messages were refused", n)
	}
	back.machine.Resume()
	s.stats["faults"]++
	s.pass(2 * time.Second)
	if x.last > 1000+5 || x.last < 900 {
		t.Errorf("the last message is %d", x.last)
	}
}

// hostile sends to the door of a node, and returns the refusals.
func hostile(t *testing.T, s *sim, from, to *life, send func(ctx *host.Context, door host.Ref)) (refused []string) {
	t.Helper()
	door, err := to.system.Lookup("/system/" + Door)
	if err != nil {
		t.Fatal(err)
	}
	far, err := from.system.RefOf(door.UID(), host.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := from.system.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			send(ctx, far)
			return nil
		}
		a, _ := decodeAnswer(m.Payload)
		refused = append(refused, a.Refused)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	_ = from.system.Tell(x, "go")
	s.pass(2 * time.Second)
	return refused
}

// A member that is hostile starts nothing beyond what is accepted.
func TestAHostileMember(t *testing.T) {
	s, front, back := two(t, func(a *Accept) { a.Max = 5 })
	ask := func(ctx *host.Context, door host.Ref, n uint64, payload []byte) {
		if err := ctx.Ask(door, host.Headed{Value: host.Raw(payload), Headers: map[string]string{Header: version}}, n, time.Second); err != nil {
			t.Error(err)
		}
	}
	good := func(parent abi.Ref) []byte {
		r, err := requestOf(&Child{Type: "worker", Parent: front.parent, Supervision: supervision.Default()})
		if err != nil {
			t.Fatal(err)
		}
		r.Parent = parent
		return r.encode("x")
	}
	s.spawns[0] = &spawn{by: front}
	refused := hostile(t, s, front, back, func(ctx *host.Context, door host.Ref) {
		wrong := [][]byte{{0xa0}, {0xf6}, append(bytes.Repeat([]byte{0x81}, 12), 0), good(back.parent.UID()), good(0)}
		for _, change := range []func(*request){
			func(r *request) { r.Type = "other" },
			func(r *request) { r.Type = strings.Repeat("x", 1000) },
			func(r *request) { r.Name = "../x" },
			func(r *request) { r.Name = strings.Repeat("n", 300) },
			func(r *request) { r.Digest = []byte{1} },
			func(r *request) { r.Send = make([]string, mostPaths+1) },
			func(r *request) { r.Options = []byte{0xa0} },
			func(r *request) { r.Strategy.Otherwise = supervision.Ask },
			func(r *request) { r.Strategy.Restarts = -7 },
			func(r *request) { r.Strategy.Delays = &supervision.PlainBackoff{Curve: "none"} },
			func(r *request) { r.Limits.Held = -1 },
			func(r *request) { r.Spawn = []string{"worker@back"} },
		} {
			r, _ := decodeRequest(good(front.parent.UID()))
			change(r)
			b, err := cbor.Marshal(r)
			if err != nil {
				t.Error(err)
			}
			wrong = append(wrong, b)
		}
		for i, b := range wrong {
			ask(ctx, door, uint64(i+1), b)
		}
		_ = ctx.Tell(door, host.Headed{Value: host.Raw(good(front.parent.UID())), Headers: map[string]string{Header: version}}) // no question
		if err := ctx.Ask(door, host.Raw(good(front.parent.UID())), 100, time.Second); err != nil {                             // no header
			t.Error(err)
		}
	})
	if len(refused) != 18 || back.count.Started.Load() != 0 || back.count.Refused.Load() != 17 {
		t.Errorf("%d refused (%v), %d started", len(refused), back.count.Refused.Load(), back.count.Started.Load())
	}
	refused = hostile(t, s, front, back, func(ctx *host.Context, door host.Ref) {
		for i := range 50 {
			ask(ctx, door, uint64(i+1), good(front.parent.UID()))
		}
	})
	if back.count.Started.Load() != 5 || back.count.Here.Load() != 5 || len(refused) != 50 {
		t.Errorf("%d started", back.count.Started.Load())
	}
}

// A node that says that the child is an actor of another node is not believed.
func TestAChildThatIsMadeUp(t *testing.T) {
	s, front, back := two(t, func(a *Accept) { a.Find = nil })
	if _, err := back.system.SpawnService(Door, host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Correlation == 0 || m.Kind != abi.KindMessage {
			return nil
		}
		return ctx.Reply(answer{Child: front.parent.UID()})
	})); err != nil {
		t.Fatal(err)
	}
	x := s.do(front, "spawn", 0)
	s.pass(time.Second)
	if !strings.Contains(x.missed, "names an actor of another node") || x.sent == 0 {
		t.Errorf("%+v", x)
	}
}

// If a node does not say what has become of a request no other node is asked: there may be a child.
func TestNoAnswer(t *testing.T) {
	s, front, back := two(t, func(a *Accept) { a.Find = nil })
	other := s.start("back", func(a *Accept) { a.Find = nil })
	s.pass(5 * time.Second)
	requests := 0
	for _, l := range []*life{back, other} {
		if _, err := l.system.SpawnService(Door, host.Func(func(_ *host.Context, m host.Message) error {
			if m.Kind == abi.KindMessage {
				requests++
			}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
	}
	x := s.do(front, "spawn", 0)
	s.pass(startTime - time.Second)
	if requests != 1 || x.missed != "" {
		t.Errorf("%d requests, %q", requests, x.missed)
	}
	s.pass(2*startTime + time.Second)
	if requests != 1 || !strings.Contains(x.missed, ErrUnknown.Error()) || x.gone != "not spawned" {
		t.Errorf("%d requests, %q, %q", requests, x.missed, x.gone)
	}
}

// The child may do what both its parent and its node allow, and gets the lesser of their limits.
func TestTheChildGetsTheLesser(t *testing.T) {
	for _, c := range []struct{ own, asked, both []string }{
		{[]string{"/user/a"}, []string{"/user/a", "/user/b"}, []string{"/user/a"}},
		{[]string{"/user/*"}, []string{"/user/a", "/user/a/b"}, []string{"/user/a"}},
		{[]string{"/user/**"}, []string{"/user/a/*", "/user/a/b"}, []string{"/user/a/b"}},
		{[]string{"/user/a/*"}, []string{"/user/**"}, nil},
		{[]string{"/user/a/*"}, []string{"/user/a/*"}, []string{"/user/a/*"}},
		{[]string{"/user/a"}, []string{"/user/**", "/user/?"}, []string{"/user/a"}},
		{nil, []string{"/user/**"}, nil},
		{[]string{"/user/**"}, nil, nil},
	} {
		if got := both(c.own, c.asked, matchPath); !slices.Equal(got, c.both) {
			t.Errorf("%v and %v: %v", c.own, c.asked, got)
		}
	}
	asked := limits{Mailbox: 7, Fuel: 1 << 60, Memory: 1 << 16, Deadline: 0, Held: 1 << 40, Children: 3}
	got := asked.narrow(host.Limits{Deadline: time.Second, Memory: 1 << 20, Mailbox: 100, Children: 2, Tree: host.TreeLimits{Actors: 1}})
	if got.Mailbox != 7 || got.Fuel != host.DefaultFuel || got.Memory != 1<<16 || got.Deadline != time.Second || got.Held != host.DefaultHeld || got.Children != 2 || got.Tree.Actors != 0 {
		t.Errorf("%+v", got)
	}
}

// A strategy is the same on the other node.
func TestStrategiesAsValues(t *testing.T) {
	policy, err := backoff.Spec{Curve: "table", Delays: []time.Duration{time.Second, 2 * time.Second}, Jitter: "none"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []supervision.Strategy{
		supervision.Default(), supervision.Stopping(),
		supervision.Default().WithMaxRestarts(3, time.Minute).WithSliding(true).WithExceeded(supervision.Escalate).WithKeepChildren(true).
			WithRules(supervision.Rule{Kinds: []abi.FailureKind{abi.FailureFuel}, Directive: supervision.Stop}).WithOtherwise(supervision.Resume),
		supervision.Default().WithBackoff(supervision.Backoff{Policy: policy, MaxFailures: 3, GiveUp: supervision.GiveUpSuspend, Grace: time.Second}),
	} {
		p, err := s.Plain()
		if err != nil {
			t.Fatal(err)
		}
		r := request{Type: "t", Parent: 1, Strategy: p}
		far, err := decodeRequest(r.encode("n"))
		if err != nil {
			t.Fatal(err)
		}
		o, err := far.Strategy.Strategy()
		if err != nil {
			t.Fatal(err)
		}
		again, err := o.Plain()
		if err != nil || fmt.Sprintf("%+v", again.Delays) != fmt.Sprintf("%+v", p.Delays) {
			t.Errorf("%v: %+v, was %+v", err, again.Delays, p.Delays)
		}
		for _, k := range abi.FailureKinds() {
			if f := (&abi.Failure{Kind: k}); o.Decide("x", f) != s.Decide("x", f) {
				t.Errorf("%v: %v, was %v", k, o.Decide("x", f), s.Decide("x", f))
			}
		}
		n, within := o.MaxRestarts()
		if was, w := s.MaxRestarts(); n != was || within != w || o.Sliding() != s.Sliding() || o.Exceeded() != s.Exceeded() || o.KeepChildren() != s.KeepChildren() {
			t.Errorf("%+v, was %+v", o, s)
		}
	}
}

func FuzzRequest(f *testing.F) {
	p, _ := supervision.Default().Plain()
	f.Add((&request{Type: "worker", Parent: 1 << 54, Strategy: p, Args: []byte{1}}).encode("c1"))
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRequest(b)
		if err != nil {
			return
		}
		if again, err := decodeRequest(r.encode(r.Name)); err != nil || again.Type != r.Type || again.Parent != r.Parent {
			t.Fatalf("%v: %+v, was %+v", err, again, r)
		}
		_, _ = r.Strategy.Strategy()
		if l := r.Limits.narrow(host.Limits{}); l.Mailbox > host.DefaultMailbox || l.Held > host.DefaultHeld || l.Fuel > host.DefaultFuel {
			t.Fatalf("%+v", l)
		}
		_ = both([]string{"/user/**", "/user/a"}, r.Send, matchPath)
	})
}

func FuzzChildAnswer(f *testing.F) {
	b, _ := cbor.Marshal(answer{Child: 1 << 54})
	f.Add(b)
	b, _ = cbor.Marshal(refusal(ErrNoNode))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, ok := decodeAnswer(b); ok && (a.Child != 0) == (a.Refused != "") {
			t.Fatalf("%+v", a)
		}
	})
}

// knocker asks a group for a child of its own, past the door.
type knocker struct {
	group host.Ref
	said  answer
}

func (k *knocker) Started(ctx *host.Context) error {
	r, err := requestOf(&Child{Type: "worker", Parent: ctx.Self(), Supervision: supervision.Default()})
	if err != nil {
		return err
	}
	return ctx.Ask(k.group, host.Headed{Value: host.Raw(r.encode("x")), Headers: map[string]string{Header: version}}, 1, time.Second)
}

func (k *knocker) Receive(_ *host.Context, m host.Message) error {
	k.said, _ = decodeAnswer(m.Payload)
	return nil
}

// A node whose actors may not start children here cannot have them started by the group of one that may.
func TestAGroupIsForItsNodeOnly(t *testing.T) {
	s, front, back := two(t, func(a *Accept) { a.From = []string{"front"} })
	other := s.start("other", nil)
	s.pass(5 * time.Second)
	x := s.do(front, "spawn", 0)
	s.pass(time.Second)
	if len(x.living) != 1 {
		t.Fatal(x.missed)
	}
	started := back.count.Started.Load()
	group, err := back.system.Lookup(fmt.Sprintf("/system/remote.%d", front.number))
	if err != nil {
		t.Fatal(err)
	}
	k := &knocker{}
	if k.group, err = other.system.RefOf(group.UID(), host.Ref{}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.system.Spawn("knocker", host.Native(func() host.Actor { return k })); err != nil {
		t.Fatal(err)
	}
	s.pass(2 * time.Second)
	if back.count.Started.Load() != started || k.said.Child != 0 || !strings.Contains(k.said.Refused, "denied") {
		t.Errorf("%+v, %d were started", k.said, back.count.Started.Load()-started)
	}
}
