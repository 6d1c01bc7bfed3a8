package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// wood grows a random tree of actors, some of which wait for an operator.
func wood(t *testing.T, r *rapid.T) *stage {
	s := newStage(t, nil)
	var grow func(depth int) []host.Child
	grow = func(depth int) (kids []host.Child) {
		for i := range rapid.IntRange(0, 5).Draw(r, "children") {
			p := faulty().WithSupervision(suspending)
			if depth > 0 {
				p = p.WithChildren(grow(depth - 1)...)
			}
			kids = append(kids, host.Child{Name: fmt.Sprint("n", i), Props: p})
		}
		return kids
	}
	for i := range rapid.IntRange(1, 3).Draw(r, "trees") {
		s.spawn(fmt.Sprint("t", i), faulty().WithSupervision(suspending).WithChildren(grow(rapid.IntRange(0, 3).Draw(r, "depth"))...))
	}
	s.run()
	for _, a := range s.everything(r) {
		switch rapid.IntRange(0, 4).Draw(r, "fate") {
		case 0:
			_ = s.Tell(s.at(a.Path), "fail")
		case 1:
			_ = s.Operate().Pause(s.at(a.Path), rapid.Bool().Draw(r, "subtree"))
			_ = s.Tell(s.at(a.Path), "waits")
		}
	}
	s.run()
	return s
}

// everything is all actors, page by page.
func (s *stage) everything(r *rapid.T) (all []Actor) {
	limit := rapid.IntRange(1, 20).Draw(r, "limit")
	for {
		p, err := s.Actors(Query{Offset: len(all), Limit: limit})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(p.Actors) == 0 {
			if len(all) != p.Total {
				s.t.Fatalf("%d of %d", len(all), p.Total)
			}
			return all
		}
		all = append(all, p.Actors...)
	}
}

// Whatever the tree: pages cover every actor once, in order; the tree has the same actors;
// sums are those of the actors below, however much of the tree is shown.
func TestListsAndTreesAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := wood(t, r)
		defer s.close()
		all := s.everything(r)
		if !slices.IsSortedFunc(all, func(a, b Actor) int { return cmp.Compare(a.Path, b.Path) }) {
			r.Fatal("not in order")
		}
		system := s.Observer.System()
		states, turns, mailbox := map[State]int{}, uint64(0), 0
		for _, a := range all {
			states[a.State]++
			turns += a.Turns
			mailbox += a.Mailbox
		}
		if system.Actors != len(all) || !reflect.DeepEqual(system.States, states) || system.Turns < turns || system.Mailbox != mailbox {
			r.Fatalf("%+v, of the list %v, %d turns, %d messages", system, states, turns, mailbox)
		}
		tree, err := s.Observer.Tree(TreeQuery{
			Depth: rapid.IntRange(1, 6).Draw(r, "depth"), Limit: rapid.IntRange(1, 6).Draw(r, "width"), Nodes: rapid.IntRange(1, 60).Draw(r, "nodes"),
			Sort: rapid.SampledFrom(Sorts()).Draw(r, "sort"), Desc: rapid.Bool().Draw(r, "desc"),
		})
		if err != nil {
			r.Fatal(err)
		}
		var check func(n TreeNode)
		check = func(n TreeNode) {
			sum := Aggregate{States: map[State]int{}}
			kids := 0
			for _, a := range append(slices.Clone(all), Actor{Path: "/user", State: Running}) {
				if a.Parent == n.Path {
					kids++
				}
				if a.Path == n.Path || strings.HasPrefix(a.Path, n.Path+"/") {
					sum.Actors++
					sum.States[a.State]++
					sum.Mailbox += a.Mailbox
					sum.Turns += a.Turns
					sum.Crashes += a.Crashes
				}
			}
			b := n.Below
			if b.Actors != sum.Actors || b.Mailbox != sum.Mailbox || b.Turns != sum.Turns || b.Crashes != sum.Crashes || b.States != nil && !reflect.DeepEqual(b.States, sum.States) || (b.States == nil) != (b.Actors == 1) {
				r.Fatalf("%s: %+v, want %+v", n.Path, b, sum)
			}
			if n.Children != kids || len(n.Nodes)+n.More != kids {
				r.Fatalf("%s: %d children, %d shown, %d more; there are %d", n.Path, n.Children, len(n.Nodes), n.More, kids)
			}
			for _, k := range n.Nodes {
				if k.Parent != n.Path {
					r.Fatalf("%s below %s", k.Path, n.Path)
				}
				check(k)
			}
		}
		check(tree)
	})
}

// A dry run says what the verb then does, to whom, and changes nothing at all.
func TestDryRunsChangeNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := wood(t, r)
		defer s.close()
		v := Verb{Verb: rapid.SampledFrom(Verbs()).Draw(r, "verb"), DryRun: true, Select: Select{
			Paths:  rapid.SliceOfN(rapid.SampledFrom([]string{"/user/t0", "/user/t0/**", "/user/*/n1", "/user/**", "/user/t1/n?"}), 1, 2).Draw(r, "paths"),
			States: rapid.SliceOfN(rapid.SampledFrom(States()), 0, 2).Draw(r, "states"),
		}}
		if v.Verb == VerbDecide {
			v.Directive = "stop"
		}
		before := s.everything(r)
		would, err := s.Do(v)
		if err != nil {
			r.Fatal(err)
		}
		s.run()
		if after := s.everything(r); !slices.Equal(before, after) {
			r.Fatalf("%+v has changed something", v)
		}
		v.DryRun = false
		did, err := s.Do(v)
		if err != nil {
			r.Fatal(err)
		}
		would.DryRun = false
		if !reflect.DeepEqual(would, did) {
			r.Fatalf("%+v, and then %+v", would, did)
		}
	})
}

