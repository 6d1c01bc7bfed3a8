//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// books are what clients know of books that a cluster keeps.
type books struct {
	*field
	mu     sync.Mutex
	stored map[string][]int64 // numbers whose storing was confirmed
	next   int64
	failed int
}

// write has a node store a number.
func (b *books) write(p *process, key string) bool { return b.put(p, key).Kind == "reply" }

// put is write, and returns the answer.
func (b *books) put(p *process, key string) outcome {
	b.mu.Lock()
	b.next++
	n := b.next
	b.mu.Unlock()
	a := <-p.put(key, n)
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.Kind != "reply" {
		b.failed++
		return a
	}
	b.stored[key] = append(b.stored[key], n)
	return a
}

// check reads a book until it answers, and says what is missing or there twice.
func (b *books) check(p *process, key string) {
	b.t.Helper()
	b.mu.Lock()
	stored := slices.Clone(b.stored[key])
	b.mu.Unlock()
	var has []int64
	began := time.Now()
	for {
		a := <-p.put(key, "read")
		if a.Kind == "reply" {
			if err := json.Unmarshal(a.Reply, &has); err != nil {
				b.t.Error(err)
			}
			break
		}
		if time.Since(began) > patience {
			b.t.Errorf("%s by %s: %s %s", key, p.name, a.Kind, a.Reason)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	seen := map[int64]bool{}
	for _, n := range has {
		if seen[n] {
			b.t.Errorf("%s has %d twice: %v", key, n, has)
		}
		seen[n] = true
	}
	for _, n := range stored {
		if !seen[n] {
			b.t.Errorf("%s has lost %d, which was confirmed: %v", key, n, has)
		}
	}
}

// fieldOfBooks starts n nodes of a bundle whose modules are those of the test and book.wasm, which keeps events.
func fieldOfBooks(t *testing.T, n int, modules, actors string) *field {
	t.Helper()
	code, err := guesttest.Build("testdata/book")
	if err != nil {
		t.Fatal(err)
	}
	f := fieldOf(t, n, "wasmactors: 1\nname: field\nmodules: "+modules+"\ncluster: {}\nactors:\n"+actors)
	if err := os.WriteFile(filepath.Join(f.bundle, "book.wasm"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.nodes {
		p.args = []string{"--allow", "cluster=field"}
	}
	f.start(f.nodes...)
	return f
}

// Three processes, whose keys keep events. One is killed while all write, and comes back: what was confirmed is there, once, on the
// nodes that have its keys by then, and on the node that has got some back.
func TestKeysThatAreKept(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three processes for half a minute")
	}
	f := fieldOfBooks(t, 3, "{m: {wasm: book.wasm}}",
		"  regs: {type: m/book, durable: events, keyed: {scope: cluster, shards: 16, idle: 10m}}\n  one: {type: m/book, durable: events, singleton: {}}\n")
	b := &books{field: f, stored: map[string][]int64{}}
	keys := append(someKeys(12), "/user/one")
	for _, key := range keys {
		for range 3 {
			b.write(f.nodes[0], key)
		}
		b.check(f.nodes[1], key)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var mu sync.Mutex
	pause, last := map[string]time.Duration{}, map[string]time.Time{}
	for i, key := range keys {
		wait.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				began := time.Now()
				if b.write(f.nodes[1+n%2], key) {
					mu.Lock()
					if at, ok := last[key]; ok {
						pause[key] = max(pause[key], time.Since(at))
					}
					last[key] = time.Now()
					mu.Unlock()
				}
				time.Sleep(max(0, 20*time.Millisecond-time.Since(began)))
			}
		})
	}
	time.Sleep(time.Second)
	f.nodes[0].kill()
	time.Sleep(lease + 4*time.Second)
	cancel()
	wait.Wait()
	longest := time.Duration(0)
	for _, d := range pause {
		longest = max(longest, d)
	}
	stored := 0
	for _, all := range b.stored {
		stored += len(all)
	}
	t.Logf("%d numbers are stored, %d were refused; the longest pause of a key is %v", stored, b.failed, longest.Round(10*time.Millisecond))
	if longest > 3*time.Second+slack {
		t.Errorf("a key of the killed node has paused for %v", longest)
	}
	for i, key := range keys {
		b.check(f.nodes[1+i%2], key)
	}
	f.start(f.nodes[0])
	for _, key := range keys {
		b.write(f.nodes[0], key)
		b.check(f.nodes[0], key)
	}
	if t.Failed() {
		t.Log(fmt.Sprint(b.stored))
	}
}
