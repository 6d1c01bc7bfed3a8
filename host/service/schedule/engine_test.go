package schedule

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var epoch = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// skewed is a virtual clock whose time of day can be set.
type skewed struct {
	*host.VirtualClock
	mu  sync.Mutex
	off time.Duration
}

func (c *skewed) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.VirtualClock.Now().Add(c.off)
}

func (c *skewed) set(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += by
}

// world is an engine whose runs go to the test.
type world struct {
	t     *testing.T
	clock *skewed
	dir   string
	quick bool // no fsync
	*engine

	mu   sync.Mutex
	sent []string // entry@planned#attempt+missed, planned as an offset from epoch
	hold map[string]chan error
	fail func(r *run) (bool, error) // nil: all are answered
}

func begin(t *testing.T, dir string, clock *skewed, manifest map[string]Entry, each ...func(*world)) *world {
	t.Helper()
	if clock == nil {
		clock = &skewed{VirtualClock: host.NewVirtualClock(epoch)}
	}
	w := &world{t: t, clock: clock, dir: dir, hold: map[string]chan error{}}
	w.engine = newEngine(clock, slog.New(slog.NewTextHandler(io.Discard, nil)), 200_000, 1000, 4)
	w.engine.send = w.take
	for _, f := range each {
		f(w)
	}
	if dir != "" {
		j, _, err := openJournal(dir, func(m []byte) { copy(m, "the mark") }, func(b []byte) error {
			r, err := decodeRecord(b)
			if err != nil {
				return err
			}
			return w.engine.load(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.journal = j
		if w.quick {
			j.sync = func(*os.File) error { return nil }
		}
	}
	if err := w.start(manifest); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.engine.close() })
	return w
}

func (w *world) take(ctx context.Context, r *run) (bool, error) {
	w.mu.Lock()
	line := fmt.Sprintf("%s@%v#%d", r.item.Name, time.Duration(r.planned-epoch.UnixNano()), r.attempt)
	if r.missed > 0 {
		line += fmt.Sprintf("+%d", r.missed)
	}
	w.sent = append(w.sent, line)
	hold, fail := w.hold[r.item.Name], w.fail
	w.mu.Unlock()
	if hold != nil {
		select {
		case err := <-hold:
			return err != nil, err
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
	if fail != nil {
		return fail(r)
	}
	return false, nil
}

// settled waits until nothing is under way but what is held.
func (w *world) settledDown() {
	w.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		w.engine.mu.Lock()
		busy := w.queues.running + len(w.queues.ring)
		w.engine.mu.Unlock()
		w.mu.Lock()
		for _, c := range w.hold {
			if c != nil && busy > 0 {
				busy--
			}
		}
		w.mu.Unlock()
		if busy <= 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("runs do not end")
		}
		runtime.Gosched()
	}
}

// pass lets time pass in steps.
func (w *world) pass(d, step time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= step {
		w.clock.Advance(min(step, d))
		w.settledDown()
	}
}

func offset(line string) time.Duration {
	_, text, _ := strings.Cut(line, "@")
	text, _, _ = strings.Cut(text, "#")
	d, _ := time.ParseDuration(text)
	return d
}

func (w *world) set(name string, e Entry) {
	w.t.Helper()
	e.Name = name
	spec, err := e.spec(w.clock.Now())
	if err == nil {
		_, _, err = w.engine.set(owner{"/user/a", 1, 1 << 20, nil}, e, spec, false)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cancel(name string) {
	w.t.Helper()
	if ok, err := w.engine.cancel(owner{"/user/a", 1, 1, nil}, "/user/a", name); !ok || err != nil {
		w.t.Fatal(ok, err)
	}
}

func (w *world) want(want string) {
	w.t.Helper()
	w.settledDown()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.sent, func(a, b string) int { return cmp.Compare(offset(a), offset(b)) }) // those of one pass begin in any order
	if got := strings.Join(w.sent, " "); got != want {
		w.t.Errorf("runs:\n %s\nwant\n %s", got, want)
	}
	w.sent = nil
}

// crash is another process that finds what is on the disk, while this one has ended without a word.
func (w *world) crash(later time.Duration, manifest map[string]Entry, each ...func(*world)) *world {
	w.t.Helper()
	dir := w.t.TempDir()
	w.journal.mu.Lock()
	for w.journal.flushing {
		w.journal.idle.Wait()
	}
	w.journal.mu.Unlock()
	data, err := os.ReadFile(filepath.Join(w.dir, journalName))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, journalName), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	clock := &skewed{VirtualClock: host.NewVirtualClock(w.clock.Now().Add(later))}
	x := begin(w.t, dir, clock, manifest, each...)
	x.clock.Advance(0)
	x.settledDown()
	return x
}

func TestRuns(t *testing.T) {
	w := begin(t, "", nil, map[string]Entry{"m": {Name: "m", Every: 25 * time.Minute, To: "/user/b"}})
	w.set("c", Entry{Cron: "*/20 * * * *"})
	w.set("once", Entry{At: "2027-01-01 00:30"})
	w.pass(time.Hour, time.Minute)
	w.want("c@20m0s#1 m@25m0s#1 once@30m0s#1 c@40m0s#1 m@50m0s#1 c@1h0m0s#1")
	if v, ok := w.find(owner{path: "/user/a"}, "/user/a", "once"); ok {
		t.Errorf("a single time that is over is kept: %+v", v)
	}
	w.set("c", Entry{Cron: "*/30 * * * *"}) // another expression
	w.cancel("c")
	w.set("d", Entry{Cron: "*/20 * * * *"})
	w.pass(30*time.Minute, time.Minute)
	w.want("m@1h15m0s#1 d@1h20m0s#1")
}

// After a crash, or a time without a process, runs whose time has passed are dealt with as the entry says.
func TestMissed(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Entry
		away time.Duration
		want string
	}{
		{"once", Entry{}, 5*time.Hour + time.Minute, "x@5h0m0s#1+4"},
		{"once in time", Entry{}, time.Hour, "x@1h0m0s#1"},
		{"none was due", Entry{}, 59 * time.Minute, ""},
		{"once with a deadline", Entry{Deadline: 2 * time.Minute}, 5*time.Hour + 3*time.Minute, ""},
		{"skip, late", Entry{Missed: Skip}, 5*time.Hour + 2*time.Minute, ""},
		{"skip, not late", Entry{Missed: Skip}, 5*time.Hour + 30*time.Second, "x@5h0m0s#1+4"},
		{"all", Entry{Missed: RunAll}, 3*time.Hour + time.Minute, "x@1h0m0s#1 x@2h0m0s#1 x@3h0m0s#1"},
		{"all, at most", Entry{Missed: RunAll, Most: 2}, 5*time.Hour + time.Minute, "x@4h0m0s#1+3 x@5h0m0s#1"},
		{"all with a deadline", Entry{Missed: RunAll, Deadline: 90 * time.Minute}, 5*time.Hour + time.Minute, "x@4h0m0s#1+3 x@5h0m0s#1"},
		{"ten years", Entry{}, 87600 * time.Hour, "x@87600h0m0s#1+1000"},
		{"all with overlap", Entry{Missed: RunAll, Overlap: true}, 2*time.Hour + time.Minute, "x@1h0m0s#1 x@2h0m0s#1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t, t.TempDir(), nil, nil)
			c.e.Cron = "0 * * * *"
			w.set("x", c.e)
			after := w.crash(c.away, nil)
			after.want(c.want)
			after.crash(0, nil).want("") // it is settled
		})
	}
}

