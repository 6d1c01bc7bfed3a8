package durable

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// sparing has old frames stay as long as they may.
func sparing(o *Options) { o.space = &space{slack: 64 << 20} }

// A checkpoint has the parts of actors that records are about, and of those that have something under way. A start has the others from
// where they are, in both ways.
func TestWhatHasNotChangedIsNotWritten(t *testing.T) {
	const n = 50
	w := mustOpen(t, t.TempDir(), crowd(t, n), sparing, eagerly)
	for name := range w.props {
		w.tell(name, add)
		w.report(name)
	}
	w.tell("timer", script(rec(0, 0, abi.AppendTimer(nil, 1, 3_600_000*ms, 3_600_000*ms, nil))))
	w.report("timer")
	wrote := func(want int, how string) {
		t.Helper()
		w.checkpoint()
		if f := w.store.Figures().Checkpoint; f.Wrote != want || f.Moved != 0 || f.Actors != n+4 {
			t.Errorf("%s: %+v, want %d parts", how, f, want)
		}
	}
	wrote(n+4, "the first one")
	wrote(0, "nothing has happened") // also to timer, parent and kid
	all := w.store.Figures().Checkpoint.Bytes
	w.tell("a3", add)
	w.report("a4")
	wrote(2, "two were asked")
	if some := w.store.Figures().Checkpoint.Bytes; some > all*8 {
		t.Errorf("%d bytes, and %d without a change", some, all)
	}
	for life := range 4 {
		dir := w.killed()
		w.close()
		how := lazily
		if life%2 == 1 {
			how = eagerly
		}
		w = mustOpen(t, dir, w.props, sparing, how)
		want := 0 // also of who has something under way, or others below it
		if life > 0 {
			want = n // they were asked before
		}
		wrote(want, fmt.Sprint("life ", life))
		for i := range n {
			want := byte(1)
			if i == 3 {
				want = 2
			}
			if got := w.report(fmt.Sprint("a", i)); got != want {
				t.Errorf("life %d: a%d has counted %d, want %d", life, i, got, want)
			}
		}
	}
	ref, err := w.Lookup("/user/a7")
	if err != nil {
		t.Fatal(err)
	}
	ended, err := w.Ended(ref)
	if err != nil {
		t.Fatal(err)
	}
	w.Stop(ref)
	<-ended
	w.checkpoint()
	if f := w.store.Figures().Checkpoint; f.Actors != n+3 {
		t.Errorf("%+v after one has stopped", f)
	}
	w.close()
}

