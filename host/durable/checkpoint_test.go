package durable

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

func (w *world) checkpoint() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.store.Checkpoint(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// repeated is how many records a start with the folder would repeat.
func repeated(t testing.TB, dir string) (n int, all []Actor) {
	t.Helper()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	all, err = s.Actors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		n += a.Records
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return n, all
}

// A start repeats only what came after the last checkpoint, and all is there: state, timers, what waits, refs, the turns of
// actors that are forgotten later, and children.
func TestOnlyWhatCameAfterIsRepeated(t *testing.T) {
	image := puppetImage(t)
	props := Props{
		"a": puppet(image, rec(byte(abi.KindTimer), 0, send("/user/b", add))).WithChildren(host.Child{Name: "kid", Props: puppet(image)}), "b": puppet(image),
	}
	w := mustOpen(t, t.TempDir(), props)
	eventually(t, func() bool { _, err := w.Lookup("/user/a/kid"); return err == nil })
	for range 100 {
		w.tell("a", add)
		w.tell("a/kid", add)
	}
	w.tell("a", script(rec(0, 0, abi.AppendTimer(nil, 1, 500*ms, 0, nil))))
	if a, k := w.report("a"), w.report("a/kid"); a != 100 || k != 100 {
		t.Fatal(a, k)
	}
	ref, _ := w.Lookup("/user/a/kid")
	limits := func() host.Limits {
		t.Helper()
		d, err := w.View().Inspect(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return d.Limits
	}
	first := limits()
	if first.Message == 0 {
		t.Fatalf("messages of any size: %+v", first)
	}
	w.checkpoint()
	w.tell("a", add)
	w.tell("a/kid", add)
	if a, k := w.report("a"), w.report("a/kid"); a != 101 || k != 101 {
		t.Fatal(a, k)
	}
	dir := w.killed()
	w.close()
	n, all := repeated(t, dir)
	if n == 0 || n > 20 || len(all) != 3 || all[0].Turns < 103 || all[0].Checkpoint == 0 {
		t.Errorf("%d records are repeated: %+v", n, all)
	}
	for range 2 {
		w = mustOpen(t, dir, props)
		if a, k := w.report("a"), w.report("a/kid"); a != 101 || k != 101 {
			t.Error(a, k)
		}
		if again, _ := w.Lookup("/user/a/kid"); again.UID() != ref.UID() {
			t.Error("another ref")
		}
		if again := limits(); again != first {
			t.Errorf("limits %+v, before %+v", again, first)
		}
		eventually(t, func() bool { return w.report("b") == 1 }) // its timer
		w.checkpoint()
		dir = w.killed()
		w.close()
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(context.Background(), "w", "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w = mustOpen(t, dir, props)
	if a, k, b := w.report("a"), w.report("a/kid"), w.report("b"); a != 0 || k != 0 || b != 1 {
		t.Error("after it was forgotten: ", a, k, b)
	}
	if again, _ := w.Lookup("/user/a/kid"); again.UID() == ref.UID() {
		t.Error("a forgotten actor's ref is used again")
	}
	w.close()
}

// killed under load, with checkpoints all the time, a process loses nothing that it has answered, and does nothing twice.
func TestKilledBetweenCheckpoints(t *testing.T) {
	const lives, senders = 12, 3
	image := puppetImage(t)
	both := script(rec(recAdd, 1), rec(0, 0, send("/user/b", add), send("/user/c", add)))
	props := Props{"a": puppet(image), "b": puppet(image), "c": puppet(image)}
	dir, acknowledged, checkpoints := t.TempDir(), 0, uint64(0)
	for life := range lives {
		w := mustOpen(t, dir, props, func(o *Options) { o.Recovery = MinRecovery })
		a := int(w.report("a"))
		if a < acknowledged {
			t.Fatalf("life %d: a has %d, and %d were acknowledged", life, a, acknowledged)
		}
		eventually(t, func() bool { return int(w.report("b")) == a && int(w.report("c")) == a })
		acknowledged = a
		stop := make(chan struct{})
		var all sync.WaitGroup
		var mu sync.Mutex
		for range senders {
			all.Go(func() {
				for mu.Lock(); acknowledged < 230; mu.Lock() {
					mu.Unlock()
					select {
					case <-stop:
						return
					default:
					}
					w.tell("a", both)
					n := int(w.report("a"))
					mu.Lock()
					acknowledged = max(acknowledged, n)
					mu.Unlock()
				}
				mu.Unlock()
			})
		}
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = w.store.Checkpoint(context.Background())
				}
			}
		})
		time.Sleep(time.Duration(3+2*life) * time.Millisecond)
		mu.Lock()
		before := acknowledged
		mu.Unlock()
		next := w.killed()
		close(stop)
		all.Wait()
		checkpoints += w.store.Figures().Checkpoint.Count
		w.close()
		dir, acknowledged = next, before
	}
	if t.Logf("%d messages, %d checkpoints in %d lives", acknowledged, checkpoints, lives); checkpoints < lives || acknowledged == 0 {
		t.Error("too few")
	}
}

