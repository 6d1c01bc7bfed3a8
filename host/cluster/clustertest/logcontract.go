package clustertest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// LogContract tests what the journal of keys needs of a log. logs are several ways to one. wait is as that of [Contract].
func LogContract(t *testing.T, logs []cluster.Log, wait func(func() bool) bool) {
	c := logContract{t, wait}
	a, b := logs[0], logs[len(logs)-1]
	if got := c.last(a, 3); got.at != 0 || got.b != nil {
		t.Fatalf("a shard without a fence has %+v", got)
	}
	first := c.at(func(done func(uint64, error)) { a.Fence("k.1", 3, []byte("one"), 0, done) })
	if first.err != nil || first.at == 0 {
		t.Fatalf("the first fence: %+v", first)
	}
	if got := c.at(func(done func(uint64, error)) { b.Fence("k.1", 3, []byte("other"), 0, done) }); !errors.Is(got.err, cluster.ErrFenced) {
		t.Errorf("a fence that does not know of the first: %+v", got)
	}
	if got := c.last(b, 3); got.at != first.at || string(got.b) != "one" {
		t.Errorf("the fence is %+v", got)
	}
	add := func(l cluster.Log, fence uint64, name, text string) answer {
		return c.at(func(done func(uint64, error)) { l.Append("k.1", 3, fence, name, []byte(text), done) })
	}
	at := first.at
	for i := range 300 {
		got := add(a, first.at, "ann~x", fmt.Sprint(i))
		if got.err != nil || got.at <= at {
			t.Fatalf("record %d: %+v after %d", i, got, at)
		}
		at = got.at
	}
	if got := add(a, first.at, "bob", "b"); got.err != nil {
		t.Errorf("%+v", got)
	}
	list := c.read(b, "ann~x", at)
	if len(list) != 300 || string(list[299].Record) != "299" || list[299].At != at {
		t.Fatalf("%d records, and the last one is %+v", len(list), list[len(list)-1])
	}
	if list := c.read(b, "eve", at); len(list) != 0 {
		t.Errorf("nobody has %+v", list)
	}
	second := c.at(func(done func(uint64, error)) { b.Fence("k.1", 3, []byte("two"), first.at, done) })
	if second.err != nil || second.at <= at {
		t.Fatalf("the second fence: %+v", second)
	}
	if got := add(a, first.at, "ann~x", "late"); !errors.Is(got.err, cluster.ErrFenced) {
		t.Errorf("a record behind another's fence: %+v", got)
	}
	spare := func(fence uint64, text string) answer {
		return c.at(func(done func(uint64, error)) { b.Spare("k.1", 3, fence, ":3", []byte(text), done) })
	}
	if got := spare(first.at, "late"); !errors.Is(got.err, cluster.ErrFenced) {
		t.Errorf("a record behind another's fence that gives room: %+v", got)
	}
	if got := spare(second.at, "x"); got.err != nil || got.at <= second.at {
		t.Errorf("a record that gives room: %+v", got)
	} else if list := c.read(a, ":3", got.at); len(list) != 1 || string(list[0].Record) != "x" {
		t.Errorf("of the list there are %d records", len(list))
	}
	large := string(bytes.Repeat([]byte("x"), 700<<10))
	got := add(b, second.at, "ann~x", large)
	if got.err != nil {
		t.Fatal(got.err)
	}
	replace := func(text string, after uint64) answer {
		return c.at(func(done func(uint64, error)) { b.Replace("k.1", "ann~x", []byte(text), after, done) })
	}
	if got := replace("all", at); !errors.Is(got.err, cluster.ErrFenced) {
		t.Errorf("what has changed is replaced: %+v", got)
	}
	if got = replace("all", got.at); got.err != nil {
		t.Fatal(got.err)
	}
	if list := c.read(a, "ann~x", got.at); len(list) != 1 || string(list[0].Record) != "all" {
		t.Errorf("%d records instead of the one", len(list))
	}
	if list := c.read(a, "bob", got.at); len(list) != 1 || string(list[0].Record) != "b" {
		t.Errorf("others have %+v", list)
	}
	c.lists(a)
	c.lists(b)
}

