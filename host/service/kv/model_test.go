package kv

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	if len(crashArgs()) > 0 {
		crashChild()
		return
	}
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	// A store whose disk has failed stays open, cut off, if somebody got stuck in it; see closeDB.
	const pebble = "github.com/cockroachdb/pebble"
	stuck := []goleak.Option{
		goleak.IgnoreAnyFunction(pebble + ".(*cleanupManager).mainLoop"), goleak.IgnoreAnyFunction(pebble + ".(*tableCacheShard).releaseLoop"),
		goleak.IgnoreAnyFunction(pebble + "/record.(*LogWriter).flushLoop"),
	}
	if err := goleak.Find(stuck...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// bed is a store that can be closed and opened again.
type bed struct {
	clock *host.VirtualClock
	open  func() (engine, error)
	s     *store
}

func (b *bed) reopen(t interface{ Fatal(...any) }) {
	if b.s != nil {
		if err := b.s.close(); err != nil {
			t.Fatal(err)
		}
	}
	eng, err := b.open()
	if err == nil {
		b.s, err = openStore(eng, b.clock, quiet(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// keeps is a memory engine that outlives its store, as a disk does.
type keeps struct{ *memory }

// engines are the kinds of stores, each of which makes a bed.
var engines = map[string]func() *bed{
	"memory": func() *bed {
		m := newMemory()
		return &bed{clock: host.NewVirtualClock(time.Unix(1e9, 0)), open: func() (engine, error) { return keeps{m}, nil }}
	},
	"disk": func() *bed {
		fs := vfs.NewMem()

		return &bed{clock: host.NewVirtualClock(time.Unix(1e9, 0)), open: func() (engine, error) {
			eng, err := openLocked("store", fs, quiet())
			if err != nil {
				return nil, err
			}
			return eng, nil
		}}
	},
}

func onBoth(t *testing.T, f func(t *testing.T, b *bed)) {
	for name, make := range engines {
		t.Run(name, func(t *testing.T) {
			b := make()
			b.reopen(t)
			defer func() {
				if err := b.s.close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, b)
		})
	}
}

// modelEntry is an entry as the model has it.
type modelEntry struct {
	value   string
	counter bool
	count   int64
	version uint64
	expires int64
}

type model map[string]modelEntry

// do carries out a batch as the documentation says.
func (m model) do(ops []Op, now int64) (model, []Result, service.Code) {
	next := maps.Clone(m)
	results := make([]Result, len(ops))
	const ofThis = 1 << 62
	for i, op := range ops {
		e, there := next[op.Key]
		if there && e.expires != 0 && e.expires <= now {
			delete(next, op.Key)
			e, there = modelEntry{}, false
		}
		if op.If != nil {
			switch {
			case *op.If == 0 && there:
				return m, nil, service.Exists
			case *op.If != 0 && (!there || e.version != *op.If):
				return m, nil, service.Conflict
			}
		}
		expires := int64(0)
		if op.TTL > 0 {
			expires = now + int64(op.TTL)
		}
		switch op.Kind {
		case OpPut:
			next[op.Key] = modelEntry{value: string(op.Value), version: ofThis, expires: expires}
		case OpDelete:
			results[i].Existed = there
			delete(next, op.Key)
		case OpAdd:
			if there && !e.counter {
				return m, nil, service.Conflict
			}
			if there {
				expires = e.expires
			}
			next[op.Key] = modelEntry{counter: true, count: e.count + op.Delta, version: ofThis, expires: expires}
			results[i].Count = e.count + op.Delta
		}
	}
	return next, results, ""
}

func (m model) settle(version uint64) {
	for k, e := range m {
		if e.version == 1<<62 {
			e.version = version
			m[k] = e
		}
	}
}

func (m model) live(now int64) []string {
	var keys []string
	for k, e := range m {
		if e.expires == 0 || e.expires > now {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m model) usage() (u Usage) {
	for k, e := range m {
		u.Keys++
		u.Bytes += cost(k, &record{counter: e.counter, value: []byte(e.value)})
	}
	return u
}

// What a store does is what a map does, whatever is asked of it in which order, also after
// it was closed and opened again.
func TestModel(t *testing.T) {
	for name, make := range engines {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { againstModel(t, make()) }) })
	}
}

func againstModel(t *rapid.T, b *bed) {
	b.reopen(t)
	defer func() { _ = b.s.close() }()
	spaces := map[string]model{"a": {}, "ab": {}, "b": {}}
	names := []string{"a", "ab", "b"}
	key := rapid.SampledFrom([]string{"a", "aa", "ab", "b", "b/1", "b/2", "b/\U0010ffff", "c", "\u00ff", "x"})
	highest := uint64(0)
	step := func(t *rapid.T) ([]Op, Durability) {
		n := 1
		if rapid.Bool().Draw(t, "batch") {
			n = rapid.IntRange(2, 5).Draw(t, "n")
		}
		ops := make([]Op, n)
		for i := range ops {
			op := Op{Kind: OpKind(rapid.IntRange(0, 3).Draw(t, "kind")), Key: key.Draw(t, "key")}
			switch op.Kind {
			case OpPut:
				op.Value = []byte(rapid.StringN(0, 8, 16).Draw(t, "value"))
				fallthrough
			case OpAdd:
				if rapid.Bool().Draw(t, "ends") {
					op.TTL = time.Duration(rapid.IntRange(1, 30).Draw(t, "ttl")) * time.Second
				}
				op.Delta = int64(rapid.IntRange(-3, 3).Draw(t, "delta"))
			}
			if op.Kind == OpCheck || rapid.Bool().Draw(t, "if") {
				v := rapid.SampledFrom([]uint64{0, highest, highest - min(highest, 1), 1 << 40}).Draw(t, "version")
				op.If = &v
			}
			ops[i] = op
		}
		return ops, Durability(rapid.IntRange(0, 2).Draw(t, "durability"))
	}
	t.Repeat(map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			ns := rapid.SampledFrom(names).Draw(t, "namespace")
			ops, d := step(t)
			next, want, code := spaces[ns].do(ops, b.s.now())
			got, version, err := b.s.change(context.Background(), ns, Quota{}, ops, d)
			if service.CodeOf(err) != code {
				t.Fatalf("%v: want %q, got %v", ops, code, err)
			}
			if err != nil {
				return
			}
			if version != 0 {
				if version <= highest {
					t.Fatalf("version %d after %d", version, highest)
				}
				highest = version
			}
			for i := range want {
				if want[i].Count != got[i].Count || want[i].Existed != got[i].Existed {
					t.Fatalf("%v: want %+v, got %+v", ops[i], want[i], got[i])
				}
			}
			next.settle(version)
			spaces[ns] = next
		},
		"get": func(t *rapid.T) {
			ns, k := rapid.SampledFrom(names).Draw(t, "namespace"), key.Draw(t, "key")
			want, there := spaces[ns][k]
			there = there && (want.expires == 0 || want.expires > b.s.now())
			got, err := b.s.get(ns, k)
			if !there {
				if service.CodeOf(err) != service.NotFound {
					t.Fatalf("%s %q: %v %v", ns, k, got, err)
				}
				return
			}
			if err != nil || string(got.Value) != want.value || got.Counter != want.counter || got.Count != want.count || got.Version != want.version || got.Expires != want.expires {
				t.Fatalf("%s %q: want %+v, got %+v %v", ns, k, want, got, err)
			}
		},
		"list": func(t *rapid.T) {
			ns := rapid.SampledFrom(names).Draw(t, "namespace")
			prefix := rapid.SampledFrom([]string{"", "a", "b", "b/", "nothing"}).Draw(t, "prefix")
			l := listing{ns: ns, prefix: prefix, limit: rapid.IntRange(1, 4).Draw(t, "limit"), values: true, reverse: rapid.Bool().Draw(t, "reverse")}
			var want, got []string
			for _, k := range spaces[ns].live(b.s.now()) {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			if l.reverse {
				slices.Reverse(want)
			}
			for {
				page, cursor, err := b.s.list(l)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page {
					got = append(got, e.Key)
					if w := spaces[ns][e.Key]; w.value != string(e.Value) || w.version != e.Version {
						t.Fatalf("%q: want %+v, got %+v", e.Key, w, e)
					}
				}
				if cursor == nil {
					break
				}
				l.cursor = cursor
			}
			if !slices.Equal(want, got) {
				t.Fatalf("%s %q: want %q, got %q", ns, prefix, want, got)
			}
		},
		"time": func(t *rapid.T) {
			b.clock.Advance(time.Duration(rapid.IntRange(1, 12).Draw(t, "seconds")) * time.Second)
		},
		"reopen": func(t *rapid.T) { b.reopen(t) },
		"": func(t *rapid.T) {
			if err := b.s.sweepAll(); err != nil {
				t.Fatal(err)
			}
			list, err := b.s.namespaces()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]Usage{}
			for _, n := range list {
				got[n.Name] = n.Usage
			}
			for ns, m := range spaces {
				for k, e := range m {
					if e.expires != 0 && e.expires <= b.s.now() {
						delete(m, k)
					}
				}
				if want := m.usage(); want != got[ns] {
					t.Fatalf("%s: want %+v, got %+v", ns, want, got[ns])
				}
			}
		},
	})
}

// sweepAll removes all that has expired, and returns when that is done.
func (s *store) sweepAll() error {
	c := &commit{sweep: true, durability: Memory, done: make(chan error, 1)}
	s.commits <- c
	return <-c.done
}

func put(key, value string) Op { return Op{Kind: OpPut, Key: key, Value: []byte(value)} }

func (s *store) must(t testing.TB, ops ...Op) uint64 {
	t.Helper()
	_, v, err := s.change(context.Background(), "n", Quota{}, ops, Disk)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Counters lose and double nothing, and no two adds see the same.
func TestCountersAreLinearizable(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		const clients, each = 8, 100
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				last := int64(0)
				for range each {
					r, _, err := b.s.change(context.Background(), "n", Quota{}, []Op{{Kind: OpAdd, Key: "c", Delta: 1}}, OS)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if seen[r[0].Count] || r[0].Count <= last {
						t.Errorf("%d after %d, seen %v", r[0].Count, last, seen[r[0].Count])
					}
					last = r[0].Count
					seen[last] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if e, err := b.s.get("n", "c"); err != nil || e.Count != clients*each {
			t.Fatal(e, err)
		}
	})
}

// Of many that compare and set the same version one succeeds.
func TestOneWinsACompareAndSet(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		for round := range 20 {
			v := b.s.must(t, put("k", "x"))
			var wg sync.WaitGroup
			wins := make(chan struct{}, 8)
			for range 8 {
				wg.Go(func() {
					op := put("k", fmt.Sprint(round))
					op.If = &v
					_, _, err := b.s.change(context.Background(), "n", Quota{}, []Op{op}, Memory)
					switch service.CodeOf(err) {
					case "":
						wins <- struct{}{}
					case service.Conflict:
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if len(wins) != 1 {
				t.Fatalf("%d have won", len(wins))
			}
		}
	})
}

// A version is never given twice, also when what had it was deleted and the store was
// opened again.
func TestVersionsNeverComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		last := uint64(0)
		for range 5 {
			for range 3 {
				v := b.s.must(t, put("k", "v"))
				if v <= last {
					t.Fatalf("%d after %d", v, last)
				}
				last = v
				b.s.must(t, Op{Kind: OpDelete, Key: "k"})
			}
			b.reopen(t)
		}
	})
}

// The bounds of a quota hold to the byte, whoever races; what shrinks is allowed, and what has
// expired is not in the way.
func TestQuota(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		ctx := context.Background()
		q := Quota{Keys: 10, Bytes: 10 * (EntryOverhead + 2 + 8)}
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				for i := range 10 {
					_, _, err := b.s.change(ctx, "n", q, []Op{put(fmt.Sprintf("%d%d", c, i), "12345678")}, Memory)
					if code := service.CodeOf(err); code != "" && code != service.Quota {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		list, _ := b.s.namespaces()
		if len(list) != 1 || list[0].Keys != q.Keys || list[0].Bytes != q.Bytes {
			t.Fatalf("%+v, quota %+v", list, q)
		}
		page, _, _ := b.s.list(listing{ns: "n"})
		refused := func(want service.Code, ops ...Op) {
			t.Helper()
			if _, _, err := b.s.change(ctx, "n", q, ops, Memory); service.CodeOf(err) != want {
				t.Fatalf("want %q, got %v", want, err)
			}
		}
		refused(service.Quota, put(page[0].Key, "123456789"))
		refused(service.Quota, put("new", ""))
		refused("", put(page[0].Key, "1234567"))
		refused("", Op{Kind: OpDelete, Key: page[0].Key}, put("xy", "12345678")) // within one batch
		// A smaller quota later lets shrink what is there.
		q = Quota{Keys: 2, Bytes: 100}
		refused("", put("xy", "1"))
		refused(service.Quota, put("xy", "12"))
		refused("", Op{Kind: OpDelete, Key: "xy"})
		// What has expired gives way.
		q = Quota{Keys: 1}
		op := put("short", "")
		op.TTL = time.Second
		if _, _, err := b.s.change(ctx, "other", q, []Op{op}, Memory); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.s.change(ctx, "other", q, []Op{put("long", "")}, Memory); service.CodeOf(err) != service.Quota {
			t.Fatal(err)
		}
		b.clock.Advance(time.Second)
		if _, _, err := b.s.change(ctx, "other", q, []Op{put("long", "")}, Memory); err != nil {
			t.Fatal(err)
		}
	})
}

// What has expired is removed in the background, so many at a time, also after a restart.
func TestSweep(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		const n = sweepAtOnce + 50
		for i := range n {
			op := put(fmt.Sprintf("k%d", i), "v")
			op.TTL = time.Second
			if _, _, err := b.s.change(context.Background(), "n", Quota{}, []Op{op}, Memory); err != nil {
				t.Fatal(err)
			}
		}
		b.reopen(t)
		left := func() int64 {
			list, err := b.s.namespaces()
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				return x.Keys
			}
			return 0
		}
		seen := []int64{left()}
		for d := time.Second; seen[len(seen)-1] > 0 && len(seen) < 5; d = sweepEvery { // the first one when they are due
			b.clock.Advance(d)
			if page, _, err := b.s.list(listing{ns: "n"}); err != nil || len(page) != 0 {
				t.Fatal(page, err)
			}
			was := seen[len(seen)-1]
			eventually(t, func() bool { // swept, and the timer of the next sweep is set: only Advance runs it
				_, waits := b.clock.Next()
				return left() < was && (waits || left() == 0)
			})
			seen = append(seen, left())
		}
		if !slices.Equal(seen, []int64{n, n - sweepAtOnce, 0}) {
			t.Fatalf("left %v", seen)
		}
		found := 0
		for _, space := range []byte{spaceEntry, spaceExpiry, spaceUsage} {
			_ = b.s.engine().scan([]byte{space}, []byte{space + 1}, false, func(k, _ []byte) bool { found++; return true })
		}
		if found != 0 {
			t.Fatalf("%d records are left over", found)
		}
	})
}

