package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/internal/saved"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

func lazily(o *Options) { o.Lazy = true }

// eagerly has all actors return at the start.
func eagerly(o *Options) { o.Lazy = false }

// crowd are actors with the numbers of a store's test, of which one has a timer, one a child and one a stashed message.
func crowd(t testing.TB, n int) Props {
	image, props := puppetImage(t), Props{}
	for i := range n {
		props[fmt.Sprint("a", i)] = puppet(image, rec(byte(abi.KindTimer), 0, send("/user/a0", add)))
	}
	props["timer"] = puppet(image, rec(byte(abi.KindTimer), 0, send("/user/a1", add)))
	props["parent"] = puppet(image).WithChildren(host.Child{Name: "kid", Props: puppet(image)})
	props["stash"] = puppet(image)
	return props
}

// crowded is a store with a checkpoint of a crowd; each a has counted its number.
func crowded(t testing.TB, n int) *world {
	w := mustOpen(t, t.TempDir(), crowd(t, n), eagerly)
	for i := range n {
		for range i {
			w.tell(fmt.Sprint("a", i), add)
		}
	}
	w.tell("timer", script(rec(0, 0, abi.AppendTimer(nil, 1, 3_600_000*ms, 3_600_000*ms, nil))))
	w.tell("stash", script(rec(0, last, abi.AppendStash(nil))))
	for name := range w.props {
		w.report(name)
	}
	w.checkpoint()
	return w
}

// Actors with nothing under way stay in the checkpoint until something comes for them, and are what they were then; also from the
// checkpoints that are made before they return.
func TestActorsReturnWhenTheyAreNeeded(t *testing.T) {
	const n = 12
	w := crowded(t, n)
	ref := func(i int) host.Ref {
		r, err := w.Lookup(fmt.Sprint("/user/a", i))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	refs := make([]host.Ref, n)
	for i := range refs {
		refs[i] = ref(i)
	}
	w.close()
	w = mustOpen(t, w.dir, w.props, lazily)
	left := func(want int) {
		t.Helper()
		if got := w.store.away.Len(); got != want {
			t.Errorf("%d actors have not returned, want %d", got, want)
		}
	}
	left(n) // the others have something under way
	rows := w.View().AppendInfo(nil)
	stats, totals, tree := w.View().Stats(), w.View().Totals(), w.View().Tree()
	if len(rows) != n+4+3 || stats.Actors != len(rows) || totals.Actors != len(rows) || len(tree.Children) != n+4 || stats.Types["puppet"].Actors != n+4 {
		t.Errorf("%d rows, %d and %d actors, %d in the tree, %+v", len(rows), stats.Actors, totals.Actors, len(tree.Children), stats.Types)
	}
	left(n) // who looks at all has none return
	if w.report("a3") != 3 {
		t.Error("a3")
	}
	left(n - 1)
	if err := w.Tell(refs[4], add); err != nil || w.report("a4") != 5 { // by its ref, which is the one that it had
		t.Error(err, "a4")
	}
	w.tell("parent", script(rec(0, 0, send("/user/a5", add)))) // from another durable actor
	eventually(t, func() bool { return !w.store.away.Has(refs[5].UID()) && w.report("a5") == 6 })
	left(n - 3)
	if _, err := w.Spawn("a6", w.props["a6"]); !errors.Is(err, host.ErrNameTaken) {
		t.Errorf("its name is not taken: %v", err)
	}
	ended, err := w.Ended(refs[7])
	if err != nil {
		t.Fatal(err)
	}
	w.Stop(refs[7])
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("who watches it is not told")
	}
	left(n - 5)
	w.checkpoint() // with those that are left
	left(n - 5)
	w.tell("a8", add) // behind it
	if w.report("a8") != 9 {
		t.Error("a8")
	}
	dir := w.killed()
	w.close()
	for life := range 2 {
		w = mustOpen(t, dir, w.props, lazily)
		if life == 1 {
			left(n) // a7 has begun anew, and is as the others
		}
		for i := range n {
			want := byte(i)
			switch i {
			case 4, 5, 8:
				want++
			case 7:
				want = 0
			}
			if got := w.report(fmt.Sprint("a", i)); got != want {
				t.Errorf("life %d: a%d has %d, want %d", life, i, got, want)
			}
			if again := ref(i); again.UID() != refs[i].UID() && i != 7 {
				t.Errorf("a%d has another ref", i)
			}
		}
		left(0)
		w.checkpoint()
		w.checkpoint()
		w.close()
	}
}