// big is a message that adds one, with so many bytes besides.
func big(n int) host.Raw {
	return script(rec(recAdd, 1), rec(0, 0, abi.AppendTimer(nil, 99, uint64(time.Hour), 0, text(strings.Repeat("a", n)))))
}

// Under load without end a store keeps its size, and nothing is refused or lost.
func TestTheStoreStaysSmall(t *testing.T) {
	const message, each = 14 << 10, 50
	props := Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props, func(o *Options) { o.Size, o.Sync = MinSize, Never })
	sent, most := 0, int64(0)
	for w.store.Figures().Written < 3*MinSize/2 {
		for range each {
			w.tell("a", big(message))
		}
		sent += each
		if n := w.report("a"); n != byte(sent) {
			t.Fatalf("it has counted %d of %d", n, sent)
		}
		most = max(most, w.store.Figures().Bytes)
	}
	f := w.store.Figures()
	t.Logf("%d MiB of records, %d checkpoints, at most %d MiB: %+v", f.Written>>20, f.Checkpoint.Count, most>>20, f.Checkpoint)
	if f.Refused > 0 || most > MinSize*3/4 || f.Checkpoint.Count < 8 {
		t.Errorf("%+v", f)
	}
	dir := w.killed()
	w.close()
	w = mustOpen(t, dir, props)
	if n := w.report("a"); n != byte(sent) {
		t.Errorf("it has %d, and had %d", n, byte(sent))
	}
	w.close()
}

// When the store is full senders get an error that names the key, nothing is lost, and it goes on when there is room.
func TestFullStore(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props, func(o *Options) { o.Size, o.Sync, o.Recovery = MinSize, Never, time.Hour })
	w.store.writing.Lock() // no checkpoint
	sent := 0
	ref, err := w.Lookup("/user/a")
	for err == nil && sent < 1<<16 {
		if err = w.TellPath("/user/a", big(14<<10)); err == nil {
			if sent++; sent%20 == 0 {
				_, err = w.Ask(context.Background(), ref, script(rec(recReport, 0))) // which may be what finds it full
			}
		}
	}
	if !errors.Is(err, host.ErrMailboxFull) || !errors.Is(err, ErrFull) {
		t.Fatalf("%v after %d: %+v", err, sent, w.store.Figures())
	}
	w.store.writing.Unlock()
	eventually(t, func() bool { return w.store.Figures().Checkpoint.Count > 0 && w.TellPath("/user/a", add) == nil })
	if n := w.report("a"); n != byte(sent+1) {
		t.Errorf("it has counted %d of %d", n, sent+1)
	}
	dir := w.killed()
	w.close()
	w = mustOpen(t, dir, props)
	if n := w.report("a"); n != byte(sent+1) {
		t.Errorf("it has %d of %d", n, sent+1)
	}
	w.close()
}

// recovery says when a checkpoint is made: repeating takes no longer.
func TestRecoveryIsBounded(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	for _, recovery := range []time.Duration{MinRecovery, time.Hour} {
		w := mustOpen(t, t.TempDir(), props, func(o *Options) { o.Recovery, o.Sync = recovery, Never })
		for range 3000 {
			w.tell("a", add)
			if w.store.Figures().Since%97 == 0 {
				w.report("a")
			}
		}
		w.report("a")
		if recovery == time.Hour {
			if f := w.store.Figures(); f.Checkpoint.Count > 0 || f.Repeating < 2*MinRecovery {
				t.Errorf("%+v", f)
			}
		} else {
			eventually(t, func() bool {
				f := w.store.Figures()
				return f.Checkpoint.Count > 0 && f.Repeating < MinRecovery
			})
		}
		w.close()
	}
	if _, err := Open(Options{Dir: t.TempDir(), Recovery: 1}); err == nil {
		t.Error("a recovery of 1 ns")
	}
}