// Whatever the question says, it is answered or refused with ErrInvalid or ErrNoActor, in
// bounded time and size.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte(`{"paths":["/user/**"],"states":["running"]}`), "path", "/user", 3)
	f.Add([]byte(`{"refs":["0000000000000001"],"types":["*"]}`), "oldest", "/user/../x", -1)
	f.Add([]byte(`{"paths":["/`+strings.Repeat("*", 200)+`a"]}`), "x", "wasm://test/user", 1<<30)
	s := newStage(f, nil)
	s.below(restarting, faulty())
	f.Fuzz(func(t *testing.T, sel []byte, sort, path string, n int) {
		var q Query
		if json.Unmarshal(sel, &q.Select) != nil {
			return
		}
		q.Sort, q.Search, q.Limit, q.Offset = sort, path, n, n
		ok := func(err error) {
			if err != nil && !bytes.HasPrefix([]byte(err.Error()), []byte("observe: ")) {
				t.Errorf("%v", err)
			}
		}
		p, err := s.Actors(q)
		ok(err)
		if len(p.Actors) > MaxLimit {
			t.Error(len(p.Actors))
		}
		_, err = s.Observer.Tree(TreeQuery{Under: path, Depth: n, Limit: n, Nodes: n, Sort: sort})
		ok(err)
		_, err = s.Actor(path)
		ok(err)
		_, err = s.Do(Verb{Verb: VerbRestart, Select: q.Select, DryRun: true})
		ok(err)
		x, err := s.Events(EventQuery{Paths: q.Select.Paths, Kinds: []string{sort}, Buffer: n})
		ok(err)
		if err == nil {
			x.Close()
		}
		_, err = s.Observer.DeadLetters(DeadQuery{To: q.Select.Paths, Limit: n, Offset: n})
		ok(err)
	})
}

// The age of the oldest message is never more than it is, a message of a spell aside, and
// grows while nothing is handled.
func TestOldestMessages(t *testing.T) {
	s := newStage(t, nil)
	s.below(restarting, faulty())
	_ = s.Operate().Pause(s.at(subject), false)
	s.run()
	s.tell(subject, 1)
	s.run()
	if a := s.row(subject); a.OldestNS != 0 {
		t.Errorf("seen for the first time: %d", a.OldestNS)
	}
	for i := range 10 {
		s.clock.Advance(time.Second)
		s.tell(subject, 2)
		if a := s.row(subject); a.OldestNS != int64(i+1)*1e9 {
			t.Errorf("after %d s: %v", i+1, time.Duration(a.OldestNS))
		}
	}
	_ = s.Operate().Unpause(s.at(subject), false)
	s.run()
	if a := s.row(subject); a.OldestNS != 0 || a.Mailbox != 0 {
		t.Errorf("%+v", a)
	}
	if len(s.waiting.byRef) != 0 {
		t.Error("something is kept of an actor that nothing waits for")
	}
	rapid.Check(t, func(r *rapid.T) {
		var m marks
		var queue []int64 // when each message came
		done, now := uint64(0), int64(0)
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			now += rapid.Int64Range(1, 100).Draw(r, "passes")
			switch rapid.IntRange(0, 2).Draw(r, "step") {
			case 0:
				queue = append(queue, now)
			case 1:
				if len(queue) > 0 {
					queue = queue[1:]
					done++
				}
			default:
				if len(queue) == 0 {
					m = marks{}
					continue
				}
				if age := m.look(mark{now, done + uint64(len(queue))}, done); age < 0 || age > now-queue[0] {
					r.Fatalf("%d, it has waited for %d", age, now-queue[0])
				}
			}
		}
	})
}

// Everybody looks and gives orders while actors run, fail, come and go.
func TestLookingWhileItRuns(t *testing.T) {
	sys, err := host.New(host.NewConfig("live"))
	if err != nil {
		t.Fatal(err)
	}
	o := New(sys, Options{}.WithSharing(time.Millisecond))
	for i := range 50 {
		kid := host.Child{Name: "kid", Props: faulty()}
		if _, err := sys.Spawn(fmt.Sprint("a", i), faulty().WithSupervision(supervision.Default()).WithChildren(kid)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	forever := func(f func(i int)) {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				f(i)
			}
		})
	}
	forever(func(i int) {
		for _, ref := range sys.Select(fmt.Sprintf("/user/a%d/kid", i%50)) {
			_ = sys.Tell(ref, []any{1, "fail"}[i%7/6])
		}
	})
	forever(func(int) { o.System(); _, _ = o.Actors(Query{Sort: "oldest", Desc: true}) })
	forever(func(i int) { _, _ = o.Tree(TreeQuery{}); _, _ = o.Actor(fmt.Sprintf("/user/a%d/kid", i%50)) })
	forever(func(i int) {
		_, _ = o.Do(Verb{Verb: Verbs()[2+i%4], Select: Select{Paths: []string{fmt.Sprintf("/user/a%d", i%50)}}})
		_, _ = o.DeadLetters(DeadQuery{})
		_, _ = o.Redeliver(DeadQuery{To: []string{"/**"}}, i%2 == 0)
	})
	forever(func(i int) {
		if x, err := o.Trace(fmt.Sprintf("/user/a%d/kid", i%50), TraceOptions{Messages: 3, For: time.Millisecond}); err == nil {
			for range x.C() {
			}
		}
	})
	forever(func(int) {
		if x, err := o.Events(EventQuery{Follow: true}); err == nil {
			all(x)
			x.Close()
		}
	})
	forever(func(int) { _, _ = o.Flow(ctx, 10*time.Millisecond) })
	wg.Wait()
	o.Close()
	if err := sys.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
