package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// common is what nodes share, in memory: a log of changes, as a stream that keeps the last value of each key.
type common struct {
	mu       sync.Mutex
	last     map[string]sharedChange
	revision uint64
	watching []func(string, []byte, uint64)
	lose     bool // answers: what was asked is done
	down     bool
	late     []func() // watchers are told when the test calls these, if hold is set
	hold     bool
	unready  bool // watches do not become ready
	refuse   error
}

// tell tells watchers of what was held back.
func (c *common) tell() {
	c.mu.Lock()
	late := c.late
	c.late, c.hold = nil, false
	c.mu.Unlock()
	for _, f := range late {
		f()
	}
}

func (c *common) Lease() time.Duration { return 4 * time.Second }

type sharedChange struct {
	value    []byte
	revision uint64
	stay     int64
}

func (c *common) Put(key string, value []byte, revision uint64, stay int64, done func(uint64, bool, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		go done(0, false, errors.New("down"))
		return
	case c.refuse != nil:
		go done(0, false, c.refuse)
		return
	case c.last[key].revision != revision:
		go done(0, false, nil)
		return
	}
	c.revision++
	at := c.revision
	c.last[key] = sharedChange{value, at, stay}
	for _, f := range c.watching {
		if c.hold {
			c.late = append(c.late, func() { f(key, value, at) })
			continue
		}
		f(key, value, at)
	}
	if c.lose {
		go done(0, false, errors.New("lost"))
		return
	}
	go done(at, true, nil)
}

func (c *common) Get(key string, done func([]byte, uint64, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		go done(nil, 0, errors.New("down"))
		return
	}
	x := c.last[key]
	go done(x.value, x.revision, nil)
}

func (c *common) Watch(each func(string, []byte, uint64), ready func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(c.last)) {
		each(key, c.last[key].value, c.last[key].revision)
	}
	if !c.unready {
		ready()
	}
	c.watching = append(c.watching, each)
	return func() {}
}

// forget removes what was removed or has ended, as the cluster does after a while.
func (c *common) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, key)
}

// sharing are stores of some nodes.
func sharing(t *testing.T, c *common, nodes int) (all []*shared, clock *host.VirtualClock) {
	t.Helper()
	return sharingAs(t, "b", c, nodes)
}

func sharingAs(t *testing.T, bundle string, c *common, nodes int) (all []*shared, clock *host.VirtualClock) {
	t.Helper()
	if c.last == nil {
		c.last = map[string]sharedChange{}
	}
	clock = host.NewVirtualClock(time.Unix(1e9, 0))
	for range nodes {
		s, err := openShared(&service.Env{Bundle: bundle, Clock: clock, Log: quiet(), Rand: func(b []byte) { _, _ = rand.Read(b) }, Shared: func(context.Context, string) (service.Shared, error) { return c, nil }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.close() })
		all = append(all, s)
	}
	return all, clock
}

func version(n uint64) *uint64 { return &n }