// A run that nobody has answered is begun again after a crash, under its id; one that is at most once is not.
func TestCrashInARun(t *testing.T) {
	for _, c := range []struct {
		d    Delivery
		want string
	}{{Ask, "x@1h0m0s#1"}, {Once, ""}, {Tell, ""}} {
		t.Run(string(c.d), func(t *testing.T) {
			w := begin(t, t.TempDir(), nil, nil)
			w.hold["x"] = make(chan error)
			w.set("x", Entry{Cron: "0 * * * *", Delivery: c.d})
			w.clock.Advance(time.Hour)
			for len(w.seenSent()) == 0 {
				runtime.Gosched()
			}
			w.crash(time.Minute, nil).want(c.want)
			w.hold["x"] <- nil
			w.mu.Lock()
			delete(w.hold, "x")
			w.mu.Unlock()
			w.want("x@1h0m0s#1")
			w.crash(time.Minute, nil).want("")
		})
	}
}

func (w *world) seenSent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// With overlap runs end in any order; what is not answered is begun again, whatever came after it.
func TestOverlap(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.hold["x"], w.hold["y"] = make(chan error), make(chan error)
	w.set("x", Entry{Cron: "0 * * * *", Overlap: true})
	w.set("y", Entry{Cron: "30 * * * *"})
	w.clock.Advance(3*time.Hour - time.Minute)
	for len(w.seenSent()) < 3 {
		runtime.Gosched()
	}
	w.mu.Lock()
	if got := len(w.sent); got != 3 { // 1h and 2h of x, the first of y
		t.Errorf("%d: %v", got, w.sent)
	}
	w.mu.Unlock()
	w.hold["x"] <- nil // one of the two
	for {
		w.engine.mu.Lock()
		n := len(w.items.get("/user/a", "x").open)
		w.engine.mu.Unlock()
		if n == 1 {
			break
		}
		runtime.Gosched()
	}
	x := w.crash(0, nil)
	x.mu.Lock()
	got := strings.Join(x.sent, " ")
	x.mu.Unlock()
	// Of x what was open is begun again, and, if it is the earlier one, the later too; the rest of y is one run.
	if !strings.Contains(got, "x@2h0m0s#1") && !strings.Contains(got, "x@1h0m0s#1") || !strings.Contains(got, "y@2h30m0s#1+2") {
		t.Error(got)
	}
	close(w.hold["x"])
	close(w.hold["y"])
	w.settledDown()
}

