package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// End is what one node stands on.
type End struct {
	Directory cluster.Directory
	Links     cluster.Links
	Member    cluster.Member // as others see it
}

// Contract tests what nodes need of a directory and of links. ends makes some that are connected. wait lets time go by
// until a condition holds, and returns false if it does not for long.
func Contract(t *testing.T, ends func(t *testing.T, n int) []End, wait func(func() bool) bool) {
	c := contract{wait}
	for name, f := range map[string]func(*testing.T, []End){
		"compare and set": c.put, "one order for all": c.order, "packets": c.packets, "many changes": c.many, "stops": c.stops,
	} {
		t.Run(name, func(t *testing.T) { f(t, ends(t, 3)) })
	}
}

type contract struct{ wait func(func() bool) bool }

// put puts, and returns what was answered first.
func (c contract) put(t *testing.T, ends []End) {
	first := c.change(t, ends[0], "shard.a1", "x", 0)
	if first.err != nil || first.at == 0 {
		t.Fatalf("a new key: %+v", first)
	}
	if got := c.change(t, ends[1], "shard.a1", "y", 0); !errors.Is(got.err, cluster.ErrConflict) {
		t.Errorf("a key that exists, as a new one: %+v", got)
	}
	if got := c.change(t, ends[1], "shard.a2", "y", first.at); !errors.Is(got.err, cluster.ErrConflict) {
		t.Errorf("a new key, with another's revision: %+v", got)
	}
	second := c.change(t, ends[1], "shard.a1", "y", first.at)
	if second.err != nil || second.at <= first.at {
		t.Errorf("at its revision: %+v after %+v", second, first)
	}
	if got := c.change(t, ends[0], "shard.a1", "z", first.at); !errors.Is(got.err, cluster.ErrConflict) {
		t.Errorf("at the revision before: %+v", got)
	}
	if got := c.change(t, ends[2], "shard.a2", "", 0); got.err != nil || got.at <= second.at {
		t.Errorf("revisions grow over all keys: %+v after %+v", got, second)
	}
}

type putAnswer struct {
	at  uint64
	err error
}

func (c contract) change(t *testing.T, e End, key, value string, revision uint64) putAnswer {
	t.Helper()
	var mu sync.Mutex
	var got *putAnswer
	e.Directory.Put(key, []byte(value), revision, func(at uint64, err error) {
		mu.Lock()
		defer mu.Unlock()
		if got == nil {
			got = &putAnswer{at, err}
		}
	})
	if !c.wait(func() bool { mu.Lock(); defer mu.Unlock(); return got != nil }) {
		t.Fatal("no answer")
	}
	return *got
}

// log is what a watch was told.
type log struct {
	mu  sync.Mutex
	all []cluster.Entry
}

func (l *log) each(e cluster.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, cluster.Entry{Key: e.Key, Value: slices.Clone(e.Value), Revision: e.Revision})
}

func (l *log) last(key string) (e cluster.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.all {
		if x.Key == key {
			e = x
		}
	}
	return e
}

func (c contract) order(t *testing.T, ends []End) {
	before := c.change(t, ends[0], "shard.b1", "before", 0)
	logs := make([]log, len(ends))
	for i := range ends {
		defer ends[i].Directory.Watch(logs[i].each)()
	}
	revision := before.at
	for i := range 20 {
		got := c.change(t, ends[i%len(ends)], "shard.b1", fmt.Sprint(i), revision)
		if got.err != nil {
			t.Fatal(got.err)
		}
		revision = got.at
	}
	for i := range logs {
		if !c.wait(func() bool { return logs[i].last("shard.b1").Revision == revision }) {
			t.Fatalf("end %d was not told of the last change, but of %+v", i, logs[i].last("shard.b1"))
		}
		at := uint64(0)
		for _, e := range logs[i].all {
			if e.Revision <= at {
				t.Errorf("end %d: revision %d after %d", i, e.Revision, at)
			}
			at = e.Revision
		}
		if got := string(logs[i].last("shard.b1").Value); got != "19" {
			t.Errorf("end %d: %q", i, got)
		}
	}
}

