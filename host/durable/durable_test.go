package durable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

const ms = uint64(time.Millisecond)

var engine = sync.OnceValues(func() (*runtime.Engine, error) {
	return runtime.New(context.Background(), runtime.NewConfig().WithCacheDir(filepath.Join(servicetest.CacheDir(), "images")))
})

// puppetImage is the guest in WAT that does what it is told, and batches.
func puppetImage(t testing.TB) *runtime.Image {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return load(t, code, runtime.ImageConfig{Name: "puppet"})
}

func load(t testing.TB, code []byte, c runtime.ImageConfig) *runtime.Image {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	image, err := e.Load(context.Background(), code, c)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// The records that a puppet does, see host/testdata/puppet.wat.
func rec(kind, flag byte, commands ...[]byte) []byte {
	all := slices.Concat(commands...)
	return append(binary.LittleEndian.AppendUint16([]byte{kind, flag}, uint16(len(all))), all...)
}

const (
	recAdd, recReport = 255, 254
	trap, last        = 1, 2
)

func script(records ...[]byte) host.Raw {
	b, err := cbor.Marshal(slices.Concat(records...))
	if err != nil {
		panic(err)
	}
	return b
}

func send(path string, m []byte) []byte { return abi.AppendSend(nil, 0, path, 0, 0, nil, m) }

func text(s string) []byte { b, _ := cbor.Marshal(s); return b }

func puppet(image *runtime.Image, records ...[]byte) host.Props {
	return puppetOf(host.Guest(image, "puppet")).WithArgs(script(records...))
}

// puppetOf are the props of a puppet that may do all.
func puppetOf(p host.Props) host.Props {
	return p.WithDurable().WithCapabilities(host.Capabilities{Send: []string{"/**"}, Spawn: []string{"*"}, Stop: []string{"/user/**"}})
}

var add = script(rec(recAdd, 1))

// world is a system in a process of its own, as far as its store can tell.
type world struct {
	*host.System
	t     testing.TB
	store *Store
	dir   string
	props Props

	mu   sync.Mutex
	seen []string // what has left: what the actor in Go got
}

// open starts a system with the store of a folder.
func open(t testing.TB, dir string, props Props, change ...func(*Options)) (*world, error) {
	t.Helper()
	w, x, err := recovered(t, dir, props, change...)
	if err == nil {
		x.Release()
	}
	return w, err
}

// recovered is a system that is about to be released.
func recovered(t testing.TB, dir string, props Props, change ...func(*Options)) (*world, *Starting, error) {
	t.Helper()
	o := Options{Dir: dir, Lazy: true, space: someSpace()}
	for _, f := range change {
		f(&o)
	}
	if o.Keep > 0 && o.space != nil { // how many files are kept is tested
		o.space = &space{}
	}
	store, err := Open(o)
	if err != nil {
		return nil, nil, err
	}
	w := &world{t: t, store: store, dir: dir, props: props}
	x, err := prepared(store, config(), props)
	if err != nil {
		return nil, nil, errorsOf(err, store.Close())
	}
	w.System = x.System()
	outside := host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindMessage {
			w.mu.Lock()
			w.seen = append(w.seen, fmt.Sprintf("%x", []byte(m.Payload)))
			w.mu.Unlock()
		}
		return nil
	})
	if _, err := w.Spawn("outside", outside); err != nil {
		t.Fatal(err)
	}
	back, err := x.Recover()
	if err != nil {
		x.Abandon()
		_ = w.Close(context.Background())
		return nil, nil, errorsOf(err, store.Close())
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !back[name] {
			if _, err := w.Spawn(name, props[name]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w, x, nil
}

// prepared is a system that has the props of its actors in a map, or finds them by name: every test that opens many has both.
func prepared(s *Store, cfg host.Config, props Props) (*Starting, error) {
	if prepares.Add(1)%2 == 0 {
		return s.Prepare(cfg, props)
	}
	return s.PrepareBy(cfg, finds(props))
}

var prepares atomic.Uint64

// finds finds props by name.
func finds(props Props) func(string) *host.Props {
	all := map[string]*host.Props{}
	for name, p := range props {
		all[name] = &p
	}
	return func(name string) *host.Props { return all[name] }
}

func config() host.Config {
	return host.NewConfig("w").WithGuardian(supervision.Default().WithOtherwise(supervision.Restart)).WithWorkers(2)
}

func errorsOf(err, _ error) error { return err }

func mustOpen(t testing.TB, dir string, props Props, change ...func(*Options)) *world {
	t.Helper()
	w, err := open(t, dir, props, change...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ask is the answer of an actor.
func (w *world) ask(name string, m any) byte {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ref, err := w.Lookup("/user/" + name)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.Ask(ctx, ref, m)
	if err != nil {
		w.t.Fatal(name, ": ", err)
	}
	return a.Payload[0]
}

func (w *world) report(name string) byte { w.t.Helper(); return w.ask(name, script(rec(recReport, 0))) }

func (w *world) tell(name string, m any) {
	w.t.Helper()
	if err := w.TellPath("/user/"+name, m); err != nil {
		w.t.Fatal(err)
	}
}

// close ends it in order.
func (w *world) close() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		w.t.Error(err)
	}
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

// killed is a folder with what the store's folder has now: what is left of a process that was killed now.
func (w *world) killed() string {
	w.t.Helper()
	to := w.t.TempDir()
	for err := copyBackward(to, w.dir); err != nil; err = copyBackward(to, w.dir) {
		if !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		to = w.t.TempDir() // a file was given back on the way
	}
	_ = os.Chmod(filepath.Join(to, "secret"), 0o600)
	return to
}

// copyBackward copies a folder from its end to its beginning, files too. While a log is written a copy made from the front
// could have what was written last, and not what was written before it.
func copyBackward(to, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	for _, e := range entries {
		old, at := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			if err := os.MkdirAll(at, 0o700); err != nil {
				return err
			}
			err = copyBackward(at, old)
		} else {
			err = copyFileBackward(at, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFileBackward(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer w.Close()
	const part = 4 << 10
	b := make([]byte, part)
	for at := (info.Size() - 1) / part * part; at >= 0; at -= part {
		n, err := r.ReadAt(b, at)
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := w.WriteAt(b[:n], at); err != nil {
			return err
		}
		if at == 0 {
			break
		}
	}
	return nil
}

// What was answered before the process was killed is there after it, and so are timers and what waits; a process that ends in
// order leaves the same.
func TestStateOutlivesTheProcess(t *testing.T) {
	image := puppetImage(t)
	props := Props{
		"a": puppet(image, rec(byte(abi.KindTimer), 0, send("/user/b", add))),
		"b": puppet(image),
	}
	w := mustOpen(t, t.TempDir(), props)
	for range 3 {
		w.tell("a", add)
	}
	w.tell("a", script(rec(0, 0, abi.AppendTimer(nil, 1, 300*ms, 0, nil))))
	w.tell("a", script(rec(0, 0, send("/user/b", add), send("/user/outside", text("once")))))
	if n := w.report("a"); n != 3 {
		t.Fatalf("a has counted %d", n)
	}
	if n := w.report("b"); n != 1 {
		t.Fatalf("b has counted %d", n)
	}
	ref, _ := w.Lookup("/user/a")
	dir := w.killed()
	w.close()
	for i, from := range []string{dir, w.dir} {
		w := mustOpen(t, from, props)
		if again, _ := w.Lookup("/user/a"); again.UID() != ref.UID() {
			t.Error("its ref is another one")
		}
		if n := w.report("a"); n != 3 {
			t.Errorf("%d: a has %d, and had 3", i, n)
		}
		eventually(t, func() bool { return w.report("b") == 2 }) // its timer
		if w.mu.Lock(); len(w.seen) > 0 {
			t.Errorf("%d: sent once more: %v", i, w.seen)
		}
		w.mu.Unlock()
		again := w.killed()
		w.close()
		for _, from := range []string{again, w.dir} { // a third life
			w := mustOpen(t, from, props)
			if a, b := w.report("a"), w.report("b"); a != 3 || b != 2 {
				t.Errorf("%d: in the third life: %d and %d", i, a, b)
			}
			w.close()
		}
	}
}

func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it has not come about")
		}
	}
}

func TestOnlyOneProcess(t *testing.T) {
	w := mustOpen(t, t.TempDir(), Props{})
	defer w.close()
	if _, err := Open(Options{Dir: w.dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatal(err)
	}
}

// killed while messages flow between durable actors and to the outside, a process leaves a store from which the next goes on
// without losing what was answered, and without anything twice between durable actors.
func TestKilledUnderLoad(t *testing.T) {
	const lives, senders = 12, 4
	image := puppetImage(t)
	twice := script(rec(recAdd, 1), rec(0, 0, send("/user/b", script(rec(recAdd, 1))), send("/user/c", script(rec(recAdd, 1)))))
	props := Props{"a": puppet(image), "b": puppet(image), "c": puppet(image)}
	dir := t.TempDir()
	acknowledged := 0
	for life := range lives {
		w := mustOpen(t, dir, props)
		a := int(w.report("a"))
		if a < acknowledged {
			t.Fatalf("life %d: a has %d, and %d were acknowledged", life, a, acknowledged)
		}
		eventually(t, func() bool { return int(w.report("b")) == a && int(w.report("c")) == a })
		if now := int(w.report("a")); now != a {
			t.Fatalf("life %d: a went from %d to %d by itself", life, a, now)
		}
		acknowledged = a
		stop := make(chan struct{})
		var all sync.WaitGroup
		var mu sync.Mutex
		for range senders {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if mu.Lock(); acknowledged > 240 {
						mu.Unlock()
						return
					}
					mu.Unlock()
					w.tell("a", twice)
					n := int(w.report("a")) // it was handled before
					mu.Lock()
					acknowledged = max(acknowledged, n)
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(1+life) * time.Millisecond)
		mu.Lock()
		before := acknowledged
		mu.Unlock()
		next := w.killed() // some of what is acknowledged from now on is not in it
		close(stop)
		all.Wait()
		acknowledged = before
		w.close()
		dir = next
	}
	t.Logf("%d messages in %d lives", acknowledged, lives)
}

// Other code than that of the records is refused, and so is an actor that the program does not know any more; forgotten, it
// begins anew.
func TestOtherCode(t *testing.T) {
	code, err := os.ReadFile(filepath.Join("..", "testdata", "puppet_batching.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	props := Props{"a": puppet(puppetImage(t)), "b": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props)
	w.tell("a", add)
	w.tell("b", add)
	w.report("a")
	w.report("b")
	w.close()
	changed := Props{"a": puppet(load(t, append(code, 0, 2, 1, 'x'), runtime.ImageConfig{Name: "puppet"})), "b": props["b"]}
	if _, err := open(t, w.dir, changed); err == nil || !strings.Contains(err.Error(), "its code has changed") || !strings.Contains(err.Error(), "/user/a") {
		t.Fatal(err)
	}
	if _, err := open(t, w.dir, Props{"b": props["b"]}); err == nil || !strings.Contains(err.Error(), "/user/a, which is no durable actor now") {
		t.Fatal(err)
	}
	store, err := Open(Options{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Forget(context.Background(), "w", "c"); err == nil {
		t.Error("an actor that is not there is forgotten")
	}
	if err := store.Forget(context.Background(), "w", "a"); err != nil {
		t.Fatal(err)
	}
	if all, err := store.Actors(t.Context()); err != nil || len(all) != 1 || all[0].Path != "wasm://w/user/b" || all[0].Turns != 3 {
		t.Fatal(all, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	w = mustOpen(t, w.dir, changed)
	if a, b := w.report("a"), w.report("b"); a != 0 || b != 1 {
		t.Error(a, b)
	}
	w.tell("a", add)
	w.report("a")
	w.close()
	w = mustOpen(t, w.dir, changed)
	if a, b := w.report("a"), w.report("b"); a != 1 || b != 1 {
		t.Error(a, b)
	}
	w.close()
}

// slowDisk is a folder whose syncs wait, or fail.
type slowDisk struct {
	wal.FS
	mu   sync.Mutex
	held chan struct{} // nil: it does not wait
	err  error

	waits atomic.Int32 // syncs that wait
}

func (d *slowDisk) Create(name string) (wal.File, error) {
	f, err := d.FS.Create(name)
	return &slowFile{f, d}, err
}

type slowFile struct {
	wal.File
	d *slowDisk
}

func (f *slowFile) SyncData() error {
	f.d.mu.Lock()
	held, err := f.d.held, f.d.err
	f.d.mu.Unlock()
	if held != nil {
		f.d.waits.Add(1)
		<-held
		f.d.waits.Add(-1)
	}
	if err != nil {
		return err
	}
	return f.File.SyncData()
}

func slow(t testing.TB, dir string) *slowDisk {
	t.Helper()
	fs, err := wal.Folder(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return &slowDisk{FS: fs}
}

// While a sync is under way durable actors go on among each other; answers, and messages to others, wait.
func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	image := puppetImage(t)
	dir := t.TempDir()
	disk := slow(t, dir)
	w := mustOpen(t, dir, Props{"a": puppet(image), "b": puppet(image)}, func(o *Options) { o.FS = disk })
	w.report("a")
	disk.mu.Lock()
	disk.held = make(chan struct{})
	disk.mu.Unlock()
	ref, _ := w.Lookup("/user/a")
	w.tell("a", script(rec(0, 0, send("/user/b", script(rec(recAdd, 1), rec(0, 0, send("/user/outside", text("out"))))))))
	answer := make(chan error, 1)
	go func() {
		_, err := w.Ask(context.Background(), ref, script(rec(recReport, 0)))
		answer <- err
	}()
	b, _ := w.Lookup("/user/b")
	eventually(t, func() bool { i, err := w.View().Info(b); return err == nil && i.Turns == 2 }) // its start, and the message
	time.Sleep(20 * time.Millisecond)
	w.mu.Lock()
	if len(w.seen) > 0 {
		t.Error("it has left: ", w.seen)
	}
	w.mu.Unlock()
	select {
	case err := <-answer:
		t.Error("it was answered", err)
	default:
	}
	disk.mu.Lock()
	close(disk.held)
	disk.held = nil
	disk.mu.Unlock()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.seen) == 1 })
	w.close()
}

// A disk that hangs holds the actors back before so much waits for it that the store fails. What a turn sends and others refuse
// is written, too, and does not count as something that has to leave.
func TestTurnsWaitForTheDisk(t *testing.T) {
	dir := t.TempDir()
	disk := slow(t, dir)
	w := mustOpen(t, dir, Props{"a": puppet(puppetImage(t))}, func(o *Options) { o.FS = disk })
	w.report("a")
	a, _ := w.Lookup("/user/a")
	if err := w.Operate().Pause(a, false); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.tell("a", add)
	}
	turns := func() uint64 {
		i, err := w.View().Info(a)
		if err != nil {
			t.Fatal(err)
		}
		return i.Turns
	}
	const before = 2 // it has begun, and has reported: that is counted a moment after the answer
	eventually(t, func() bool { return turns() == before })
	disk.mu.Lock()
	disk.held = make(chan struct{})
	disk.mu.Unlock()
	note := func() {
		w.store.Note(&record.Record{Kind: record.Refused, Actor: a.UID(), Message: &record.Message{Kind: abi.KindMessage, Payload: make([]byte, 4)}})
	}
	note()
	eventually(t, func() bool { return disk.waits.Load() > 0 }) // from now on nothing is taken to the disk
	for w.store.log.Pending() <= fullPending {
		note()
	}
	if err := w.Operate().Unpause(a, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		return len(w.store.waiting) > w.store.next
	})
	if n := turns(); n != before {
		t.Errorf("%d turns have gone on", n-before)
	}
	disk.mu.Lock()
	close(disk.held)
	disk.held = nil
	disk.mu.Unlock()
	eventually(t, func() bool { return !w.store.behind() })
	if n := w.report("a"); n != 3 {
		t.Errorf("it has counted %d", n)
	}
	w.close()
}

// Who waits for the end of an actor is told also if the turn that has led to it cannot be made durable any more.
func TestTheEndIsToldWhenTheDiskFails(t *testing.T) {
	dir := t.TempDir()
	disk := slow(t, dir)
	w := mustOpen(t, dir, Props{"a": puppet(puppetImage(t))}, func(o *Options) { o.FS = disk })
	ref, _ := w.Lookup("/user/a")
	ended, err := w.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	w.report("a")
	disk.mu.Lock()
	disk.held = make(chan struct{})
	disk.err = errors.New("no more")
	disk.mu.Unlock()
	w.tell("a", script(rec(0, 0, abi.AppendStop(nil, ref.UID(), ""))))
	eventually(t, func() bool { _, err := w.Lookup("/user/a"); return err != nil })
	select {
	case <-ended:
		t.Error("it is told before it is durable")
	default:
	}
	close(disk.held)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("nobody is told")
	}
	if err := w.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := w.store.Close(); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
}

// When a sync fails nothing leaves any more, durable actors stop, and others go on. The next process has what was durable.
func TestFailedDisk(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	dir := t.TempDir()
	disk := slow(t, dir)
	w := mustOpen(t, dir, props, func(o *Options) { o.FS = disk })
	w.tell("a", add)
	if n := w.report("a"); n != 1 {
		t.Fatal(n)
	}
	ref, _ := w.Lookup("/user/a")
	ended, err := w.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	disk.mu.Lock()
	disk.err = errors.New("no more")
	disk.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if m, err := w.Ask(ctx, ref, script(rec(recAdd, 1), rec(recReport, 0))); err == nil {
		t.Errorf("it was answered: %x", []byte(m.Payload))
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("it has not stopped")
	}
	outside, _ := w.Lookup("/user/outside")
	if err := w.Tell(outside, "still there"); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.seen) == 1 })
	if err := w.store.Err(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "no more") {
		t.Error(err)
	}
	if err := w.Close(ctx); err != nil {
		t.Error(err)
	}
	_ = w.store.Close()
	w = mustOpen(t, dir, props)
	if n := w.report("a"); n != 1 && n != 2 {
		t.Errorf("a has %d", n)
	}
	w.close()
}

// A byte of the log that has changed is found, or changes nothing.
func TestFlippedBytes(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props)
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
	used := len(bytes.TrimRight(whole, "\x00"))
	refused := 0
	for at := 0; at < used; at += 41 {
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
		if n := w.report("a"); n > 1 {
			t.Errorf("byte %d: a has %d", at, n)
		}
		w.close()
	}
	t.Logf("%d of %d refused", refused, used/41)
	if refused < used/41/2 {
		t.Error("too few were refused")
	}
}

