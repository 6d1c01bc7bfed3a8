package wal_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
	"github.com/wasmactors/wasmactors/internal/wal/waltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type place struct{ opt wal.Options }

func (p *place) Open(t testing.TB) wal.Journal {
	t.Helper()
	l, err := wal.Open(p.opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func small(fs wal.FS) wal.Options {
	return wal.Options{FS: fs, Segment: 64 << 10, Record: 100_000, Rand: crand.Reader, After: after}
}

func after(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

var key = bytes.Repeat([]byte("k"), 32)

// TestJournal is the suite, on a disk and in memory, encrypted, and with each way to sync.
func TestJournal(t *testing.T) {
	for name, change := range map[string]func(*wal.Options){
		"plain":    func(*wal.Options) {},
		"sealed":   func(o *wal.Options) { o.Key, o.KeyID = key, 1 },
		"interval": func(o *wal.Options) { o.Sync = wal.Interval },
		"never":    func(o *wal.Options) { o.Sync = wal.Never },
	} {
		t.Run(name, func(t *testing.T) {
			waltest.Run(t, func(t testing.TB) waltest.Place {
				opt := small(crashfs.New())
				if name == "plain" {
					var err error
					if opt.FS, err = wal.Folder(t.TempDir()); err != nil {
						t.Fatal(err)
					}
				}
				change(&opt)
				return &place{opt}
			})
		})
	}
}

// history is what was appended to a log, and when it was acknowledged: after how many changes of the file system.
type history struct {
	data  [][]byte
	acked []int // by record; 0: never
}

// live appends records of at most so many bytes, waits now and then, and opens again.
func (h *history) live(t testing.TB, fs *crashfs.FS, opt wal.Options, lives, each, most int, dice *rand.Rand) {
	for range lives {
		l, err := wal.Open(opt)
		if err != nil {
			t.Fatal(err)
		}
		for range each {
			b := make([]byte, dice.IntN(most))
			for i := range b {
				b[i] = byte(dice.IntN(3)) // with many zeros
			}
			at, err := l.Append(b)
			if err != nil {
				t.Fatal(err)
			}
			h.data, h.acked = append(h.data, b), append(h.acked, 0)
			if dice.IntN(3) == 0 {
				if err := l.Await(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				n := fs.Done()
				for i, a := range h.acked {
					if a == 0 {
						h.acked[i] = n
					}
				}
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		n := fs.Done()
		for i, a := range h.acked {
			if a == 0 {
				h.acked[i] = n
			}
		}
	}
}

// prefix fails unless what is read is a prefix of what was appended, with all that was acknowledged after so many
// changes.
func (h *history) prefix(t testing.TB, l wal.Journal, changes int) {
	t.Helper()
	n := 0
	for r, err := range l.Read(0) {
		if err != nil {
			t.Fatalf("after %d changes: record %d: %v", changes, n, err)
		}
		if n >= len(h.data) || !bytes.Equal(r.Data, h.data[n]) {
			t.Fatalf("after %d changes: record %d is another one", changes, n)
		}
		n++
	}
	for i, a := range h.acked {
		if a != 0 && a <= changes && i >= n {
			t.Fatalf("after %d changes: record %d was acknowledged after %d, and only %d are there", changes, i, a, n)
		}
	}
}

// TestCrash: after any change, with any part of what was not synced, the log opens, and has a prefix of what was appended, with
// all that was acknowledged. What is appended then is there after the next crash.
func TestCrash(t *testing.T) {
	for name, c := range map[string]struct {
		way        wal.Sync
		each, most int
	}{
		"always":   {wal.Always, 60, 1500},
		"interval": {wal.Interval, 60, 1500},
		"never":    {wal.Never, 60, 1500},
		"bursts":   {wal.Always, 15, 90_000}, // several batches are written before a sync, in several files
	} {
		t.Run(name, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(1, uint64(c.most)+uint64(c.way)))
			fs := crashfs.New()
			opt := small(fs)
			opt.Sync, opt.Interval = c.way, time.Microsecond
			var h history
			h.live(t, fs, opt, 3, c.each, c.most, dice)
			if c.way != wal.Always { // a power failure may take what was acknowledged
				clear(h.acked)
			}
			for changes := range fs.Done() + 1 {
				if c.most > 10_000 && !thorough.Enabled && !fs.Rare(changes) && dice.IntN(8) > 0 {
					continue
				}
				for range thorough.SlowOf(1, 4) {
					crash(t, fs, opt, &h, changes, dice)
				}
			}
		})
	}
}

// crash opens what is left after so many changes, and crashes again.
func crash(t *testing.T, fs *crashfs.FS, opt wal.Options, h *history, changes int, dice *rand.Rand) {
	after := fs.After(changes, dice)
	opt.FS = after
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatalf("after %d changes: %v\n%s", changes, err, after)
	}
	defer func() { _ = l.Close() }()
	h.prefix(t, l, changes)
	n := len(waltest.All(t, l, 0))
	at, err := l.Append([]byte("after it"))
	if err == nil {
		err = l.Await(t.Context(), at)
	}
	if err != nil {
		t.Fatal(err)
	}
	if opt.Sync != wal.Always {
		return
	}
	opt.FS = after.After(after.Done(), dice)
	m, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	if list := waltest.All(t, m, 0); len(list) != n+1 || string(list[n].Data) != "after it" {
		t.Fatalf("after %d changes and another crash there are %d records of %d", changes, len(list), n+1)
	}
}

// TestGone: a batch that was durable when a later one was written is not taken for the end of the log, nor is a batch that
// lies where another one was.
func TestGone(t *testing.T) {
	fs := crashfs.New()
	opt := small(fs)
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	const n = 8
	for i := range n {
		at, err := l.Append(bytes.Repeat([]byte{byte(i)}, 1000)) // three sectors with its headers
		if err == nil {
			err = l.Await(t.Context(), at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	names, _ := fs.List()
	right := fs.Bytes(names[0])
	batch := func(data []byte, i int) []byte { return data[512+i*1536:][:1536] }
	refused := func(what string, data []byte) {
		t.Helper()
		broken := crashfs.New()
		broken.Put(names[0], data)
		o := opt
		o.FS = broken
		var d *wal.Damage
		if got, err := records(o); !errors.As(err, &d) || d.File != names[0] || d.At == 0 {
			t.Errorf("%s: %d records, %v", what, len(got), err)
		}
	}
	for i := range n - 1 {
		data := slices.Clone(right)
		clear(batch(data, i))
		refused(fmt.Sprint("without batch ", i), data)
		data = slices.Clone(right)
		copy(batch(data, i+1), batch(right, i))
		refused(fmt.Sprint("with another batch at the place of ", i+1), data)
	}
}

// TestFlip: with any bit changed, what is read is what was written, or an error.
func TestFlip(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		dice := rand.New(rand.NewPCG(2, 2))
		fs := crashfs.New()
		opt := small(fs)
		if sealed {
			opt.Key, opt.KeyID = key, 7
		}
		var h history
		h.live(t, fs, opt, 2, 5, 1500, dice)
		for _, whole := range []bool{true, false} {
			from := fs
			if !whole { // as a crash leaves it, with zeros behind the last batch
				l, err := wal.Open(opt)
				if err != nil {
					t.Fatal(err)
				}
				at, _ := l.Append([]byte("last"))
				_ = l.Await(t.Context(), at)
				from = fs.Copy()
				_ = l.Close()
			}
			all, _ := from.List()
			refused, same := 0, 0
			for _, name := range all {
				size := len(from.Bytes(name))
				for at := 0; at < size; at++ {
					if at > 8<<10 && at%4001 != 0 || !thorough.Enabled && at%thorough.SlowOf(17, 7) != 0 && at%512 != 511 { // far behind what was written
						continue
					}
					broken := from.Copy()
					broken.Flip(name, at*8+dice.IntN(8))
					o := opt
					o.FS, o.Segment = broken, 64<<10
					got, err := records(o)
					want, _ := records(wal.Options{Rand: crand.Reader, FS: from.Copy(), Segment: 64 << 10, Record: o.Record, Key: o.Key, KeyID: o.KeyID})
					switch {
					case err != nil:
						refused++
					case slices.EqualFunc(got, want, bytes.Equal):
						same++
					default:
						t.Fatalf("byte %d of %s: %d records of %d, and no error", at, name, len(got), len(want))
					}
				}
			}
			t.Logf("sealed %v, closed %v: %d refused, %d the same", sealed, whole, refused, same)
			if refused == 0 {
				t.Error("nothing was refused")
			}
		}
	}
}

// records opens a log, reads it, and closes it.
func records(opt wal.Options) (list [][]byte, err error) {
	l, err := wal.Open(opt)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	for r, err := range l.Read(0) {
		if err != nil {
			return list, err
		}
		list = append(list, slices.Clone(r.Data))
	}
	return list, nil
}

// TestFailures: whichever call fails, once or for good, nothing is acknowledged that a crash could take, and the
// log goes on or says that it has failed.
func TestFailures(t *testing.T) {
	for failure, refusal := range map[error]error{syscall.EIO: wal.ErrNoFile, syscall.ENOSPC: wal.ErrFull} {
		for _, good := range []bool{false, true} { // for good
			for n := 0; ; n++ {
				fs := crashfs.New()
				opt := small(fs)
				reached := false
				var mu sync.Mutex
				fs.Fail(func(i int, what string) error {
					mu.Lock()
					defer mu.Unlock()
					if i == n || good && i > n {
						reached = true
						return failure
					}
					return nil
				})
				h, acked := history{}, 0
				l, err := wal.Open(opt)
				if err == nil {
					for i := range 40 {
						b := bytes.Repeat([]byte{byte(i)}, 8000)
						at, err := l.Append(b)
						if err != nil {
							if !errors.Is(err, wal.ErrFailed) && !errors.Is(err, refusal) {
								t.Fatalf("call %d: %v", n, err)
							}
							continue
						}
						h.data = append(h.data, b)
						ctx, cancel := contextFor(t, l)
						if l.Await(ctx, at) == nil {
							acked = len(h.data)
						}
						cancel()
					}
					err = l.Close()
				}
				if err != nil && !errors.Is(err, failure) {
					t.Fatalf("call %d: %v", n, err)
				}
				fs.Fail(nil)
				changes := fs.Done()
				h.acked = make([]int, len(h.data))
				for i := range acked {
					h.acked[i] = changes
				}
				for seed := range uint64(3) {
					o := opt
					o.FS = fs.After(changes, rand.New(rand.NewPCG(seed, uint64(n))))
					m, err := wal.Open(o)
					if err != nil {
						t.Fatalf("call %d, after it: %v", n, err)
					}
					h.prefix(t, m, changes)
					_ = m.Close()
				}
				mu.Lock()
				r := reached
				mu.Unlock()
				if !r {
					break
				}
			}
		}
	}
}

// TestFull: at the limit appending is refused, nothing that was acknowledged is lost, and it goes on when there is
// room.
func TestFull(t *testing.T) {
	fs := crashfs.New()
	opt := small(fs)
	opt.Limit = 400 << 10
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	var last wal.Position
	n := 0
	for ; n < 1000; n++ {
		at, err := l.Append(make([]byte, 5000))
		if errors.Is(err, wal.ErrFull) {
			if !strings.Contains(err.Error(), "of at most 409600") {
				t.Error(err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = at
	}
	if n < 30 || n > 80 {
		t.Errorf("full after %d records of 5000 bytes", n)
	}
	if size := l.Size(); size > opt.Limit {
		t.Errorf("%d bytes", size)
	}
	if err := l.Await(t.Context(), last); err != nil { // what was taken is written
		t.Fatal(err)
	}
	if err := l.Trim(last); err != nil {
		t.Fatal(err)
	}
	at, err := l.Append([]byte("more"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Await(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKeys: another key is refused by its id, and after a rotation both files are read.
func TestKeys(t *testing.T) {
	fs := crashfs.New()
	opt := small(fs)
	opt.Key, opt.KeyID = key, 1
	write := func(o wal.Options, text string) error {
		l, err := wal.Open(o)
		if err != nil {
			return err
		}
		if _, err := l.Append([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return l.Close()
	}
	if err := write(opt, "a secret of many words"); err != nil {
		t.Fatal(err)
	}
	names, _ := fs.List()
	for _, name := range names {
		if bytes.Contains(fs.Bytes(name), []byte("secret")) {
			t.Error("what is sealed can be read")
		}
	}
	for _, o := range []wal.Options{
		{FS: fs},
		{FS: fs, Key: key, KeyID: 2},
		{FS: fs, Key: bytes.Repeat([]byte("x"), 32), KeyID: 1},
		{FS: fs, Key: key[:16], KeyID: 1},
		{FS: fs, Key: key},
		{FS: fs, Key: key, KeyID: 2, Keys: func(uint32) ([]byte, error) { return nil, errors.New("unknown") }},
	} {
		o.Rand = crand.Reader
		if _, err := wal.Open(o); !errors.Is(err, wal.ErrKey) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	two := opt
	two.Key, two.KeyID = bytes.Repeat([]byte("z"), 32), 2
	two.Keys = func(id uint32) ([]byte, error) { return key, nil }
	if err := write(two, "another"); err != nil {
		t.Fatal(err)
	}
	if got, err := records(two); err != nil || len(got) != 2 || string(got[0]) != "a secret of many words" {
		t.Error(got, err)
	}
}

// TestLocked: a second one is refused while the first one is open.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	open := func() (*wal.Log, error) {
		fs, err := wal.Folder(dir)
		if err != nil {
			t.Fatal(err)
		}
		return wal.Open(small(fs))
	}
	l, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, wal.ErrLocked) {
		t.Error(err)
	}
	_ = l.Close()
	if l, err = open(); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// TestWhatIsTakenHasRoom: at the limit, whatever the sizes, all that was taken is written without anything being trimmed.
func TestWhatIsTakenHasRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opt := small(crashfs.New())
		opt.Limit = int64(rapid.IntRange(400, 700).Draw(t, "KiB")) << 10
		l, err := wal.Open(opt)
		if err != nil {
			t.Fatal(err)
		}
		last := wal.Position(0)
		for range 2000 {
			at, err := l.Append(make([]byte, rapid.IntRange(0, 60_000).Draw(t, "bytes")))
			if errors.Is(err, wal.ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			last = at
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := l.Await(ctx, last); err != nil {
			t.Fatalf("position %d was taken, %d is durable, the files have %d bytes of %d: %v", last, l.Durable(), l.Size(), opt.Limit, err)
		}
		if size := l.Size(); size > opt.Limit {
			t.Errorf("%d bytes of at most %d", size, opt.Limit)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestGroups: what arrives while the disk is busy is written and synced at once.
func TestGroups(t *testing.T) {
	fs := crashfs.New()
	l, err := wal.Open(wal.Options{FS: fs, Rand: crand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	slow := &slowFS{FS: fs, entered: make(chan struct{}), leave: make(chan struct{})}
	_ = l.Close()
	if l, err = wal.Open(wal.Options{FS: slow, Rand: crand.Reader}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("first")); err != nil {
		t.Fatal(err)
	}
	<-slow.entered
	var last wal.Position
	for range 1000 {
		if last, err = l.Append([]byte("meanwhile")); err != nil {
			t.Fatal(err)
		}
	}
	slow.leave <- struct{}{}
	<-slow.entered
	if l.Durable() > last {
		t.Error("it is durable before its sync")
	}
	slow.leave <- struct{}{}
	if err := l.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if slow.syncs != 2 {
		t.Errorf("%d syncs for 1001 records", slow.syncs)
	}
}

// TestFilesOfAGroup: what is acknowledged is durable in all files that it was written to at once.
func TestFilesOfAGroup(t *testing.T) {
	slow := &slowFS{FS: crashfs.New(), entered: make(chan struct{}), leave: make(chan struct{})}
	opt := small(slow)
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	h := history{}
	var last wal.Position
	for i := range 12 {
		b := bytes.Repeat([]byte{byte(i)}, 90_000)
		if last, err = l.Append(b); err != nil {
			t.Fatal(err)
		}
		if h.data = append(h.data, b); i == 0 {
			<-slow.entered // the others wait until the first one is synced
		}
	}
	go func() {
		for range slow.entered {
		}
	}()
	close(slow.leave)
	if err := l.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	h.acked = make([]int, len(h.data))
	changes := slow.Done()
	for i := range h.acked {
		h.acked[i] = changes
	}
	dice := rand.New(rand.NewPCG(3, 3))
	for range 10 {
		crash(t, slow.FS, small(nil), &h, changes, dice)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	close(slow.entered)
}

// slowFS waits in every sync of data.
type slowFS struct {
	*crashfs.FS
	entered, leave chan struct{}
	syncs          int
}

func (s *slowFS) Create(name string) (wal.File, error) {
	f, err := s.FS.Create(name)
	return &slowFile{f, s}, err
}

type slowFile struct {
	wal.File
	fs *slowFS
}

func (f *slowFile) SyncData() error {
	f.fs.syncs++
	f.fs.entered <- struct{}{}
	<-f.fs.leave
	return f.File.SyncData()
}

// TestSalt: what cannot be drawn is an error, before anything is written.
func TestSalt(t *testing.T) {
	fs := crashfs.New()
	if _, err := wal.Open(wal.Options{FS: fs, Rand: iotest.ErrReader(errors.New("no dice"))}); err == nil {
		t.Error("it opens")
	}
}

// TestAppendDoesNotAllocate: a record costs no allocation once the buffers are there.
func TestAppendDoesNotAllocate(t *testing.T) {
	l, err := wal.Open(wal.Options{FS: crashfs.New(), Rand: crand.Reader, Sync: wal.Never, Segment: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	head, body := make([]byte, 24), make([]byte, 64)
	for range 2000 {
		_, _ = l.Append(head, body)
	}
	if n := testing.AllocsPerRun(200, func() { _, _ = l.Append(head, body) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
	_ = l.Close()
}

// contextFor is done as soon as the log is full: then nobody knows when what waits will be durable.
func contextFor(t testing.TB, l *wal.Log) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	return ctx, cancel
}

// FuzzFile opens a log whose only file has any bytes behind the start of a right one. What it reads is a prefix of what was
// written, or an error: it neither panics nor reads what nobody wrote, unless the checksums are right.
func FuzzFile(f *testing.F) {
	fs := crashfs.New()
	opt := small(fs)
	l, err := wal.Open(opt)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 20 {
		at, _ := l.Append(bytes.Repeat([]byte{byte(i)}, 100*i))
		_ = l.Await(f.Context(), at)
	}
	_ = l.Close()
	names, _ := fs.List()
	right := fs.Bytes(names[0])
	f.Add(0, right)
	f.Add(1, right[:700])
	f.Add(600, []byte("x"))
	f.Fuzz(func(t *testing.T, at int, change []byte) {
		data := slices.Clone(right)
		if at = max(at, 0) % len(data); len(change) > len(data)-at {
			change = change[:len(data)-at]
		}
		copy(data[at:], change)
		broken := crashfs.New()
		broken.Put(names[0], data)
		o := opt
		o.FS = broken
		got, err := records(o)
		if err == nil && len(got) > 20 {
			t.Fatalf("%d records", len(got))
		}
		for i, b := range got {
			if !bytes.Equal(b, bytes.Repeat([]byte{byte(i)}, 100*i)) {
				t.Fatalf("record %d is another one", i)
			}
		}
	})
}

func benchLog(b *testing.B, opt wal.Options) *wal.Log {
	var err error
	if opt.FS, err = wal.Folder(b.TempDir()); err != nil {
		b.Fatal(err)
	}
	opt.Pending, opt.Rand = 256<<20, crand.Reader
	l, err := wal.Open(opt)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// BenchmarkAppend is the processor's time of a record of 128 bytes until it is written, without syncs.
func BenchmarkAppend(b *testing.B) {
	for name, opt := range map[string]wal.Options{"plain": {Sync: wal.Never}, "sealed": {Sync: wal.Never, Key: key, KeyID: 1}} {
		b.Run(name, func(b *testing.B) {
			l := benchLog(b, opt)
			r := make([]byte, 128)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at, err := l.Append(r)
				if err != nil || i%1000 == 0 && l.Await(b.Context(), at) != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAwait is how long a record takes until it is durable, with so many that wait at once.
func BenchmarkAwait(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := benchLog(b, wal.Options{})
			r := make([]byte, 128)
			b.SetParallelism(n)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					at, err := l.Append(r)
					if err != nil || l.Await(b.Context(), at) != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// TestManual: a manual log does nothing but when it is told to, and is a log otherwise.
func TestManual(t *testing.T) {
	fs := crashfs.New()
	opt := small(fs)
	opt.Manual = true
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	before := fs.Done()
	var last wal.Position
	for i := range 20 {
		if last, err = l.Append(bytes.Repeat([]byte{byte(i)}, 8000)); err != nil {
			t.Fatal(err)
		}
	}
	if fs.Done() != before || l.Durable() > last {
		t.Fatal("it has written something by itself")
	}
	if !l.Work() || l.Durable() <= last || l.Work() {
		t.Fatal("it has not written all there was, once")
	}
	if last, err = l.Append([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if err := l.Await(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if _, err = l.Append([]byte("at the end")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil || l.Work() {
		t.Fatal(err)
	}
	if list, err := records(small(fs)); err != nil || len(list) != 22 {
		t.Fatalf("%d records: %v", len(list), err)
	}
	fs.Fail(func(int, string) error { return nil })
	if l, err = wal.Open(opt); err != nil {
		t.Fatal(err)
	}
	fs.Fail(func(int, string) error { return syscall.EIO })
	if last, err = l.Append([]byte("never")); err != nil {
		t.Fatal(err)
	}
	if err := l.Await(t.Context(), last); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
}

// TestTrimFails: files that cannot be removed are tried again, before those behind them.
func TestTrimFails(t *testing.T) {
	fs := crashfs.New()
	opt := small(fs)
	opt.Manual = true
	l, err := wal.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	var last wal.Position
	write := func(files int) {
		for range 10 * files {
			if last, err = l.Append(make([]byte, 8000)); err != nil {
				t.Fatal(err)
			}
			l.Work()
		}
	}
	for _, failing := range []string{"remove", "sync folder"} {
		write(4)
		fs.Fail(func(_ int, what string) error {
			if what == failing {
				return syscall.EIO
			}
			return nil
		})
		if err := l.Trim(last); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		fs.Fail(nil)
		opt.FS = fs.Copy()
		if _, err := records(opt); err != nil {
			t.Fatalf("%s has failed: %v", failing, err)
		}
	}
	write(4)
	if err := l.Trim(last); err != nil {
		t.Fatal(err)
	}
	opt.FS = fs.Copy()
	if list, err := records(opt); err != nil || len(list) == 0 || len(list) > 20 {
		t.Fatalf("%d records: %v", len(list), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