// Who does not simply run is written each time, whether a record is about it or not.
func TestWhoIsPausedIsWritten(t *testing.T) {
	w := mustOpen(t, t.TempDir(), Props{"a": puppet(puppetImage(t)), "b": puppet(puppetImage(t))}, sparing)
	w.report("b")
	ref, err := w.Lookup("/user/a")
	if err == nil {
		err = w.Operate().Pause(ref, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []int{2, 1, 1} {
		if w.checkpoint(); w.store.Figures().Checkpoint.Wrote != want {
			t.Errorf("checkpoint %d: %+v, want %d parts", n, w.store.Figures().Checkpoint, want)
		}
	}
	w.close()
}

// Whatever comes about, and however often the process is killed, checkpoints of what has changed lead to the same, to the bit, as those of
// all actors.
func TestCheckpointsOfPartsChangeNothing(t *testing.T) {
	thorough.Checks(t, 30)
	const n = 6
	base := crowded(t, n)
	start := base.killed()
	base.close()
	kept := 0
	rapid.Check(t, func(rt *rapid.T) {
		steps := drawSteps(rt, n, 16, "add", "send", "trap", "stop", "timer", "watch", "checkpoint", "checkpoint", "kill", "pattern", "ask", "ref", "spawn")
		how := []func(*Options){rapid.SampledFrom([]func(*Options){lazily, eagerly}).Draw(rt, "how")}
		play := func(all bool, how ...func(*Options)) (out []string) {
			dir := t.TempDir()
			if err := copyBackward(dir, start); err != nil {
				t.Fatal(err)
			}
			w := mustOpen(t, dir, base.props, how...)
			for _, s := range steps {
				if s.what == "kill" {
					w.report("parent") // all before it is durable
					dir = w.killed()
					w.close()
					w = mustOpen(t, dir, base.props, how...)
				}
				if all {
					w.store.writing.Lock()
					w.store.all = true
					w.store.writing.Unlock()
				}
				out = append(out, s.do(w, base.props)...)
				if f := w.store.Figures().Checkpoint; f.Err != nil || f.Failed > 0 {
					t.Fatal(f)
				} else if s.what == "checkpoint" && !all {
					kept += f.Actors - f.Wrote - f.Moved
				}
				settled(t, w, steps)
			}
			out = append(out, allOf(t, w)...)
			w.close()
			return out
		}
		all, parts := play(true, how...), play(false, append(how, sparing)...)
		if !slices.Equal(all, parts) {
			rt.Fatalf("%+v\n%s", steps, differ(all, parts))
		}
	})
	if kept == 0 {
		t.Error("all parts were written")
	}
}

// The parts of idle actors are moved, a bounded amount each time, and files go: the store stays small, at most 3 bytes are written for each
// that is accepted, and idle actors are what they were.
func TestFilesGoThoughActorsAreIdle(t *testing.T) {
	const idle, message = 400, 14 << 10
	props := Props{"busy": puppet(puppetImage(t))}
	for i := range idle {
		props[fmt.Sprint("idle", i)] = puppet(puppetImage(t))
	}
	w := mustOpen(t, t.TempDir(), props, func(o *Options) { o.Size, o.Sync, o.space = 1<<30, Never, &space{slack: 1 << 20} })
	for name := range props {
		w.tell(name, add)
		w.report(name)
	}
	w.checkpoint()
	first := w.store.log.First()
	sent, written, moved, atOnce := 0, int64(0), 0, 0
	for sent = 0; sent < 6000; {
		for range 50 {
			w.tell("busy", big(message))
			sent++
		}
		w.report("busy")
		if sent%200 == 0 {
			w.checkpoint()
			f := w.store.Figures().Checkpoint
			written, moved, atOnce = written+f.Bytes, moved+f.Moved, max(atOnce, f.Moved)
			if f.Wrote > 2 {
				t.Fatalf("idle actors are written: %+v", f)
			}
		}
	}
	f := w.store.Figures()
	accepted := int64(sent) * message
	if t.Logf("%d MiB accepted, %d MiB of records, %d KiB of checkpoints, %d parts moved, at most %d at once; %d MiB of files", accepted>>20, f.Written>>20, written>>10, moved, atOnce, f.Bytes>>20); moved == 0 || w.store.log.First() == first {
		t.Error("no file has gone")
	}
	if int64(f.Written)+written > 3*accepted || f.Bytes > 40<<20 {
		t.Errorf("too much is written, or left: %+v", f)
	}
	dir := w.killed()
	w.close()
	for _, how := range []func(*Options){lazily, eagerly} {
		w = mustOpen(t, dir, props, how)
		for name := range props {
			if n := w.report(name); name != "busy" && n != 1 {
				t.Errorf("%s has counted %d", name, n)
			}
		}
		w.close()
	}
}

// A checkpoint moves a bounded number of bytes, however many are in the way, and one that compacts all of them. When all that was in the way
// is moved the log begins behind it.
func TestMovesOfPartsAreBounded(t *testing.T) {
	const n, part = 40, 200 << 10
	w := openWritten(t, crashfs.New(), 1, nil, true)
	defer func() { _ = w.Close() }()
	again := func(compacts bool) *making {
		c := w.making(make([]byte, 10))
		c.actors, c.compacts = n, compacts
		w.finish(c)
		return c
	}
	c := w.making(make([]byte, 10))
	for i := range n { // parts that hardly get smaller
		b := make([]byte, part)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(b)
		c.packer.add(w.actor(abi.Ref(i+1)), b)
	}
	c.actors = n
	begin := w.finish(c).mark
	w.space = space{slack: 64 << 20}
	if c := again(false); c.moved > 0 || w.chain.low > begin.at+part {
		t.Errorf("%d are moved, and the log is needed from %d on", c.moved, w.chain.low)
	}
	w.space = space{slack: -1 << 40} // the log may have nothing at all
	moved := 0
	for moved < n {
		before := w.chain.low
		c := again(false)
		if c.moved == 0 || c.written > leastMoved+2*part || w.chain.low <= before {
			t.Fatalf("%d parts with %d bytes are moved, and the log is needed from %d on, before from %d", c.moved, c.written, w.chain.low, before)
		}
		moved += c.moved
	}
	if c := again(true); c.moved != n || w.chain.low < c.begin.batch || w.chain.links != 0 {
		t.Errorf("%d are moved, and the log is needed from %d on: %+v", c.moved, w.chain.low, w.chain)
	}
	if c := again(true); c.delta == nil || w.log.Trim(w.chain.low) != nil || w.log.SizeFrom(0) > 3*n*part {
		t.Errorf("%d bytes are left", w.log.SizeFrom(0))
	}
}

// Turns touch their actors, and all whom a record is about are touched.
func TestTouched(t *testing.T) {
	w := openWritten(t, crashfs.New(), 1, nil, true)
	defer func() { _ = w.Close() }()
	if _, err := w.turned(&record.Turn{Actor: 7}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*record.Record{
		{Kind: record.Accepted, Actor: 8, Message: &record.Message{Position: 1}},
		{Kind: record.Took, Actor: 8, Signal: &record.Signal{From: 9, Other: 10}},
		{Kind: record.Began, Actor: 8, Life: &record.Life{Path: "wasm://w/user/a", Parent: 8 + 256}},
	} {
		if err := w.Store.note(r); err != nil {
			t.Fatal(err)
		}
	}
	_, refs, err := w.appendMark()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(slices.Sorted(maps.Keys(refs))); got != fmt.Sprint([]abi.Ref{7, 8, 9, 10, 264}) {
		t.Error(got)
	}
	if err := w.Store.note(&record.Record{Kind: record.Accepted, Actor: 8, Message: &record.Message{Position: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, refs, err = w.appendMark(); err != nil || len(refs) != 1 {
		t.Error(refs, err)
	}
}

// What has changed before a checkpoint that could not be written is in the next one.
func TestWhatWasNotWrittenIsWrittenLater(t *testing.T) {
	props := Props{"a": puppet(puppetImage(t)), "b": puppet(puppetImage(t))}
	w := mustOpen(t, t.TempDir(), props, sparing)
	for name := range props {
		w.tell(name, add)
		w.report(name)
	}
	w.checkpoint()
	w.tell("a", add)
	w.report("a")
	c := &making{store: w.store, packer: newPacker()}
	if _, _, err := c.mark(); err != nil { // and no more of it
		t.Fatal(err)
	}
	w.store.untold = c.touched
	w.checkpoint()
	if f := w.store.Figures().Checkpoint; f.Wrote != 1 {
		t.Errorf("%+v", f)
	}
	dir := w.killed()
	w.close()
	w = mustOpen(t, dir, props)
	if a, b := w.report("a"), w.report("b"); a != 2 || b != 1 {
		t.Error(a, b)
	}
	w.close()
}

// With a store whose frames are spread over its log a byte that has changed is found, or changes nothing; so is a file that is missing.
func TestAByteOfOldFrames(t *testing.T) {
	props := Props{}
	for _, name := range []string{"a", "b", "c"} {
		props[name] = puppet(puppetImage(t))
	}
	w := mustOpen(t, t.TempDir(), props, sparing)
	for name := range props {
		w.tell(name, add)
		w.report(name)
		w.checkpoint()
	}
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
	for at := 0; at < used; at += 101 {
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
		w, err := open(t, dir, props, eagerly)
		if err != nil {
			refused++
			continue
		}
		for name := range props {
			if n := w.report(name); n != 1 {
				t.Errorf("byte %d of %d: %s has counted %d", at, used, name, n)
			}
		}
		w.close()
	}
	if t.Logf("%d of %d refused", refused, (used+100)/101); refused == 0 {
		t.Error("none was refused")
	}
}

// A record of a later version is refused, by its number.
func TestLaterRecords(t *testing.T) {
	for _, b := range [][]byte{{3, tagEnded, 1, 2}, {laterVersion, tagEnded}, {laterVersion, tagMark}} {
		if v, err := decode(b); err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", b[0])) {
			t.Errorf("%v: %v, %v", b, v, err)
		}
	}
	if version >= laterVersion || laterVersion >= compact {
		t.Error("releases without it would not refuse it by its number")
	}
}

// FuzzEnded: bytes are no end of a checkpoint, or one that is well formed and comes out the same.
func FuzzEnded(f *testing.F) {
	f.Add((&ended{mark: 9000, low: 536, sum: 7, actors: 3, bytes: 900, size: 100, before: spot{1000, 1030}, index: []spot{{9100, 9130}, {9700, 9700}}}).encode())
	f.Add((&ended{mark: 9000, low: 9000, actors: 3, bytes: 900, size: 100, index: []spot{{9100, 9130}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := decodeEnded(b)
		if !ok {
			return
		}
		if again, ok := decodeEnded(e.encode()); !ok || !reflect.DeepEqual(e, again) {
			t.Fatalf("%+v, then %+v", e, again)
		}
		last := e.mark
		for _, x := range e.index {
			if x.at <= last || x.batch > x.at {
				t.Fatalf("%+v", e)
			}
			last = x.at
		}
		if e.low > e.mark || e.before != (spot{}) && e.before.at >= e.mark {
			t.Fatalf("%+v", e)
		}
	})
}

// Actors that a store forgets are not in the next checkpoint, and their names are free for others.
func TestForgottenActorsLeaveTheBook(t *testing.T) {
	image := puppetImage(t)
	props := Props{"a": puppet(image), "parent": puppet(image).WithChildren(host.Child{Name: "kid", Props: puppet(image)})}
	for _, how := range []func(*Options){lazily, eagerly} {
		w := mustOpen(t, t.TempDir(), props, sparing, how)
		eventually(t, func() bool { _, err := w.Lookup("/user/parent/kid"); return err == nil })
		for _, name := range []string{"a", "parent", "parent/kid"} {
			w.tell(name, add)
			w.report(name)
		}
		w.checkpoint()
		w.close()
		s, err := Open(Options{Dir: w.dir})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "parent"} {
			if err := s.Forget(t.Context(), "w", name); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for life := range 2 {
			w = mustOpen(t, w.dir, props, sparing, how)
			for _, name := range []string{"a", "parent", "parent/kid"} {
				if n := w.report(name); n != 0 {
					t.Errorf("life %d: %s has counted %d", life, name, n)
				}
			}
			w.checkpoint()
			if f := w.store.Figures().Checkpoint; f.Actors != 3 || w.store.book.Len() != 3 || f.Failed > 0 {
				t.Errorf("life %d: %+v, and %d in the book", life, f, w.store.book.Len())
			}
			w.close()
		}
	}
}