// Who looks at all while actors return sees each once.
func TestLooksWhileActorsReturnLate(t *testing.T) {
	const n = 200
	props := Props{}
	for i := range n {
		props[fmt.Sprint("a", i)] = puppet(puppetImage(t))
	}
	w := mustOpen(t, t.TempDir(), props)
	for name := range props {
		w.report(name)
	}
	w.checkpoint()
	w.close()
	w = mustOpen(t, w.dir, props)
	defer w.close()
	if left := w.store.away.Len(); left != n {
		t.Fatalf("%d actors have not returned", left)
	}
	looks := []func() int{ // besides the guardians, and the one outside
		func() int { return len(w.View().AppendInfo(nil)) - 3 },
		func() int { infos, _ := w.View().Census(nil); return len(infos) - 3 },
		func() int { return len(w.View().Tree().Children) - 1 },
		func() int { return int(w.View().Stats().Types["puppet"].Actors) },
	}
	var all sync.WaitGroup
	done := make(chan struct{})
	for i, look := range looks {
		all.Go(func() {
			for {
				if seen := look(); seen != n {
					t.Errorf("look %d: %d actors, want %d", i, seen, n)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	var both sync.WaitGroup
	for range 2 { // two messages at once
		both.Go(func() {
			for i := range n {
				w.tell(fmt.Sprint("a", i), add)
			}
		})
	}
	both.Wait()
	close(done)
	all.Wait()
	for name := range props {
		if got := w.report(name); got != 2 {
			t.Errorf("%s has %d", name, got)
		}
	}
}

// A pattern finds all, in the order of their start.
func TestPatternsFindThoseWhoHaveNotReturned(t *testing.T) {
	w := crowded(t, 6)
	want := fmt.Sprint(w.Select("/user/*"))
	w.close()
	for _, first := range []string{"", "a3", "a5"} {
		w = mustOpen(t, w.dir, w.props, lazily)
		if first != "" {
			w.report(first)
		}
		got := slices.DeleteFunc(w.Select("/user/*"), func(r host.Ref) bool { return strings.HasPrefix(r.Path(), "/user/outside") })
		if text := fmt.Sprint(got); text != strings.Replace(want, "wasm://w/user/outside", "", 1) && len(got)+1 != len(strings.Fields(want)) {
			t.Errorf("after %q:\n %s\nwant\n %s", first, text, want)
		}
		var order []string
		for _, r := range got {
			order = append(order, r.Path())
		}
		if strings.Join(order, " ") != orderOf(want) {
			t.Errorf("after %q:\n %s\nwant\n %s", first, order, orderOf(want))
		}
		w.close()
	}
}

func orderOf(refs string) string {
	var all []string
	for _, f := range strings.Fields(strings.Trim(refs, "[]")) {
		path, _, _ := strings.Cut(strings.TrimPrefix(f, "wasm://w"), "#")
		if !strings.HasPrefix(path, "/user/outside") {
			all = append(all, path)
		}
	}
	return strings.Join(all, " ")
}

// twinStep is a step of a test that compares early returns with late ones.
type twinStep struct {
	what string
	a, b int
}

func drawSteps(rt *rapid.T, n, most int, kinds ...string) (steps []twinStep) {
	for range rapid.IntRange(1, most).Draw(rt, "steps") {
		steps = append(steps, twinStep{
			what: rapid.SampledFrom(kinds).Draw(rt, "what"),
			a:    rapid.IntRange(0, n-1).Draw(rt, "a"), b: rapid.IntRange(0, n-1).Draw(rt, "b"),
		})
	}
	return steps
}

// settled waits until nothing is under way.
func settled(t testing.TB, w *world, steps any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.Idle(ctx); err != nil {
		var text string
		for _, i := range w.View().AppendInfo(nil) {
			text += fmt.Sprintf("%s %v mailbox %d turns %d\n", i.Ref.Path(), i.State, i.Mailbox, i.Turns)
		}
		t.Fatalf("%v: %+v, %v\n%s", err, steps, w.store.Figures(), text)
	}
}

// do does a step; it returns what is seen of it.
func (s twinStep) do(w *world, props Props) (out []string) {
	a, to := fmt.Sprint("a", s.a), fmt.Sprint("/user/a", s.b)
	if s.what == "spawn" {
		_, err := w.Spawn(a, props[a])
		out = append(out, fmt.Sprint("spawn ", errors.Is(err, host.ErrNameTaken)))
	}
	ref, err := w.Lookup("/user/" + a)
	if s.what == "checkpoint" {
		w.checkpoint()
	} else if err != nil {
		return out // it was stopped
	}
	switch s.what {
	case "add":
		w.tell(a, add)
	case "send":
		w.tell(a, script(rec(0, 0, send(to, add))))
	case "trap":
		w.tell(a, script(rec(recAdd, 1), rec(0, trap)))
	case "stop":
		w.Stop(ref)
	case "timer":
		w.tell(a, script(rec(0, 0, abi.AppendTimer(nil, 1, 3_600_000*ms, 3_600_000*ms, nil))))
	case "watch":
		w.tell(a, script(rec(0, last, abi.AppendWatch(nil, 0, to))))
	case "pattern":
		_ = w.TellPath("/user/a*", add)
	case "ask":
		out = append(out, fmt.Sprint(a, " ", w.report(a)))
	case "ref":
		_ = w.Tell(ref, add)
	}
	return out
}

// allOf is the state of all actors of a world that is idle, and their answers.
func allOf(t testing.TB, w *world) []string {
	t.Helper()
	return append(statesOf(t, w), answersOf(w)...)
}

// statesOf is the state of all actors of a world in which nothing runs, their memory byte for byte. Times of the machine are not in it.
func statesOf(t testing.TB, w *world) (out []string) {
	t.Helper()
	for name := range w.props {
		ref, err := w.Lookup("/user/" + name)
		if err != nil {
			out = append(out, name+" is gone")
			continue
		}
		x := port.Look(w.System, ref.UID())
		if x == nil {
			out = append(out, name+" cannot be seen")
			continue
		}
		text := fmt.Sprintf("%s %016x %s held %v incarnation %d turns %d timers %d children %v mail %v position %d", x.Path, uint64(x.Ref), x.Life, x.Held,
			x.Incarnation, x.Turns, len(x.Timers), x.Children, x.Mail, x.Position)
		if len(x.Saved) > 0 {
			s, err := saved.Decode(x.Saved)
			if err != nil {
				t.Errorf("%s: %v, %d bytes", name, err, len(x.Saved))
				continue
			}
			text += fmt.Sprintf(" watches %v stash %d asks %d children %v memory %x", s.Watches, len(s.Stash), len(s.Asks), s.Children, s.Guest)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// answersOf is what all actors of a world answer.
func answersOf(w *world) (out []string) {
	for name := range w.props {
		if _, err := w.Lookup("/user/" + name); err == nil {
			out = append(out, fmt.Sprint(name, " ", w.report(name)))
		}
	}
	slices.Sort(out)
	return out
}

// differ shows where two worlds are not the same.
func differ(early, late []string) string {
	var text strings.Builder
	for i := range max(len(early), len(late)) {
		var a, b string
		if i < len(early) {
			a = early[i]
		}
		if i < len(late) {
			b = late[i]
		}
		if a != b {
			fmt.Fprintf(&text, "early %.2000s\nlate  %.2000s\n", a, b)
		}
	}
	return text.String()
}

// Whatever comes for them, and however often the process is killed, actors that return late are to the bit what they are when all
// return at the start.
func TestLateReturnsChangeNothing(t *testing.T) {
	thorough.Checks(t, 40)
	const n = 6
	base := crowded(t, n)
	start := base.killed()
	base.close()
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt, n, 14, "add", "send", "trap", "stop", "timer", "watch", "checkpoint", "kill", "pattern", "ask", "ref", "spawn")
		play := func(how func(*Options)) (out []string) {
			dir := t.TempDir()
			if err := copyBackward(dir, start); err != nil {
				t.Fatal(err)
			}
			w := mustOpen(t, dir, base.props, how)
			for _, s := range steps {
				if s.what == "kill" {
					w.report("parent") // all before it is durable
					dir = w.killed()
					w.close()
					w = mustOpen(t, dir, base.props, how)
				}
				out = append(out, s.do(w, base.props)...)
				settled(t, w, steps)
			}
			out = append(out, allOf(t, w)...)
			w.close()
			return out
		}
		early, late := play(eagerly), play(lazily)
		if !slices.Equal(early, late) {
			rt.Fatalf("%+v\n%s", steps, differ(early, late))
		}
	})
}

// A store of a process that was killed in the middle of its work becomes the same system in both ways, to the bit, until it is released. Then
// several actors work at once, and which messages share a batch is chance: what they have counted is the same, their memory need not be.
func TestLateReturnsAfterKillsInTheMiddle(t *testing.T) {
	thorough.Checks(t, 30)
	const n = 6
	base := crowded(t, n)
	start := base.killed()
	base.close()
	stayed := 0
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt, n, 10, "add", "add", "send", "trap", "timer", "checkpoint", "ref")
		dir := t.TempDir()
		if err := copyBackward(dir, start); err != nil {
			t.Fatal(err)
		}
		w := mustOpen(t, dir, base.props, lazily)
		for _, s := range steps {
			s.do(w, base.props) // the next one comes while it is under way
		}
		dir = w.killed()
		w.close()
		play := func(how func(*Options)) (states, answers []string) {
			own := t.TempDir()
			if err := copyBackward(own, dir); err != nil {
				t.Fatal(err)
			}
			w, x, err := recovered(t, own, base.props, how)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			defer x.Abandon() // if it was not released
			stayed += w.store.away.Len()
			states = statesOf(t, w)
			x.Release()
			settled(t, w, steps)
			return states, answersOf(w)
		}
		early, counted := play(eagerly)
		late, recounted := play(lazily)
		if !slices.Equal(early, late) {
			rt.Fatalf("%+v\n%s", steps, differ(early, late))
		}
		trap := slices.ContainsFunc(steps, func(s twinStep) bool { return s.what == "trap" }) // what comes before a restart is forgotten by it
		if !trap && !slices.Equal(counted, recounted) {
			rt.Fatalf("%+v\n%s", steps, differ(counted, recounted))
		}
	})
	if stayed == 0 {
		t.Error("none stayed away")
	}
}

// With a lower limits.durable an actor fails at the next checkpoint, in whatever way it returns; others stay away.
func TestALowerLimitOfWhoIsAway(t *testing.T) {
	image := puppetImage(t)
	with := func(most int64) Props {
		props := Props{}
		for _, name := range []string{"a", "b", "c"} {
			props[name] = puppet(image).WithLimits(host.Limits{Durable: most})
		}
		return props
	}
	w := mustOpen(t, t.TempDir(), with(0), eagerly)
	for name := range w.props {
		w.tell(name, add)
		w.report(name)
	}
	w.checkpoint()
	dir, most := w.killed(), int64(0)
	_, all := repeated(t, dir)
	for _, a := range all {
		most = max(most, a.Checkpoint)
	}
	w.close()
	for _, late := range []bool{false, true} {
		for _, lower := range []int64{most / 2, most + 100, most + surely} {
			way := eagerly
			if late {
				way = lazily
			}
			copied := t.TempDir()
			if err := copyBackward(copied, dir); err != nil {
				t.Fatal(err)
			}
			w := mustOpen(t, copied, with(lower), way)
			if n := w.store.away.Len(); n != map[bool]int{true: 3}[late && lower >= most] {
				t.Errorf("late %v, %d bytes of %d: %d are away", late, lower, most, n)
			}
			w.checkpoint()
			want := byte(1)
			if lower < most {
				want = 0
			}
			eventually(t, func() bool { return w.report("a") == want && w.report("b") == want })
			w.close()
		}
	}
}

// surely is beyond what an actor may have besides its guest's state before its part is read.
const surely = 2 << 20