// lists wants the keys that the test before has written to be listed, in pages.
func (c logContract) lists(l cluster.Log) {
	c.t.Helper()
	third := c.at(func(done func(uint64, error)) { l.Fence("k.2", 1, []byte("x"), c.last2(l), done) })
	for _, text := range []string{"abc", "de"} {
		if third = c.at(func(done func(uint64, error)) { l.Append("k.2", 1, c.last2(l), "eve", []byte(text), done) }); third.err != nil {
			c.t.Fatal(third.err)
		}
	}
	list := func(q cluster.KeyQuery, want ...cluster.KeyInfo) {
		c.t.Helper()
		var text string
		if !c.wait(func() bool { // a copy may be behind
			x := c.once(func(done func(answer)) {
				l.List(q, func(p cluster.KeyPage, err error) { done(answer{page: p, err: err}) })
			})
			text = fmt.Sprintf("%+v, %v", x.page, x.err)
			if x.err != nil || len(x.page.Keys) != len(want) {
				return false
			}
			for i, k := range x.page.Keys {
				if k.Last == 0 || k.KeyID != want[i].KeyID || k.Records != want[i].Records && want[i].Records > 0 || k.Bytes != want[i].Bytes && want[i].Bytes > 0 {
					return false
				}
			}
			return x.page.More == (len(want) == q.Most)
		}) {
			c.t.Errorf("%+v: %s\nwant %+v", q, text, want)
		}
	}
	key := func(kind, name string, records int, bytes int64) cluster.KeyInfo {
		return cluster.KeyInfo{KeyID: cluster.KeyID{Kind: kind, Name: name}, Records: records, Bytes: bytes}
	}
	ann, bob, eve := key("k.1", "ann~x", 1, 3), key("k.1", "bob", 1, 1), key("k.2", "eve", 0, 0)
	list(cluster.KeyQuery{Most: 9}, ann, bob, eve)
	list(cluster.KeyQuery{Most: 9, Kind: "k.1"}, ann, bob)
	list(cluster.KeyQuery{Most: 9, Kind: "k.1", Prefix: "ann~"}, ann)
	list(cluster.KeyQuery{Most: 9, Kind: "k.1", Prefix: "x"})
	list(cluster.KeyQuery{Most: 9, Kind: "k"})
	list(cluster.KeyQuery{Most: 2}, ann, bob)
	list(cluster.KeyQuery{Most: 2, After: bob.KeyID}, eve)
	list(cluster.KeyQuery{Most: 1, Kind: "k.1", After: cluster.KeyID{Kind: "k.1", Name: "a"}}, ann)
}

// last2 is where the fence of the second kind is.
func (c logContract) last2(l cluster.Log) uint64 {
	c.t.Helper()
	for range 500 {
		x := c.once(func(done func(answer)) {
			l.Last("k.2", 1, func(_ []byte, at uint64, err error) { done(answer{at: at, err: err}) })
		})
		if x.err == nil {
			return x.at
		}
	}
	c.t.Fatal("its fence is not known")
	return 0
}

type logContract struct {
	t    *testing.T
	wait func(func() bool) bool
}

type answer struct {
	b    []byte
	at   uint64
	list []cluster.LogEntry
	page cluster.KeyPage
	err  error
}

// once has something done, and waits for the first answer.
func (c logContract) once(f func(done func(answer))) answer {
	c.t.Helper()
	var mu sync.Mutex
	var got *answer
	f(func(x answer) {
		mu.Lock()
		defer mu.Unlock()
		if got == nil {
			got = &x
		}
	})
	if !c.wait(func() bool { mu.Lock(); defer mu.Unlock(); return got != nil }) {
		c.t.Fatal("no answer")
	}
	return *got
}

// at tries again while the log says that it is busy.
func (c logContract) at(f func(done func(uint64, error))) (x answer) {
	c.t.Helper()
	for range 200 {
		x = c.once(func(done func(answer)) { f(func(at uint64, err error) { done(answer{at: at, err: err}) }) })
		if !errors.Is(x.err, cluster.ErrBusy) {
			break
		}
	}
	return x
}

// last tries again while the log does not know of itself yet.
func (c logContract) last(l cluster.Log, shard int) (x answer) {
	c.t.Helper()
	for range 500 {
		x = c.once(func(done func(answer)) {
			l.Last("k.1", shard, func(b []byte, at uint64, err error) { done(answer{b: b, at: at, err: err}) })
		})
		if x.err == nil {
			return x
		}
	}
	c.t.Fatal(x.err)
	return x
}

// read tries again while the copy that answers is behind.
func (c logContract) read(l cluster.Log, name string, least uint64) (list []cluster.LogEntry) {
	c.t.Helper()
	for range 500 {
		x := c.once(func(done func(answer)) {
			l.Read("k.1", 3, name, least, func(list []cluster.LogEntry, err error) { done(answer{list: list, err: err}) })
		})
		if x.err == nil {
			return x.list
		}
	}
	c.t.Fatal("it cannot be read")
	return nil
}
