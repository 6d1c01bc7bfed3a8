//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/internal/guesttest"
)

// release is a program of an earlier revision, and the guests of its tests.
type release struct{ exe, register, book string }

// releaseOf builds what a revision has, from the history of this clone. A clone without it has the test left out.
func releaseOf(t *testing.T, revision string) release {
	t.Helper()
	if out, err := exec.Command("git", "rev-parse", "--verify", "--quiet", revision+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("revision %s is not here, so there is no release to begin with: a clone with history is needed, as git clone makes it (%v %s)", revision, err, out)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		if name != "git" {
			cmd.Dir = dir
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	tree := filepath.Join(dir, "tree.tar")
	run("git", "-C", "../..", "archive", "--format=tar", "-o", tree, revision)
	run("tar", "-xf", tree)
	r := release{exe: filepath.Join(dir, "wasmactors")}
	run("go", "build", "-o", r.exe, "./cmd/wasmactors")
	for guest, to := range map[string]*string{"register": &r.register, "book": &r.book} {
		code, err := guesttest.BuildWith(guesttest.Go, filepath.Join(dir, "cmd/wasmactors/testdata", guest))
		if *to = filepath.Join(dir, guest+".wasm"); err == nil {
			err = os.WriteFile(*to, code, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Nodes of a release are replaced, one after the other, by those of this tree, with the same bundle and its guests. All the time keys are asked
// and events are written, by each node that is not replaced at the moment. No question fails, no event is lost or there twice, and no key
// has two lives at a time, also when the last node of the release has ended.
func TestARollFromARelease(t *testing.T) {
	revisions := strings.Fields(os.Getenv("WASMACTORS_RELEASES"))
	if len(revisions) == 0 {
		t.Skip("it builds earlier revisions: make cluster-release")
	}
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) { rollFrom(t, releaseOf(t, revision)) })
	}
}

func rollFrom(t *testing.T, old release) {
	f := fieldOf(t, 3, "wasmactors: 1\nname: field\nmodules: {m: {wasm: register.wasm}, b: {wasm: book.wasm}}\ncluster: {}\nactors:\n"+
		"  regs: {type: m/register, keyed: {scope: cluster, shards: 64, idle: 10m}}\n"+
		"  one: {type: m/register, singleton: {}}\n"+
		"  books: {type: b/book, durable: events, keyed: {scope: cluster, shards: 16, idle: 10m, remember: true}}\n")
	for from, to := range map[string]string{old.register: "register.wasm", old.book: "book.wasm"} {
		if err := os.Rename(from, filepath.Join(f.bundle, to)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range f.nodes {
		p.exe, p.args = old.exe, []string{"--allow", "cluster=field"}
	}
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	f.settle(keys)
	b := &books{field: f, stored: map[string][]int64{}}
	var wait sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	away := make([]sync.RWMutex, len(f.nodes)) // held while a node is replaced
	var asked, failed atomic.Int64
	for i, p := range f.nodes {
		load := func(ask func(n int) (outcome, bool)) {
			wait.Go(func() {
				for n := i; ctx.Err() == nil; n++ {
					away[i].RLock()
					if asked.Add(1); ctx.Err() == nil {
						if a, ok := ask(n); !ok && failed.Add(1) < 20 {
							t.Errorf("%.2f s: by %s: %s %s", time.Since(f.began).Seconds(), p.name, a.Kind, a.Reason)
						}
					}
					away[i].RUnlock()
					time.Sleep(3 * time.Millisecond)
				}
			})
		}
		load(func(n int) (outcome, bool) {
			a, _ := p.ask(append(keys, "/user/one")[n%(len(keys)+1)], n)
			return a, a.Kind == "reply"
		})
		load(func(n int) (outcome, bool) {
			a := b.put(p, fmt.Sprintf("/user/books/k%d", n%12))
			return a, a.Kind == "reply"
		})
	}
	for i, p := range f.nodes {
		time.Sleep(2 * time.Second)
		away[i].Lock()
		if code, stdout, stderr := try(t, context.Background(), "", "cluster", "drain", "--bundle", fmt.Sprint(p.cmd.Process.Pid)); code != 0 {
			t.Fatalf("%s is not drained: %d %s%s", p.name, code, stdout, stderr)
		}
		p.signal(syscall.SIGTERM)
		select {
		case <-p.over:
		case <-time.After(patience):
			t.Fatalf("%s does not end", p.name)
		}
		p.exe = ""
		f.start(p)
		f.until(p, keys[i], func(life) bool { return true })
		away[i].Unlock()
		t.Logf("%.2f s: %s is of this tree; %d questions, of which %d have failed", time.Since(f.began).Seconds(), p.name, asked.Load(), failed.Load())
	}
	time.Sleep(3 * time.Second)
	stop()
	wait.Wait()
	f.settle(keys) // each node has keys again
	stored := 0
	for key, all := range b.stored {
		stored += len(all)
		for _, p := range f.nodes {
			b.check(p, key)
		}
	}
	t.Logf("%d numbers are stored, none is lost; %d questions, of which %d have failed", stored, asked.Load(), failed.Load())
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
	if failed.Load() > 0 || stored == 0 {
		t.Errorf("%d questions have failed, %d numbers are stored", failed.Load(), stored)
	}
}