func eventually(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never comes")
		}
	}
}

// While nothing expires no time is waited for: a day of virtual time is one step. What expires is swept when it is
// due, also if it is due before what was due next.
func TestSweepsAtWhatIsDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		b.s.must(t, put("a", "stays"))
		if next, ok := b.clock.Next(); ok {
			t.Fatalf("it waits for %v", next)
		}
		begun := b.clock.Now()
		for key, ttl := range map[string]time.Duration{"late": 24 * time.Hour, "early": time.Hour} {
			op := put(key, "x")
			op.TTL = ttl
			b.s.must(t, op)
		}
		b.reopen(t)
		for _, due := range []time.Duration{time.Hour, 24 * time.Hour} {
			next := func() (at time.Time) { at, _ = b.clock.Next(); return at }
			eventually(t, func() bool { return next().Equal(begun.Add(due)) })
			b.clock.Advance(next().Sub(b.clock.Now()))
		}
		eventually(t, func() bool {
			list, err := b.s.namespaces()
			return err == nil && len(list) == 1 && list[0].Keys == 1
		})
		if next, ok := b.clock.Next(); ok {
			t.Fatalf("it waits for %v", next)
		}
	})
}

// A clock that is set back brings nothing back.
func TestClockSetBack(t *testing.T) {
	b := engines["memory"]()
	c := &setClock{VirtualClock: b.clock, at: time.Unix(1000, 0)}
	s, err := openStore(newMemory(), c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	op := put("k", "v")
	op.TTL = 10 * time.Second
	s.must(t, op)
	c.at = time.Unix(1010, 0)
	if _, err := s.get("n", "k"); service.CodeOf(err) != service.NotFound {
		t.Fatal(err)
	}
	c.at = time.Unix(1000, 0)
	if _, err := s.get("n", "k"); service.CodeOf(err) != service.NotFound {
		t.Fatal("it is back:", err)
	}
}

type setClock struct {
	*host.VirtualClock
	at time.Time
}

func (c *setClock) Now() time.Time { return c.at }

// Who watches gets each change once, in order; who is slow gets a gap.
func TestWatch(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		b.s.must(t, put("a/0", "before"))
		w, since, err := b.s.hub.watch("n", "a/", true, func() {})
		if err != nil {
			t.Fatal(err)
		}
		v1 := b.s.must(t, put("a/1", "x"))
		b.s.must(t, put("b/1", "x"))
		v2 := b.s.must(t, put("a/2", "y"), Op{Kind: OpDelete, Key: "a/1"}, put("z", ""))
		op := put("a/3", "")
		op.TTL = time.Second
		b.s.must(t, op)
		if _, _, err := b.s.change(context.Background(), "m", Quota{}, []Op{put("a/9", "of another namespace")}, Disk); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(sweepEvery)
		if err := b.s.sweepAll(); err != nil {
			t.Fatal(err)
		}
		b.s.must(t, put("z", "")) // is told after all before
		var got bytes.Buffer
		for {
			list, gap, ended := w.take(2, 1<<20)
			if gap || ended {
				t.Fatal(gap, ended)
			}
			for _, c := range list {
				if c.Version <= since {
					t.Fatal("told of what was before:", c)
				}
				fmt.Fprintf(&got, "%s %d %v", c.Key, c.Kind, c.Expired)
				if c.Entry != nil {
					fmt.Fprintf(&got, " %s", c.Entry.Value)
				}
				fmt.Fprintln(&got)
			}
			if len(list) == 0 {
				break
			}
		}
		want := "a/1 0 false x\na/2 0 false y\na/1 1 false\na/3 0 false \na/3 1 true\n"
		if got.String() != want || v2 <= v1 {
			t.Fatalf("got\n%swant\n%s", &got, want)
		}
		for i := range WatchChanges + 1 {
			if _, _, err := b.s.change(context.Background(), "n", Quota{}, []Op{put("a/x", fmt.Sprint(i))}, Memory); err != nil {
				t.Fatal(err)
			}
		}
		b.s.must(t, put("a/last", ""))
		list, gap, _ := w.take(WatchChanges, 1<<30)
		if !gap || len(list) == 0 || list[len(list)-1].Key != "a/last" {
			t.Fatal(gap, len(list))
		}
		w.close()
		if _, _, ended := w.take(1, 1); !ended {
			t.Fatal("it goes on")
		}
	})
}
