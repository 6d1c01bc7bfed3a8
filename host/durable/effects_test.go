package durable

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/supervision"
)

// bank is a service that keeps keys as one should: it outlives the systems that use it.
type bank struct {
	mu    sync.Mutex
	deaf  bool // it does nothing with what comes
	done  map[[2]string]bool
	sum   int
	came  []came
	again int
}

type came struct {
	host.Effect
	sender host.Ref
}

func newBank() *bank { return &bank{done: map[[2]string]bool{}} }

func (b *bank) kind() *service.Service[struct{}, struct{}] {
	return service.Define(service.Definition[struct{}, struct{}]{Name: "bank", Doc: "adds", Open: func(*service.Env, *struct{}) (service.Provider[struct{}], error) {
		return b, nil
	}})
}

// Serve implements service.Provider.
func (b *bank) Serve(ctx context.Context, r *service.Request[struct{}]) (any, error) {
	if !b.take(r) {
		<-ctx.Done()
	}
	return 1, ctx.Err()
}

// Close implements service.Provider.
func (b *bank) Close(context.Context) error { return nil }

// ServeNow implements service.Inline.
func (b *bank) ServeNow(r *service.Request[struct{}]) (any, error, bool) {
	return 1, nil, r.Op == "now" && b.take(r)
}

func (b *bank) take(r *service.Request[struct{}]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := came{sender: r.Sender}
	if r.Effect != nil {
		x.Effect = *r.Effect
	}
	b.came = append(b.came, x)
	if b.deaf {
		return false
	}
	if key := [2]string{r.Sender.String(), x.String()}; b.done[key] {
		b.again++
	} else {
		b.done[key] = true
		b.sum++
	}
	return true
}

func (b *bank) all() []came {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.came)
}

func (b *bank) setDeaf(deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = deaf
}

func askBank(correlation uint64, timeout time.Duration, op string) []byte {
	m, _ := cbor.Marshal([]any{op, nil})
	return abi.AppendAsk(nil, 0, "/system/bank", correlation, uint64(timeout), nil, m)
}