// Cancelling is durable before it is answered; so is setting.
func TestCancelLasts(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.set("x", Entry{Cron: "0 * * * *"})
	w.set("y", Entry{Cron: "0 * * * *"})
	w.cancel("x")
	w.crash(2*time.Hour, nil).want("y@2h0m0s#1+1")
	// In a run that fails: no more attempts, here or after a crash.
	w.fail = func(*run) (bool, error) { return true, errors.New("no") }
	w.pass(time.Hour, time.Minute)
	w.cancel("y")
	n := len(w.seenSent())
	w.pass(3*time.Hour, time.Minute)
	if got := w.seenSent(); len(got) != n {
		t.Error(got[n:])
	}
	w.crash(time.Hour, nil).want("")
	// And one that is under way while it is cancelled.
	w.mu.Lock()
	w.hold["z"] = make(chan error)
	w.mu.Unlock()
	w.set("z", Entry{Cron: "0 * * * *"})
	w.clock.Advance(time.Hour)
	for len(w.seenSent()) == n {
		runtime.Gosched()
	}
	w.cancel("z")
	w.hold["z"] <- errors.New("no")
	w.mu.Lock()
	delete(w.hold, "z")
	w.mu.Unlock()
	n++
	w.pass(time.Hour, time.Minute)
	if got := w.seenSent(); len(got) != n {
		t.Error(got[n:])
	}
}

