package natscluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// What a service shares is the same on a keeper and on a node that keeps nothing, and what has a time is forgotten.
func TestShared(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	if _, err := all[0].Shared(t.Context(), "other", "n"); err == nil {
		t.Error("any service shares something")
	}
	var stores []service.Shared
	var mu sync.Mutex
	seen := [2]map[string]string{{}, {}}
	ready := [2]bool{}
	for i, c := range all {
		s, err := c.Shared(within(t, 20*time.Second), "kv", "n")
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
		defer s.Watch(func(key string, value []byte, at uint64) {
			mu.Lock()
			defer mu.Unlock()
			seen[i][key] = fmt.Sprint(string(value), at)
		}, func() {
			mu.Lock()
			defer mu.Unlock()
			ready[i] = true
		})()
	}
	put := func(s service.Shared, key, value string, revision uint64, stay int64) (uint64, bool, error) {
		type outcome struct {
			at  uint64
			ok  bool
			err error
		}
		c := make(chan outcome, 1)
		var b []byte
		if value != "" {
			b = []byte(value)
		}
		s.Put(key, b, revision, stay, func(at uint64, ok bool, err error) { c <- outcome{at, ok, err} })
		o := <-c
		return o.at, o.ok, o.err
	}
	get := func(s service.Shared, key string) (string, uint64) {
		c := make(chan string, 1)
		var at uint64
		s.Get(key, func(value []byte, revision uint64, err error) {
			if err != nil {
				t.Error(err)
			}
			at = revision
			c <- string(value)
		})
		return <-c, at
	}
	first, ok, err := put(stores[1], "n.k", "x", 0, 0)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if v, at := get(stores[0], "n.k"); v != "x" || at != first {
		t.Error(v, at)
	}
	if _, ok, err := put(stores[0], "n.k", "y", 0, 0); ok || err != nil {
		t.Error(ok, err)
	}
	second, ok, err := put(stores[0], "n.k", "", first, 3600)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if v, at := get(stores[1], "n.k"); v != "" || at != second {
		t.Error("it was removed", v, at)
	}
	if _, ok, err := put(stores[1], "n.k", "z", second, 0); !ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := put(stores[0], "n.short", "s", 0, 1); !ok || err != nil {
		t.Error(ok, err)
	}
	if !eventually(func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ready[0] && ready[1] && len(seen[0]) == 2 && fmt.Sprint(seen[0]) == fmt.Sprint(seen[1])
	}) {
		t.Errorf("they see %v", seen)
	}
	if !eventually(func() bool { _, at := get(stores[0], "n.short"); return at == 0 }) {
		t.Error("it is not forgotten")
	}
	if _, ok, err := put(stores[1], "n.short", "again", 0, 0); !ok || err != nil {
		t.Error(ok, err)
	}
	if _, _, err := put(stores[0], "no key!", "x", 0, 0); err == nil {
		t.Error("any key is one")
	}
}
