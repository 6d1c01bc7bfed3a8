package rebuild

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// instant records in memory, and answers at once.
type instant struct {
	mu     sync.Mutex
	log    [][]byte
	entry  record.Entry
	closed bool
}

func (j *instant) Turn(t *record.Turn) {
	j.mu.Lock()
	j.entry.Set(t)
	j.append(&record.Record{Kind: record.Turned, Actor: t.Actor, Time: t.Time, Entry: &j.entry})
	j.mu.Unlock()
	t.Answer(nil)
}

func (j *instant) Note(r *record.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(r)
}

func (j *instant) append(r *record.Record) {
	if j.closed {
		return
	}
	b, err := cbor.Marshal(r)
	if err != nil {
		panic(err)
	}
	j.log = append(j.log, b)
}

func (j *instant) read(from, to int) []record.Record {
	out := make([]record.Record, to-from)
	for i := range out {
		if err := cbor.Unmarshal(j.log[from+i], &out[i]); err != nil {
			panic(err)
		}
	}
	return out
}

// durables are guests of all kinds, each with what the others have not.
func durables(t testing.TB, puppets, family *runtime.Image) map[string]host.Props {
	t.Helper()
	slow, err := backoff.Spec{Min: 20 * time.Millisecond, Max: 10 * time.Second, Jitter: "full"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	delayed := supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{Policy: slow, Grace: 5 * time.Millisecond})
	p := map[string]host.Props{
		"wat":   puppet(puppets, rec(1, 0, abi.AppendTimer(nil, 1, 9*ms, 11*ms, text("tick"))), rec(byte(abi.KindTimer), 0, send("/user/other", script(rec(recAdd, 1))))),
		"other": puppet(puppets, rec(byte(abi.KindPreRestart), 0, send("/user/wat", script(rec(recAdd, 2))))),
		"top":   puppet(puppets).WithSupervision(delayed).WithChildren(host.Child{Name: "p", Props: puppet(puppets)}, host.Child{Name: "p2", Props: puppet(puppets)}),
		"soft": puppet(puppets).WithSupervision(supervision.Default().WithOtherwise(supervision.Resume)).
			WithChildren(host.Child{Name: "q", Props: puppet(puppets)}),
		"stuck": puppet(puppets).WithSupervision(supervision.Default().WithOtherwise(supervision.Suspend)).
			WithChildren(host.Child{Name: "s", Props: puppet(puppets).WithChildren(host.Child{Name: "below", Props: puppet(puppets)})}),
		"order": puppet(puppets).WithSupervision(delayed.WithKind(supervision.RestForOne)).
			WithChildren(host.Child{Name: "a", Props: puppet(puppets)}, host.Child{Name: "b", Props: puppet(puppets)}, host.Child{Name: "c", Props: puppet(puppets)}),
		"again": puppet(puppets).WithCrashedMessage(host.RedeliverCrashed(3)).WithSupervision(delayed),
	}
	if family != nil {
		caps := host.Capabilities{Send: []string{"/user/**"}, Spawn: []string{"*"}}
		p["boss"] = host.Guest(family, "boss").WithArgs(int(supervision.Restart)).WithCapabilities(caps).WithSupervision(supervision.Default().WithOtherwise(supervision.Ask))
		p["worker"] = host.Guest(family, "worker").WithCapabilities(caps)
	}
	for name := range p {
		p[name] = p[name].WithDurable()
	}
	return p
}

// still is a system of durable actors whose records are in memory, on a virtual clock.
type still struct {
	*host.System
	t     testing.TB
	clock *host.VirtualClock
	j     *instant
	props map[string]host.Props
	r     *Rebuilt
}

func stillConfig(c *host.VirtualClock, j *instant) host.Config {
	return host.NewConfig("w").WithSeed(3).WithClock(c).WithManual().WithStore(j).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart))
}

func (w *still) of(l *record.Life) (*host.Props, error) {
	p, ok := w.props[strings.TrimPrefix(l.Path, "wasm://w/user/")]
	if !ok {
		return nil, fmt.Errorf("nobody knows %s", l.Path)
	}
	return &p, nil
}

// rebuiltAt is a system from a checkpoint, if there is one, and the records after it, at a time.
func rebuiltAt(t testing.TB, props map[string]host.Props, at time.Time, parts [][]byte, records []record.Record) *still {
	t.Helper()
	w := &still{t: t, clock: host.NewVirtualClock(at), j: &instant{}, props: props}
	r, err := Open(stillConfig(w.clock, w.j), w.of)
	if err == nil && parts != nil {
		err = r.Restore(parts)
	}
	if err == nil {
		err = r.Repeat(records)
	}
	if err != nil {
		t.Fatalf("parts %v: %v%s", len(parts), err, show(records))
	}
	w.System, w.r = r.System(), r
	return w
}