// One node sees what another has written, and a condition decides between the two.
func TestSharedBetweenNodes(t *testing.T) {
	c := &common{}
	all, clock := sharing(t, c, 2)
	a, b := all[0], all[1]
	ctx := t.Context()
	one := func(s *shared, op Op) (Result, error) {
		res, _, err := s.changeThen(ctx, "n", Quota{Keys: 4, Bytes: 1 << 13}, []Op{op}, Disk, func() {})
		if err != nil {
			return Result{}, err
		}
		return res[0], nil
	}
	code := func(_ Result, err error) service.Code { return service.CodeOf(err) }
	if _, err := a.read(ctx, "n", "k"); service.CodeOf(err) != service.NotFound {
		t.Error(err)
	}
	first, err := one(a, Op{Kind: OpPut, Key: "k", Value: []byte("x"), If: version(0)})
	if err != nil || first.Version == 0 {
		t.Fatal(first, err)
	}
	if e, err := b.read(ctx, "n", "k"); err != nil || string(e.Value) != "x" || e.Version != first.Version {
		t.Errorf("%+v, %v", e, err)
	}
	if got := code(one(b, Op{Kind: OpPut, Key: "k", Value: []byte("y"), If: version(0)})); got != service.Exists {
		t.Error(got)
	}
	second, err := one(b, Op{Kind: OpPut, Key: "k", Value: []byte("y"), If: &first.Version})
	if err != nil || second.Version <= first.Version {
		t.Fatal(second, err)
	}
	if got := code(one(a, Op{Kind: OpPut, Key: "k", Value: []byte("z"), If: &first.Version})); got != service.Conflict {
		t.Error(got)
	}
	if got := code(one(a, Op{Kind: OpCheck, Key: "k", If: &first.Version})); got != service.Conflict {
		t.Error(got)
	}
	if res, err := one(a, Op{Kind: OpDelete, Key: "k"}); err != nil || !res.Existed {
		t.Error(res, err)
	}
	if res, err := one(b, Op{Kind: OpDelete, Key: "k"}); err != nil || res.Existed {
		t.Error(res, err)
	}
	third, err := one(b, Op{Kind: OpPut, Key: "k", Value: []byte("again"), If: version(0)})
	if err != nil || third.Version <= second.Version {
		t.Error(third, err)
	}
	// It is forgotten that there was one: the next one is a new one.
	_, _ = one(a, Op{Kind: OpDelete, Key: "k"})
	c.forget(sharedKey("b", "n", "k"))
	if _, err := one(a, Op{Kind: OpPut, Key: "k", Value: []byte("new"), If: version(0)}); err != nil {
		t.Error(err)
	}
	// Both count, at the same time.
	var wait sync.WaitGroup
	var counted atomic.Int64
	for _, s := range all {
		for range 8 {
			wait.Go(func() {
				for range 5 {
					if _, err := one(s, Op{Kind: OpAdd, Key: "count", Delta: 1}); err != nil && service.CodeOf(err) != service.Busy {
						t.Error(err)
					} else if err == nil {
						counted.Add(1) // busy: nothing was written
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for over := false; !over; { // they pause
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
			clock.Advance(5 * time.Millisecond)
		}
	}
	if e, err := a.read(ctx, "n", "count"); err != nil || e.Count != counted.Load() || e.Count == 0 {
		t.Errorf("%+v, %v, and %d were counted", e, err, counted.Load())
	}
	if got := code(one(a, Op{Kind: OpAdd, Key: "k", Delta: 1})); got != service.Conflict {
		t.Error(got)
	}
	// What expires is gone when its time is over, and told of.
	w, _, err := b.hub.watch("n", "", true, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one(a, Op{Kind: OpPut, Key: "short", Value: []byte("x"), TTL: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if x := c.last[sharedKey("b", "n", "short")]; x.stay < 5 || x.stay > 120 {
		t.Errorf("the cluster keeps it for %d s", x.stay)
	}
	clock.Advance(6 * time.Second)
	if _, err := a.read(ctx, "n", "short"); service.CodeOf(err) != service.NotFound {
		t.Error(err)
	}
	list, gap, _ := w.take(10, 1<<20)
	if len(list) != 2 || gap || list[0].Kind != Put || string(list[0].Entry.Value) != "x" || !list[1].Expired {
		t.Errorf("%+v, gap %v", list, gap)
	}
	page, _, err := b.page(ctx, listing{ns: "n", values: true})
	if err != nil || len(page) != 2 || page[0].Key != "count" || page[1].Key != "k" {
		t.Errorf("%+v, %v", page, err)
	}
	if u, _ := b.used(ctx, "n"); u.Keys != 2 {
		t.Errorf("%+v", u)
	}
	// Bounds.
	for i := range 2 {
		if _, err := one(a, Op{Kind: OpPut, Key: fmt.Sprint(i), Value: []byte("x")}); err != nil {
			t.Error(err)
		}
	}
	if got := code(one(b, Op{Kind: OpPut, Key: "fifth"})); got != service.Quota {
		t.Error(got)
	}
	if got := code(one(b, Op{Kind: OpPut, Key: "0", Value: make([]byte, 1<<13)})); got != service.Quota {
		t.Error(got)
	}
	if got := code(one(b, Op{Kind: OpPut, Key: strings.Repeat("k", MaxSharedKey+1)})); got != service.TooLarge {
		t.Error(got)
	}
	if _, _, err := a.changeThen(ctx, "n", Quota{}, make([]Op, 2), Disk, func() {}); service.CodeOf(err) != service.BadRequest {
		t.Error(err)
	}
	// A node that comes later has all of it.
	c.forget(sharedKey("b", "n", "short"))
	later, _ := sharing(t, c, 1)
	if page, _, err := later[0].page(ctx, listing{ns: "n"}); err != nil || len(page) != 4 {
		t.Errorf("%+v, %v", page, err)
	}
}

// An answer that is lost says that nothing is known, and the entry says what has happened.
func TestSharedTrouble(t *testing.T) {
	c := &common{}
	all, _ := sharing(t, c, 1)
	s, ctx := all[0], t.Context()
	put := []Op{{Kind: OpPut, Key: "k", Value: []byte("x"), If: version(0)}}
	c.lose = true
	if _, _, err := s.changeThen(ctx, "n", Quota{}, put, Disk, func() {}); service.CodeOf(err) != service.Unavailable || !strings.Contains(err.Error(), "not known") {
		t.Error(err)
	}
	c.lose = false
	if e, err := s.read(ctx, "n", "k"); err != nil || string(e.Value) != "x" {
		t.Error(e, err)
	}
	c.down = true
	if _, err := s.read(ctx, "n", "k"); service.CodeOf(err) != service.Unavailable {
		t.Error(err)
	}
	if page, _, err := s.page(ctx, listing{ns: "n"}); err != nil || len(page) != 1 {
		t.Error("the copy is there", page, err)
	}
}

// What a member writes that none should is no entry, and does no harm.
func TestSharedOfOthers(t *testing.T) {
	c := &common{}
	all, _ := sharing(t, c, 1)
	s := all[0]
	for _, key := range []string{"n", "n.k", "b.n", "b.n.", "b..k", ".n.k", "b.N.k", "b.n.k.k", "b.n.~zz", "b.n.~6b", "b.n.~", "b." + strings.Repeat("n", 64) + ".k"} {
		if _, _, _, ok := parseSharedKey(key); ok {
			t.Errorf("%q is a key", key)
		}
		s.changed(key, []byte("x"), 1)
	}
	s.changed("b.n.k", []byte{9, 9, 9}, 2)
	s.changed("b.n.large", sharedValue(record{value: make([]byte, MaxValue+1)}), 3)
	if page, _, err := s.page(t.Context(), listing{ns: "n"}); err != nil || len(page) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	for _, key := range []string{"k", "ä/ö 1", "a.b", "~", "\x00"} {
		if of, ns, k, ok := parseSharedKey(sharedKey("b.1", "n-1", key)); !ok || of != "b.1" || ns != "n-1" || k != key {
			t.Errorf("%q: %q %q %v", key, ns, k, ok)
		}
	}
}

// Who counts with others pauses before it tries again, for a part of a time that doubles, which the host's dice choose.
func TestSharedPauses(t *testing.T) {
	c := &contended{common: &common{last: map[string]sharedChange{}}, left: 10}
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	dice := byte(0xff)
	s, err := openShared(&service.Env{Bundle: "b", Clock: clock, Log: quiet(), Shared: func(context.Context, string) (service.Shared, error) { return c, nil },
		Rand: func(b []byte) { // the longest
			clear(b)
			b[0], b[1], b[2], b[3] = dice, dice, dice, dice
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.close() }()
	done := make(chan error, 1)
	go func() {
		_, _, err := s.changeThen(t.Context(), "n", Quota{}, []Op{{Kind: OpAdd, Key: "count", Delta: 1}}, Disk, func() {})
		done <- err
	}()
	began := clock.Now()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if took := clock.Now().Sub(began); took < 10*time.Millisecond || took > time.Second {
				t.Errorf("ten attempts took %v", took)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			c.set(1000)
			if _, _, err := s.changeThen(ctx, "n", Quota{}, []Op{{Kind: OpAdd, Key: "count", Delta: 1}}, Disk, func() {}); err == nil {
				t.Error("who has gone is waited for")
			}
			return
		case <-time.After(time.Millisecond):
			clock.Advance(time.Millisecond)
		}
	}
}

// contended is written by others before each of the next writes.
type contended struct {
	*common
	few  sync.Mutex
	left int
}

func (c *contended) set(n int) {
	c.few.Lock()
	defer c.few.Unlock()
	c.left = n
}

func (c *contended) Put(key string, value []byte, revision uint64, stay int64, done func(uint64, bool, error)) {
	c.few.Lock()
	late := c.left > 0
	c.left--
	c.few.Unlock()
	if late {
		go done(0, false, nil)
		return
	}
	c.common.Put(key, value, revision, stay, done)
}

func FuzzSharedKey(f *testing.F) {
	for _, key := range []string{"b.n.k", "b.n.~6b", "a.b.c", "~", "b~2e.n.~ff~00"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if of, ns, key, ok := parseSharedKey(text); ok && sharedKey(of, ns, key) != text {
			t.Errorf("%q: %q %q", text, ns, key)
		}
		if _, err := sharedRecord([]byte(text), 7); err != nil && len(text) == 0 {
			t.Error(err)
		}
	})
}