// many has all change one key at once: each change that was confirmed is one step.
func (c contract) many(t *testing.T, ends []End) {
	const each = 15
	var mu sync.Mutex
	won := map[uint64]bool{}
	left := each * len(ends)
	logs := make([]log, len(ends))
	for i, e := range ends {
		stop := e.Directory.Watch(logs[i].each)
		defer stop()
		var try func(n int)
		try = func(n int) {
			e.Directory.Put("shard.c1", fmt.Appendf(nil, "%d %d", i, n), logs[i].last("shard.c1").Revision, func(at uint64, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					if won[at] {
						t.Errorf("two changes have revision %d", at)
					}
					won[at] = true
				}
				if left--; n+1 < each {
					try(n + 1)
				}
			})
		}
		try(0)
	}
	if !c.wait(func() bool { mu.Lock(); defer mu.Unlock(); return left <= 0 }) {
		t.Fatal("some have no answer")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(won) == 0 {
		t.Error("nobody could change the key")
	}
	last := slices.Max(slices.Collect(keysOf(won)))
	for i := range logs {
		if !c.wait(func() bool { return logs[i].last("shard.c1").Revision == last }) {
			t.Errorf("end %d has seen %+v last, not %d", i, logs[i].last("shard.c1"), last)
		}
	}
}

func keysOf(m map[uint64]bool) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (c contract) packets(t *testing.T, ends []End) {
	type packet struct {
		from uint16
		b    []byte
	}
	var mu sync.Mutex
	got := make([][]packet, len(ends))
	for i, e := range ends {
		if e.Links.MaxPacket() < cluster.MinPacket {
			t.Errorf("packets of %d bytes", e.Links.MaxPacket())
		}
		e.Links.Receive(func(from uint16, b []byte) {
			mu.Lock()
			defer mu.Unlock()
			got[i] = append(got[i], packet{from, slices.Clone(b)})
		})
		for _, m := range ends {
			if l, ok := e.Links.(cluster.Introducer); ok {
				l.Introduce(m.Member)
			}
		}
	}
	large := bytes.Repeat([]byte{7}, ends[0].Links.MaxPacket())
	ends[0].Links.Send(ends[1].Member.Number, []byte("a"))
	ends[0].Links.Send(ends[1].Member.Number, large)
	ends[2].Links.Send(ends[1].Member.Number, []byte("b"))
	ends[1].Links.Send(999, []byte("nobody"))
	arrived := func() bool { mu.Lock(); defer mu.Unlock(); return len(got[1]) >= 3 }
	all := c.wait(arrived)
	mu.Lock()
	if !all {
		t.Errorf("%d packets of 3 have arrived", len(got[1]))
		for _, p := range got[1] {
			t.Errorf("from %d: %.60q", p.from, p.b)
		}
	}
	defer mu.Unlock()
	for _, p := range got[1] {
		ok := false
		switch p.from {
		case ends[0].Member.Number:
			ok = string(p.b) == "a" || bytes.Equal(p.b, large)
		case ends[2].Member.Number:
			ok = string(p.b) == "b"
		}
		if !ok {
			t.Errorf("%d bytes of node %d", len(p.b), p.from)
		}
	}
	if len(got[0])+len(got[2]) != 0 {
		t.Errorf("others have got packets: %d, %d", len(got[0]), len(got[2]))
	}
}

func (c contract) stops(t *testing.T, ends []End) {
	var stopped, on log
	stop := ends[0].Directory.Watch(stopped.each)
	defer ends[0].Directory.Watch(on.each)()
	first := c.change(t, ends[1], "shard.d1", "1", 0)
	if !c.wait(func() bool { return stopped.last("shard.d1").Revision == first.at }) {
		t.Fatal("a watch was not told")
	}
	stop()
	second := c.change(t, ends[1], "shard.d1", "2", first.at)
	if !c.wait(func() bool { return on.last("shard.d1").Revision == second.at }) {
		t.Fatal("the other watch was not told")
	}
	if stopped.last("shard.d1").Revision != first.at {
		t.Error("a watch that was stopped was told")
	}
}