// end ends the system; what is recorded then does not matter.
func (w *still) end() {
	w.j.mu.Lock()
	w.j.closed = true
	w.j.mu.Unlock()
	if err := w.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// checkpointed is a checkpoint, with its place in the log.
type checkpointed struct {
	at    int
	parts [][]byte
	look  map[string]string // at what there was then
}

func (w *still) checkpoint() (c checkpointed, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.parts = [][]byte{nil}
	_, head, err := rebuild.Checkpoint(ctx, w.System, func() ([]abi.Ref, bool, error) { c.at = len(w.j.log); return nil, true, nil }, func(b []byte) error {
		c.parts = append(c.parts, b)
		return nil
	})
	if err == nil {
		c.parts[0], err = head()
	}
	return c, err
}

// life lets all that durable actors can have come about. looks is called in between.
func (w *still) life(looks func()) {
	tell := func(path string, vs ...any) func() {
		return func() {
			for _, v := range vs {
				_ = w.TellPath("/user/"+path, v)
			}
		}
	}
	add := script(rec(recAdd, 1))
	trapping := script(rec(recAdd, 5), rec(0, trap))
	toOther := script(rec(recAdd, 1), rec(0, 0, send("/user/other", add)))
	timer := func(key, delay uint64) any {
		return script(rec(0, 0, abi.AppendTimer(nil, key, delay*ms, 0, text("late"))))
	}
	at := func(path string) host.Ref {
		ref, err := w.Lookup("/user/" + path)
		if err != nil {
			return host.Ref{}
		}
		return ref
	}
	do := []func(){
		tell("wat", add, toOther, timer(7, 3), script(rec(0, 0, abi.AppendReceiveTimeout(nil, 25*ms))), timer(8, 4000), add),
		tell("other", add, script(rec(0, last, abi.AppendStash(nil))), add, trapping, add, script(rec(0, last, abi.AppendStash(nil)))),
		tell("top/p", add, timer(1, 5), trapping, add, add),
		tell("soft/q", add, add, trapping, add, timer(2, 50), add, trapping, add),
		tell("stuck/s", add, trapping, add), tell("stuck/s/below", add, add),
		tell("order/b", add, trapping, add), tell("order/c", add, add), tell("order/a", add),
		tell("again", add, trapping, add, add),
		tell("wat", script(rec(0, last, abi.AppendWatch(nil, 0, "/user/top/p2"))), script(rec(0, 0, abi.AppendAsk(nil, 0, "/user/again", 9, 300*ms, nil, add))),
			script(rec(0, 0, abi.AppendAsk(nil, 0, "/user/other", 10, 4*ms, nil, add)))),
		func() { _ = w.Operate().Pause(at("order"), true) },
		tell("order/a", add), tell("other", script(rec(0, last, abi.AppendUnstash(nil))), add),
		func() { w.Stop(at("top/p2")) },
		func() { _ = w.Operate().Decide(at("stuck/s"), supervision.Resume) },
		tell("top/p", trapping, add, trapping),
		func() { _ = w.Operate().Unpause(at("order"), true) },
		func() { _ = w.Operate().Kill(at("soft/q")) },
		tell("soft/q", add, add), tell("wat", toOther, toOther, trapping, add),
		func() { w.Stop(at("again")) },
		func() {
			if p, ok := w.props["boss"]; ok {
				for _, name := range []string{"boss", "worker"} {
					if _, err := w.Spawn(name, w.props[name]); err != nil {
						w.t.Fatal(err)
					}
				}
				_ = p
			}
		},
		tell("worker", 1, 2, "roll", "later", 3), tell("boss", "a", "b"), tell("worker", "ask-self", "roll", "kids", 4, 5),
		tell("boss/a", 1, "roll", "panic now", 2), tell("worker", 6, "fail no", 7), tell("boss/b", "kids", "quit", 1), tell("worker", "roll", 8),
	}
	for i := range len(do) + 12 {
		if i < len(do) {
			do[i]()
			looks()
		}
		for range 90 {
			if !w.Step() {
				break
			}
			looks()
		}
		w.clock.Advance(2 * time.Millisecond)
		looks()
	}
}

// look is what is there of an actor.
func (w *still) look() map[string]string {
	all := map[string]string{}
	for _, i := range w.View().AppendInfo(nil) {
		if strings.HasPrefix(i.Ref.Path(), "/user/") {
			x := rebuild.Look(w.System, i.Ref.UID())
			all[i.Ref.Path()] = fmt.Sprintf("%+v", *x)
		}
	}
	return all
}

// A system that is killed at any record is the same whether all is repeated, or only what came after the last checkpoint,
// and whenever that was: memory, mailbox, timers, asks, watches, stash, children, failures, restarts under way. It stays the
// same when it goes on.
func TestCheckpoints(t *testing.T) {
	for _, compiler := range []string{"none", "go"} {
		t.Run(compiler, func(t *testing.T) {
			puppets := puppetImage(t)
			family := puppets
			if family = nil; compiler != "none" {
				family = familyImage(t, compiler)
			}
			props := durables(t, puppets, family)
			w := &still{t: t, clock: host.NewVirtualClock(start), j: &instant{}, props: props}
			sys, err := host.New(stillConfig(w.clock, w.j))
			if err != nil {
				t.Fatal(err)
			}
			w.System = sys
			for _, name := range []string{"wat", "other", "top", "soft", "stuck", "order", "again"} {
				if _, err := w.Spawn(name, props[name]); err != nil {
					t.Fatal(err)
				}
			}
			w.RunUntilIdle(1 << 20)
			var all []checkpointed
			refused := 0
			w.life(func() {
				c, err := w.checkpoint()
				if err != nil {
					refused++
					return
				}
				c.look = w.look()
				all = append(all, c)
			})
			records := w.j.read(0, len(w.j.log))
			w.end()
			t.Logf("%d records, %d checkpoints, %d refused", len(records), len(all), refused)
			if len(all) < 20 || refused > len(all)/4 {
				t.Fatal("too few checkpoints")
			}
			seen := map[string]int{}
			for _, c := range all {
				for _, text := range c.look {
					for _, what := range []string{"Life:failed", "Life:restarting", "grace until", "receive timeout", "paused true", "suspended 1", "Kind:timer", "Waits"} {
						if strings.Contains(text, what) {
							seen[what]++
						}
					}
				}
			}
			t.Log(seen)
			compared := 0
			for i, c := range all {
				ks := []int{c.at}
				if i%5 == 0 {
					ks = append(ks, min(c.at+1+i%5, len(records)), (c.at+len(records))/2, len(records))
				}
				for _, k := range ks {
					at := start.UnixNano()
					for _, r := range records[:k] {
						at = max(at, r.Time)
					}
					short := rebuiltAt(t, props, time.Unix(0, at), c.parts, records[c.at:k])
					if k == c.at {
						compareLooks(t, fmt.Sprintf("killed after %d records, checkpoint after %d", k, c.at), c.look, short.look())
						if i%4 != 0 {
							short.r.Release()
							short.end()
							continue
						}
					}
					whole := rebuiltAt(t, props, time.Unix(0, at), nil, records[:k])
					for _, x := range []*still{whole, short} {
						x.r.Release()
						x.RunUntilIdle(1 << 20)
						for _, d := range []time.Duration{time.Millisecond, 20 * time.Millisecond, time.Second} {
							x.clock.Advance(d)
							x.RunUntilIdle(1 << 20)
						}
					}
					if again(records[:k]) {
						whole.end()
						short.end()
						continue
					}
					compared++
					compareLooks(t, fmt.Sprintf("gone on after %d records, checkpoint after %d", k, c.at), whole.look(), short.look())
					whole.end()
					short.end()
					if t.Failed() {
						t.Fatalf("the last records: %s", show(records[max(0, c.at-6):k][:min(12, k-max(0, c.at-6))]))
					}
				}
			}
			if t.Logf("%d went on like those that have repeated all", compared); compared < 8 {
				t.Error("too few")
			}
		})
	}
}

// again reports whether the last thing that an actor has done is a signal that leads to a turn: it is done once more, and
// later, when the system goes on, unless a checkpoint came after it.
func again(records []record.Record) bool {
	last := map[abi.Ref]string{}
	for _, r := range records {
		switch {
		case r.Kind == record.Accepted:
		case r.Signal != nil:
			last[r.Actor] = r.Signal.What
		default:
			last[r.Actor] = ""
		}
	}
	for _, what := range last {
		switch what {
		case "start", "stop", "quit", "restart", "begin", "restart-due":
			return true
		}
	}
	return false
}

func compareLooks(t *testing.T, when string, x, y map[string]string) {
	t.Helper()
	var paths []string
	for p := range x {
		paths = append(paths, p)
	}
	for p := range y {
		if x[p] == "" {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		if x[p] != y[p] {
			t.Errorf("%s: %s is\n%s\nand from the checkpoint\n%s", when, p, clip(x[p], y[p]), clip(y[p], x[p]))
		}
	}
}

// clip is a text around its first difference from another.
func clip(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("(from byte %d of %d) ...%s ... %s", i, len(a), a[max(0, i-60):min(len(a), i+300)], a[max(0, len(a)-300):])
}