// withBank is a system with durable actors and the bank.
func withBank(t *testing.T, dir string, b *bank, props Props, change ...func(host.Config) host.Config) *world {
	t.Helper()
	store, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, dir: dir, props: props}
	cfg := config()
	for _, f := range change {
		cfg = f(cfg)
	}
	x, err := store.Prepare(cfg, props)
	if err != nil {
		t.Fatal(err)
	}
	w.System = x.System()
	if _, err := b.kind().Start(w.System, nil, nil); err != nil {
		t.Fatal(err)
	}
	back, err := x.Recover()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range props {
		if !back[name] {
			if _, err := w.Spawn(name, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	x.Release()
	return w
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// asker adds one for each answer.
func asker(props host.Props) host.Props {
	return props.WithGrant("bank", (&bank{}).kind().Grant(struct{}{}, service.Bounds{}))
}

// TestRequestsAreSentAgain: what was asked of a service and has no answer in the log is asked again under its key, whether a checkpoint
// has the ask or the log. What has an answer is not.
func TestRequestsAreSentAgain(t *testing.T) {
	image := puppetImage(t)
	for _, checkpoint := range []bool{false, true} {
		b := newBank()
		grant := b.kind().Grant(struct{}{}, service.Bounds{})
		props := Props{"a": puppet(image, rec(byte(abi.KindReply), 0, send("/user/a", add))).WithGrant("bank", grant)}
		b.setDeaf(true)
		w := withBank(t, t.TempDir(), b, props)
		w.tell("a", script(rec(0, 0, askBank(7, time.Hour, "add")), rec(0, 0, askBank(8, time.Hour, "add"))))
		until(t, func() bool { return len(b.all()) == 2 })
		if checkpoint {
			if err := w.store.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		first := b.all()
		dir := w.killed()
		w.close()

		w = withBank(t, dir, b, props) // it is still deaf
		until(t, func() bool { return len(b.all()) == 4 })
		dir = w.killed()
		w.close()

		b.setDeaf(false)
		w = withBank(t, dir, b, props)
		until(t, func() bool { return len(b.all()) == 6 && w.report("a") == 2 })
		all := b.all()
		for i := 0; i < len(all); i += 2 { // the goroutines of a service have no order
			slices.SortFunc(all[i:i+2], func(x, y came) int { return int(x.Number) - int(y.Number) })
		}
		slices.SortFunc(first, func(x, y came) int { return int(x.Number) - int(y.Number) })
		for i, x := range all {
			y := first[i%2]
			if x != y || x.Key == (host.Effect{}).Key || x.sender.Path() != "/user/a" {
				t.Errorf("request %d is %+v, and was %+v", i, x, y)
			}
		}
		if first[0].Key == first[1].Key || first[0].Number != 1 || first[1].Number != 2 || first[1].Settled != 1 {
			t.Errorf("%+v", first)
		}
		if b.sum != 2 || b.again != 0 {
			t.Errorf("%d were done, %d again", b.sum, b.again)
		}
		dir = w.killed()
		w.close()

		w = withBank(t, dir, b, props)
		w.tell("a", script(rec(0, 0, askBank(9, time.Hour, "add"))))
		until(t, func() bool { return w.report("a") == 3 })
		all = b.all()
		if last := all[len(all)-1]; len(all) != 7 || last.Number != 3 || last.Settled != 3 {
			t.Errorf("%d requests, the last is %+v", len(all), last)
		}
		w.close()
	}
}

// TestWhatIsNotSentAgain: an ask whose time is over ends as it would have, and one that was given up is over.
func TestWhatIsNotSentAgain(t *testing.T) {
	b := newBank()
	b.setDeaf(true)
	props := Props{"a": asker(puppet(puppetImage(t), rec(byte(abi.KindAskTimeout), 0, send("/user/a", add))))}
	begin := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := host.NewVirtualClock(begin)
	timed := func(c host.Config) host.Config { return c.WithClock(clock) }
	w := withBank(t, t.TempDir(), b, props, timed)
	w.tell("a", script(rec(0, 0, askBank(7, time.Second, "add"), askBank(8, time.Hour, "add"))))
	until(t, func() bool { return len(b.all()) == 2 })
	w.tell("a", script(rec(0, 0, abi.AppendCancelAsk(nil, 8))))
	w.report("a")
	dir := w.killed()
	w.close()
	clock = host.NewVirtualClock(begin.Add(2 * time.Second)) // meanwhile the process was away
	w = withBank(t, dir, b, props, timed)
	clock.Advance(time.Nanosecond)
	until(t, func() bool { return w.report("a") == 1 })
	if n := len(b.all()); n != 2 {
		t.Errorf("%d requests", n)
	}
	w.close()
}

// TestWhoHasKeys: no message of a guest, and no actor that is not durable, has the identity of a request.
func TestWhoHasKeys(t *testing.T) {
	b := newBank()
	image := puppetImage(t)
	volatile := host.Guest(image, "puppet").WithArgs(script()).WithCapabilities(host.Capabilities{Send: []string{"/**"}})
	forward := abi.AppendForward(nil, 0, "/system/bank")
	props := Props{"a": asker(puppet(image)), "f": asker(puppet(image, rec(byte(abi.KindMessage), 0, forward)))}
	w := withBank(t, t.TempDir(), b, props)
	if _, err := w.Spawn("v", asker(volatile)); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"v", "a"} {
		w.tell(name, script(rec(0, 0, askBank(7, time.Hour, "add"))))
		until(t, func() bool { return len(b.all()) >= i+1 })
	}
	m, _ := cbor.Marshal([]any{"add", nil})
	w.tell("a", script(rec(0, 0, send("/system/bank", m))))                                                                  // no ask
	forged := abi.AppendHeader(nil, "idempotency-key", "x")                                                                  // headers do not count
	w.tell("v", script(rec(0, 0, abi.AppendAsk(nil, 0, "/system/bank", 9, uint64(time.Hour), forged, m))))                   // nor here
	w.tell("a", script(rec(0, 0, abi.AppendAsk(nil, 0, "/user/v", 10, uint64(time.Hour), nil, script(rec(0, 0, forward)))))) // a question that is handed on
	until(t, func() bool { return len(b.all()) >= 4 })
	keyed := 0
	for _, x := range b.all() {
		if x.Number != 0 {
			keyed++
			if x.sender.Path() != "/user/a" {
				t.Errorf("%s has a key", x.sender)
			}
		}
	}
	if keyed != 1 {
		t.Errorf("%d of %d have keys", keyed, len(b.all()))
	}
	w.close()
}

// TestNumbersGoOn: an actor that is restarted counts on, and what it had asked before is settled.
func TestNumbersGoOn(t *testing.T) {
	b := newBank()
	b.setDeaf(true)
	props := Props{"a": asker(puppet(puppetImage(t)))}
	w := withBank(t, t.TempDir(), b, props)
	w.tell("a", script(rec(0, 0, askBank(7, time.Hour, "add"))))
	until(t, func() bool { return len(b.all()) == 1 })
	w.tell("a", script(rec(0, trap)))
	w.tell("a", script(rec(0, 0, askBank(7, time.Hour, "add"))))
	until(t, func() bool { return len(b.all()) == 2 })
	dir := w.killed()
	w.close()
	w = withBank(t, dir, b, props)
	until(t, func() bool { return len(b.all()) == 3 })
	all := b.all()
	if all[1].Number != 2 || all[1].Settled != 2 || all[2] != all[1] {
		t.Errorf("%+v", all)
	}
	w.close()
}

// TestEveryCrashWithAService: whenever the power of the store's disk fails, a service that keeps keys has done each request once, and
// each is answered.
func TestEveryCrashWithAService(t *testing.T) {
	image := puppetImage(t)
	for _, forgetful := range []bool{false, true} {
		wrong := 0
		fs := crashfs.New()
		b := newBank()
		props := Props{"a": puppet(image, rec(byte(abi.KindReply), 0, send("/user/a", add))).WithGrant("bank", b.kind().Grant(struct{}{}, service.Bounds{}))}
		const most = 6
		var sums []struct{ changes, sum int }
		w := steppedBank(t, fs, b, props)
		first := fs.Done()
		w.drive(most, func() { sums = append(sums, struct{ changes, sum int }{fs.Done(), b.sum}) })
		w.close()
		if b.sum != most {
			t.Fatalf("%d were done", b.sum)
		}
		for changes := first; changes <= fs.Done(); changes++ {
			for seed := range uint64(2) {
				// The service has done what had left by then.
				c := newBank()
				for _, x := range sums {
					if x.changes <= changes {
						c.sum = x.sum
					}
				}
				for _, x := range b.came[:c.sum] {
					c.done[[2]string{x.sender.String(), x.String()}] = true
				}
				if forgetful {
					clear(c.done)
				}
				y := steppedBank(t, fs.After(changes, rand.New(rand.NewPCG(seed, uint64(changes)))), c, props)
				n, ok := y.count("a")
				if !ok || n != c.sum || n > most {
					wrong++
					if !forgetful {
						t.Errorf("after %d changes, seed %d: a has %d answers (%v), %d were done", changes, seed, n, ok, c.sum)
					}
				}
				y.close()
			}
		}
		if forgetful && wrong == 0 {
			t.Error("it makes no difference whether keys are kept")
		}
	}
}

func steppedBank(t *testing.T, fs wal.FS, b *bank, props Props) *stepped {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	store, err := Open(Options{Dir: "store", FS: fs, Sim: &Sim{Rand: random, Segment: 64 << 10, Secret: host.Secret{5}}})
	if err != nil {
		t.Fatal(err)
	}
	x, err := store.Prepare(host.NewConfig("w").WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).WithManual(), props)
	if err != nil {
		t.Fatal(err)
	}
	w := &stepped{x.System(), t, store}
	if _, err := b.kind().Start(w.System, nil, nil); err != nil {
		t.Fatal(err)
	}
	back, err := x.Recover()
	if err != nil {
		t.Fatal(err)
	}
	if !back["a"] {
		if _, err := w.Spawn("a", props["a"]); err != nil {
			t.Fatal(err)
		}
	}
	x.Release()
	w.rest()
	return w
}

// drive has a ask again and again, with a checkpoint in between; told is called after each step.
func (w *stepped) drive(most int, told func()) {
	for i := range most {
		ref, err := w.Lookup("/user/a")
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.Tell(ref, script(rec(0, 0, askBank(uint64(i+1), time.Hour, "now")))); err != nil {
			w.t.Fatal(err)
		}
		for w.Step() || w.store.Work() {
			told()
		}
		if i == most/2 {
			if err := w.store.Checkpoint(w.t.Context()); err != nil && !errors.Is(err, context.Canceled) {
				w.t.Fatal(err)
			}
		}
	}
}

// TestRequestsOfEachRelease: each folder of testdata/requests is a store as a release has written it, with a request that is open in a
// checkpoint and one behind it. Both are sent again, under their keys of then.
func TestRequestsOfEachRelease(t *testing.T) {
	b := newBank()
	b.setDeaf(true)
	props := Props{"a": asker(puppet(puppetImage(t), rec(byte(abi.KindReply), 0, send("/user/a", add))))}
	at := filepath.Join("testdata", "requests")
	then := func(c host.Config) host.Config { // an ask is over after 24 hours
		return c.WithClock(host.NewVirtualClock(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	if *fixture != "" {
		w := withBank(t, t.TempDir(), b, props, then)
		for i := range 2 {
			w.tell("a", script(rec(0, 0, askBank(uint64(7+i), 24*time.Hour, "add"))))
			until(t, func() bool { return len(b.all()) >= i+1 })
			if i == 0 {
				if err := w.store.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.close()
		to := filepath.Join(at, *fixture)
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := copyBackward(to, w.dir); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %s", b.all()[0].String(), b.all()[1].String())
	}
	for release, keys := range map[string]string{"v1": "a8f9b7aa-bbf5-8849-a7dc-1d7a5ad35b9e 66d830f8-0582-862e-ba7f-95ad2f7eeb84"} {
		dir := t.TempDir()
		if err := copyBackward(dir, filepath.Join(at, release)); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(filepath.Join(dir, "secret"), 0o600)
		b := newBank()
		w := withBank(t, dir, b, props, then)
		until(t, func() bool { return w.report("a") == 2 })
		all := b.all()
		slices.SortFunc(all, func(x, y came) int { return int(x.Number) - int(y.Number) })
		if len(all) != 2 || all[0].String()+" "+all[1].String() != keys || all[1].Number != 2 {
			t.Errorf("%s: %+v", release, all)
		}
		w.close()
	}
}