func must[T any](v T, _ error) T { return v }

// FuzzDecode: what is no record is refused, and what is one comes out the same again.
func FuzzDecode(f *testing.F) {
	for _, r := range []*record.Record{
		{Kind: record.Began, Actor: 1, Time: 2, Life: &record.Life{Path: "wasm://w/user/a", Type: "t", Args: []byte{0xf6}, Code: []byte{1}}},
		{Kind: record.Accepted, Actor: 1, Message: &record.Message{Position: 1, Kind: abi.KindMessage, Payload: []byte{1}}},
		{Kind: record.Took, Actor: 1, Signal: &record.Signal{What: "stop", Failure: &abi.Failure{Reason: "x"}}},
		{Kind: record.Turned, Actor: 1, Entry: &record.Entry{Mail: []uint64{1, 2}, Done: 2, Outbox: []uint32{7, 0, 0}}},
		{Kind: record.Exchanged, Actor: 1, Exchange: &record.Exchange{Code: make([]byte, record.FingerprintBytes), Way: record.Copied, State: []byte{1}}},
		{Kind: record.Decided, Actor: 1, Decision: &record.Decision{About: record.Reported, Child: 2, Chosen: 2, Directive: 3, Group: 1, Keep: true}},
	} {
		b, err := encode(tagActor, r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(must(encode(tagProbation, &record.Probation{Module: "m", From: make([]byte, record.FingerprintBytes), To: make([]byte, record.FingerprintBytes), Lasts: 1, Until: 2, Crashes: 3})))
	f.Add(must(encode(tagForget, &forgotten{Path: "wasm://w/user/a"})))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(b[1], v)
		if err != nil {
			t.Fatal(err)
		}
		w, err := decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if x := must(encode(b[1], w)); !bytes.Equal(x, again) {
			t.Fatalf("%x\n%x", again, x)
		}
	})
}