func TestRetries(t *testing.T) {
	w := begin(t, "", nil, nil)
	left := 3
	w.fail = func(r *run) (bool, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if left--; left >= 0 {
			return true, errors.New("not now")
		}
		return false, nil
	}
	w.set("x", Entry{Cron: "0 * * * *"})
	w.pass(time.Hour, time.Minute)
	w.want("x@1h0m0s#1")
	w.pass(999*time.Millisecond, time.Second)
	w.want("")
	w.pass(time.Millisecond, time.Second)
	w.want("x@1h0m0s#2")
	w.pass(6*time.Second, time.Second)
	w.want("x@1h0m0s#3 x@1h0m0s#4")
	v, _ := w.find(owner{path: "/user/a"}, "/user/a", "x")
	if v.Stats.Runs != 1 || v.Stats.Retries != 3 || v.Stats.Error != "" || v.UnderWay != 0 {
		t.Errorf("%+v", v)
	}
	// A deadline ends it.
	w.mu.Lock()
	left = 1 << 30
	w.mu.Unlock()
	w.set("d", Entry{Cron: "30 * * * *", Deadline: time.Minute})
	w.cancel("x")
	w.pass(35*time.Minute, time.Second)
	got := w.seenSent()
	if len(got) < 5 || len(got) > 7 {
		t.Errorf("%d attempts in a minute: %v", len(got), got)
	}
	v, _ = w.find(owner{path: "/user/a"}, "/user/a", "d")
	if v.Stats.Missed != 1 || v.UnderWay != 0 {
		t.Errorf("%+v", v)
	}
	if backoff(1) != time.Second || backoff(9) != 256*time.Second || backoff(10) != longestBackoff || backoff(1e6) != longestBackoff {
		t.Error("the backoff is another")
	}
}

// The clock of the machine is set while the entries wait.
func TestClockIsSet(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.set("x", Entry{Cron: "0 * * * *"})
	w.pass(time.Hour, time.Minute)
	w.want("x@1h0m0s#1")
	w.clock.set(5 * time.Hour) // forward: what lies between is missed
	w.pass(recheck, recheck)
	w.want("x@6h0m0s#1+4")
	w.clock.set(-3 * time.Hour) // back: nothing runs twice
	w.pass(3*time.Hour, time.Minute)
	w.want("")
	w.pass(time.Hour, time.Minute)
	w.want("x@7h0m0s#1")
	w.clock.set(1000 * time.Hour)
	w.pass(time.Minute, time.Minute)
	w.want("x@1007h0m0s#1+999")
	w.clock.set(-1000 * time.Hour) // it was wrong before
	w.pass(time.Hour, time.Minute)
	w.want("x@8h0m0s#1")
	after := w.crash(time.Hour, nil)
	after.want("x@9h0m0s#1")
	after.clock.set(-48 * time.Hour)
	after.crash(time.Hour, nil).want("")
}

// The manifest has the word about its entries; they go on where they were, unless their times have changed.
func TestManifest(t *testing.T) {
	hourly := Entry{Name: "h", Cron: "0 * * * *", To: "/user/a"}
	w := begin(t, t.TempDir(), nil, map[string]Entry{"h": hourly, "gone": {Name: "gone", Cron: "0 5 * * *", To: "/user/a"}})
	w.set("h", Entry{Cron: "30 * * * *"}) // a guest's own of the same name
	w.pass(90*time.Minute, time.Minute)
	w.want("h@30m0s#1 h@1h0m0s#1 h@1h30m0s#1")
	changed := hourly
	changed.Payload = []byte{0x01}
	w = w.crash(time.Hour, map[string]Entry{"h": changed})
	w.want("h@2h0m0s#1 h@2h30m0s#1")
	changed.Cron = "15 * * * *"
	w = w.crash(2*time.Hour, map[string]Entry{"h": changed})
	w.want("h@4h30m0s#1+1")
	w.pass(time.Hour, time.Minute)
	w.want("h@5h15m0s#1 h@5h30m0s#1")
	if _, err := w.engine.cancel(owner{"/user/b", 1, 1, nil}, "/user/b", "h"); err != nil {
		t.Error(err) // it is not for this one
	}
	w.cancel("h")
	if _, err := w.engine.cancel(owner{"/user/a", 1, 1, nil}, "/user/a", "h"); service.CodeOf(err) != service.ReadOnly {
		t.Error(err)
	}
}