// A byte of a checkpoint that has changed is found, or changes nothing.
func TestAByteOfACheckpoint(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props)
	w.tell("a", add)
	w.report("a")
	w.checkpoint()
	w.tell("a", add)
	w.report("a")
	dir := w.killed()
	w.close()
	files, err := filepath.Glob(filepath.Join(dir, "log", "*.log"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	used, refused := len(bytes.TrimRight(whole, "\x00")), 0
	for at := 0; at < used; at += 53 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := os.WriteFile(files[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range must(filepath.Glob(filepath.Join(dir, "log", "*.log"))) {
			if name != files[0] {
				_ = os.Remove(name)
			}
		}
		w, err := open(t, dir, props)
		if err != nil {
			refused++
			continue
		}
		if n := w.report("a"); n > 2 {
			t.Errorf("byte %d: a has %d", at, n)
		}
		w.close()
	}
	if t.Logf("%d of %d refused", refused, used/53); refused < used/53/2 {
		t.Error("too few were refused")
	}
}

// An actor whose state is larger than limits.durable allows fails, and others have their checkpoint.
func TestLargeStatesFail(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image).WithLimits(host.Limits{Durable: 32 << 10}), "b": puppet(image)}
	w := mustOpen(t, t.TempDir(), props)
	failures := w.Subscribe(100, func(e *host.Event) bool { return e.Failure != nil })
	defer failures.Close()
	w.tell("b", big(14<<10))
	for key := range uint64(5) {
		w.tell("a", script(rec(recAdd, 1), rec(0, 0, abi.AppendTimer(nil, key, uint64(time.Hour), 0, text(strings.Repeat("a", 14<<10))))))
	}
	if a, b := w.report("a"), w.report("b"); a != 5 || b != 1 {
		t.Fatal(a, b)
	}
	w.checkpoint()
	eventually(t, func() bool { return w.report("a") == 0 })
	if e := <-failures.C(); !strings.Contains(e.Failure.Reason, "limits.durable") || e.Ref.Path() != "/user/a" {
		t.Error(e)
	}
	w.checkpoint()
	dir := w.killed()
	w.close()
	w = mustOpen(t, dir, props)
	if a, b := w.report("a"), w.report("b"); a != 0 || b != 1 {
		t.Error(a, b)
	}
	w.close()
}

// Lives that are too short for a checkpoint of their own lead to one: what a start has repeated counts for the next, and so do their files.
// Else a process that is killed again and again would take longer and longer to begin, or fill the store.
func TestShortLivesAreBounded(t *testing.T) {
	for _, c := range []struct {
		what   string
		adds   int // in each life: few take no time to repeat
		change func(*Options)
	}{
		{"size", 10, func(o *Options) { o.Size = MinSize }},
		{"recovery", 150, func(o *Options) { o.Recovery = MinRecovery }},
	} {
		t.Run(c.what, func(t *testing.T) {
			props := Props{"a": puppet(puppetImage(t))}
			dir, made := t.TempDir(), false
			for life := 0; !made; life++ {
				if life == 100 {
					t.Fatal("there was no checkpoint")
				}
				w := mustOpen(t, dir, props, c.change)
				if n := w.report("a"); n != byte(c.adds*life) {
					t.Fatalf("life %d: a has counted %d", life, n)
				}
				for range c.adds {
					w.tell("a", add)
				}
				w.report("a")
				for n := 0; n < 20 && !made; n++ { // it may be due
					time.Sleep(time.Millisecond)
					made = w.store.Figures().Checkpoint.Count > 0
				}
				if made && life == 0 {
					t.Error("the first life has made one, without what a start has repeated")
				}
				if made { // files are removed after it is complete
					eventually(t, func() bool { return w.store.Figures().Bytes <= MinSize/4 })
				}
				next := w.killed()
				w.close()
				dir = next
			}
			w := mustOpen(t, dir, props, c.change)
			w.report("a")
			if n := w.store.Figures().Bytes; n > MinSize/4 {
				t.Errorf("there is a checkpoint, and the store has %d bytes", n)
			}
			w.close()
		})
	}
}

// A life may end when its checkpoint is complete, and before the files that it has made unneeded are removed. The next start does that.
func TestAStartGivesBack(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props)
	w.tell("a", add)
	w.report("a")
	before := w.killed()
	w.close()
	w = mustOpen(t, before, props) // a file of its own
	w.tell("a", add)
	w.report("a")
	before = w.killed()
	w.checkpoint()
	after := w.killed()
	w.close()
	var back []string
	for _, name := range must(filepath.Glob(filepath.Join(before, "log", "*.log"))) {
		to := filepath.Join(after, "log", filepath.Base(name))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := os.WriteFile(to, must(os.ReadFile(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		back = append(back, to)
	}
	if len(back) == 0 {
		t.Fatal("the checkpoint has removed no file")
	}
	w = mustOpen(t, after, props)
	if n := w.report("a"); n != 2 {
		t.Errorf("a has counted %d", n)
	}
	for _, name := range back {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", filepath.Base(name))
		}
	}
	w.close()
}