// An actor that has guessed too many refs has failed in the next process, too.
func TestGuessesAreRepeated(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image)}
	w := mustOpen(t, t.TempDir(), props)
	ref, _ := w.Lookup("/user/a")
	var guesses []byte
	for i := range 400 {
		guesses = abi.AppendSend(guesses, abi.Ref(uint64(ref.UID())^uint64(i+1)<<20), "", 0, 0, nil, []byte{0xf6})
	}
	for range 170 {
		w.tell("a", script(rec(recAdd, 1), rec(0, 0, guesses)))
	}
	eventually(t, func() bool { i, err := w.View().Info(ref); return err == nil && i.Restarts > 0 && i.Mailbox == 0 })
	for range 2 {
		n := w.report("a")
		dir := w.killed()
		w.close()
		w = mustOpen(t, dir, props)
		if again := w.report("a"); again != n {
			t.Errorf("it has counted %d since its restart, and %d in the next process", n, again)
		}
	}
	w.close()
}

// Who was forgotten has another ref in its next life, and in those after it.
func TestForgottenRefsAreNotUsedAgain(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t))}
	dir := t.TempDir()
	had := map[abi.Ref]bool{}
	for range 3 {
		for range 2 {
			w := mustOpen(t, dir, props)
			ref, _ := w.Lookup("/user/a")
			had[ref.UID()] = true
			w.report("a")
			w.close()
		}
		store, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Forget(context.Background(), "w", "a"); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(had) != 3 {
		t.Errorf("3 lives had %d refs", len(had))
	}
}
