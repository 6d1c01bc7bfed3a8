//go:build unix

package main

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/thorough"
)

// lease is that of the clusters of these tests, the shortest one that is embedded.
const lease = 4 * time.Second

// Three processes, each of which keeps the directory. Each key has one life in the cluster, whoever asks. One is killed: what is
// under way to it ends within a second, and its keys answer again a second after the lease. It comes back and gets shards.
func TestANodeIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("three processes for half a minute")
	}
	f := fieldOf(t, 3, ofRegisters)
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	first := f.settle(keys)
	nodes := map[uint16]int{}
	for _, l := range first {
		nodes[l.node]++
	}
	if len(nodes) < 3 {
		t.Errorf("all keys are on %v", nodes)
	}
	for n, p := range f.nodes {
		for _, key := range append(keys, "/user/one") {
			if a, l := p.ask(key, 1000+n); a.Kind != "reply" || l.id != first[key].id {
				t.Errorf("%s by %s: %s %s, life %+v; it was %+v", key, p.name, a.Kind, a.Reason, l, first[key])
			}
		}
	}
	victim := f.nodes[0]
	number := f.numberOf(victim)
	var lost, held []string
	for _, key := range append(keys, "/user/one") {
		if first[key].node == number {
			lost = append(lost, key)
		}
	}
	if len(lost) == 0 {
		t.Fatalf("node %d has no key: %v", number, first)
	}
	// Questions that are under way at the kill.
	var under []<-chan outcome
	for _, key := range lost {
		under = append(under, f.nodes[1].put(key, "hold"))
		held = append(held, key)
	}
	time.Sleep(200 * time.Millisecond)
	victim.kill()
	killed := time.Now()
	for i, c := range under {
		a := <-c
		if took := time.Since(killed); a.Kind == "reply" || !strings.Contains(a.Reason, "node") || took > time.Second+100*time.Millisecond {
			t.Errorf("%s was under way: %s %q after %v", held[i], a.Kind, a.Reason, took)
		}
	}
	// A question after that ends within a second, too, whatever it ends with.
	asked := time.Now()
	a, _ := f.nodes[2].ask(lost[0], "read")
	if took := time.Since(asked); a.Kind != "reply" && took > time.Second+100*time.Millisecond {
		t.Errorf("a question to the killed node: %s %q after %v", a.Kind, a.Reason, took)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	longest := time.Duration(0)
	for _, key := range lost {
		wait.Go(func() {
			f.until(f.nodes[1], key, func(l life) bool { return l.id != first[key].id })
			mu.Lock()
			longest = max(longest, time.Since(killed))
			mu.Unlock()
		})
	}
	for _, key := range keys { // those of the others go on
		if first[key].node == number {
			continue
		}
		if a, l := f.nodes[1].ask(key, "read"); a.Kind != "reply" || l.id != first[key].id {
			t.Errorf("%s is of another node: %s %q %+v, was %+v", key, a.Kind, a.Reason, l, first[key])
		}
	}
	wait.Wait()
	t.Logf("the keys of the killed node answer %v after the kill", longest.Round(10*time.Millisecond))
	if longest > lease+time.Second+slack {
		t.Errorf("its keys answer after %v, the lease is %v", longest, lease)
	}
	victim.launch()
	f.start()
	<-victim.fresh
	for _, key := range keys {
		f.until(victim, key, func(life) bool { return true })
	}
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
}

// slack is for a machine that is busy with other tests.
const slack = time.Second

// A process that stands still for less than the lease goes on; one that stands still for longer has lost its keys, and acts no more
// as who it was: it joins again under another number.
func TestANodeStandsStill(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("three processes for half a minute: make thorough")
	}
	f := fieldOf(t, 3, ofRegisters)
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	first := f.settle(keys)
	still := f.nodes[1]
	number := f.numberOf(still)
	still.signal(syscall.SIGSTOP)
	time.Sleep(lease / 2)
	still.signal(syscall.SIGCONT)
	for _, key := range keys {
		f.until(f.nodes[0], key, func(l life) bool { return l.id == first[key].id })
	}
	for _, p := range f.nodes {
		if said := p.said(); strings.Contains(said, "cluster: gone") || strings.Contains(said, "cluster: lost") {
			t.Errorf("after a pause below the lease %s says:\n%s", p.name, said)
		}
	}
	// Questions by the one that stands still, which it finds when it goes on.
	still.signal(syscall.SIGSTOP)
	var late []<-chan outcome
	var mine []string
	for _, key := range keys {
		if first[key].node == number {
			mine = append(mine, key)
			late = append(late, still.put(key, 7))
		}
	}
	stopped := time.Now()
	for _, key := range mine {
		f.until(f.nodes[0], key, func(l life) bool { return l.id != first[key].id })
	}
	t.Logf("the keys of the node that stands still answer elsewhere after %v", time.Since(stopped).Round(10*time.Millisecond))
	still.signal(syscall.SIGCONT)
	for i, c := range late {
		if a := <-c; a.Kind == "reply" && lifeOf(t, a).id == first[mine[i]].id {
			t.Errorf("%s: the life before has answered after another began", mine[i])
		}
	}
	for _, key := range keys {
		f.until(still, key, func(l life) bool { return l.id != 0 && (first[key].node != number || l.id != first[key].id) })
	}
	if !strings.Contains(still.said(), "cluster: lost") {
		t.Errorf("it does not say that it was lost:\n%s", still.said())
	}
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
}