// The runs of one actor that take for ever do not keep those of others waiting.
func TestFairness(t *testing.T) {
	w := begin(t, "", nil, nil, func(w *world) { w.queues = newQueues(8, 4) })
	hang := make(chan error)
	for i := range 100 {
		name := fmt.Sprint("bad", i)
		w.hold[name] = hang
		w.set(name, Entry{Cron: "0 * * * *"})
	}
	for i := range 100 {
		e := Entry{Name: fmt.Sprint("good", i), Cron: "0 * * * *"}
		spec, _ := e.spec(epoch)
		if _, _, err := w.engine.set(owner{"/user/b", 2, 1000, nil}, e, spec, false); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Advance(time.Hour)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if len(w.seenSent()) == 104 {
			break
		}
	}
	if n := len(w.seenSent()); n != 104 {
		t.Errorf("%d runs have begun", n)
	}
	close(hang)
	for len(w.seenSent()) < 200 {
		runtime.Gosched()
	}
	w.mu.Lock()
	clear(w.hold)
	w.mu.Unlock()
	w.settledDown()
}

func TestQuotas(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	set := func(w *world, o owner, name string) error {
		e := Entry{Name: name, Cron: "0 * * * *"}
		spec, _ := e.spec(epoch)
		_, _, err := w.engine.set(o, e, spec, false)
		return err
	}
	for i := range 3 {
		if err := set(w, owner{fmt.Sprint("/user/a/kid", i), 7, 3, nil}, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := set(w, owner{"/user/a", 7, 3, nil}, "y"); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
	if err := set(w, owner{"/user/b", 8, 3, nil}, "y"); err != nil {
		t.Error(err)
	}
	// In the next process nobody knows whose grant the entries were set with: they count for the whole tree.
	x := w.crash(0, nil)
	if err := set(x, owner{"/user/a/kid9", 1, 3, nil}, "x"); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
	if err := set(x, owner{"/user/b", 2, 2, nil}, "z"); err != nil {
		t.Error(err)
	}
	if _, err := x.engine.cancel(owner{"/user/a", 1, 3, nil}, "/user/a/kid0", "x"); err != nil {
		t.Error(err)
	}
	if err := set(x, owner{"/user/a/kid9", 1, 3, nil}, "x"); err != nil {
		t.Error(err)
	}
	for _, x := range []*world{w, x} {
		x.most = x.items.n
		if err := set(x, owner{"/user/c", 99, 100, nil}, "z"); service.CodeOf(err) != service.Quota || !strings.Contains(err.Error(), "max-entries") {
			t.Error(err)
		}
	}
}

// However much of the file was written when the machine stopped: what is whole is there.
func TestTornJournal(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	for i := range 5 {
		w.set(fmt.Sprint("x", i), Entry{Cron: "0 * * * *", Payload: []byte{0x63, 'a', 'b', 'c'}})
	}
	data, err := os.ReadFile(filepath.Join(w.dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) (n int, err error) {
		_, _, err = readRecords(data, func(b []byte) error {
			_, err := decodeRecord(b)
			n++
			return err
		})
		return n, err
	}
	before := 0
	for cut := range len(data) + 1 {
		n, err := read(data[:cut])
		if err != nil || n < before || n > 5 {
			t.Fatalf("cut at %d: %d records, %v", cut, n, err)
		}
		before = n
	}
	if before != 5 {
		t.Error(before)
	}
	for at := range data {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(data)
			bad[at] ^= bit
			n, err := read(bad)
			last := len(data) / 6 * 5
			if err == nil && (n == 5 || at < last/2) {
				t.Fatalf("byte %d has changed: %d records", at, n)
			}
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	}
	// A file with zeros behind it, as some file systems leave it.
	if n, err := read(append(bytes.Clone(data), make([]byte, 100)...)); n != 5 || err != nil {
		t.Error(n, err)
	}
	// The folder again, cut: it is written on behind what is whole.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalName), data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	x := begin(t, dir, nil, nil)
	if x.items.n != 4 {
		t.Error(x.items.n)
	}
	x.set("more", Entry{Cron: "0 * * * *"})
	if y := x.crash(0, nil); y.items.n != 5 || y.items.get("/user/a", "more") == nil {
		t.Error(y.items.n)
	}
}

// A disk that is full: nothing is promised that is not kept, and what runs goes on.
func TestFullDisk(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.set("x", Entry{Cron: "0 * * * *"})
	full := errors.New("no space left on device")
	var mu sync.Mutex
	broken := true
	w.journal.sync = func(f *os.File) error {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return full
		}
		return f.Sync()
	}
	e := Entry{Name: "y", Cron: "0 * * * *"}
	spec, _ := e.spec(epoch)
	if _, _, err := w.engine.set(owner{"/user/a", 1, 10, nil}, e, spec, false); service.CodeOf(err) != service.Unavailable {
		t.Error(err)
	}
	if w.items.get("/user/a", "y") != nil {
		t.Error("an entry that is not kept is there")
	}
	changed := Entry{Name: "x", Cron: "5 * * * *"}
	spec, _ = changed.spec(epoch)
	if _, _, err := w.engine.set(owner{"/user/a", 1, 10, nil}, changed, spec, false); service.CodeOf(err) != service.Unavailable {
		t.Error(err)
	}
	w.pass(time.Hour, time.Minute)
	w.want("x@1h0m0s#1")
	if _, err := w.engine.cancel(owner{"/user/a", 1, 10, nil}, "/user/a", "x"); service.CodeOf(err) != service.Unavailable {
		t.Error(err)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	w.set("z", Entry{Cron: "0 * * * *"})
	if y := w.crash(0, nil); y.items.n != 2 || y.items.get("/user/a", "z") == nil || y.items.get("/user/a", "x") == nil {
		t.Error(y.items.n)
	}
}

// The file does not grow with what has been.
func TestCompaction(t *testing.T) {
	w := begin(t, t.TempDir(), nil, nil)
	w.journal.sync = func(*os.File) error { return nil } // it is not what is tested
	w.set("x", Entry{Cron: "* * * * *"})
	w.set("y", Entry{Cron: "0 0 1 1 *"})
	w.pass(2000*time.Minute, time.Minute)
	w.settledDown()
	info, err := os.Stat(filepath.Join(w.dir, journalName))
	if err != nil || info.Size() > 100<<10 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	w.cancel("x")
	y := w.crash(0, nil)
	if y.items.n != 1 || y.items.get("/user/a", "y") == nil {
		t.Error(y.items.n)
	}
}

// Many entries cost what a heap costs, and their bytes.
func BenchmarkEntries(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			clock := host.NewVirtualClock(epoch)
			g := newEngine(clock, slog.New(slog.NewTextHandler(io.Discard, nil)), n, 1000, 1000)
			g.send = func(context.Context, *run) (bool, error) { return false, nil }
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for i := range n {
				e := Entry{Name: fmt.Sprint("entry", i), Cron: fmt.Sprintf("%d %d * * *", i%60, i/60%24)}
				spec, err := e.spec(epoch)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := g.set(owner{fmt.Sprintf("/user/a%d", i%100), 1, n, nil}, e, spec, false); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ResetTimer()
			for i := range b.N { // one is set, and one taken out
				e := Entry{Name: fmt.Sprint("more", i), Cron: "0 0 * * *"}
				spec, _ := e.spec(epoch)
				x, _, _, _, err := g.enter(owner{"/user/a1", 1, n + 1, nil}, e, spec, false)
				if err != nil {
					g.most = n + 1
					continue
				}
				g.forget(x)
			}
			b.StopTimer()
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/entry")
			_ = g.close()
		})
	}
}
