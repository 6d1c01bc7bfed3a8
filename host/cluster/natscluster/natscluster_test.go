package natscluster

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// The library's variables are there, and have the values that this package knows.
func TestElections(t *testing.T) {
	for i, v := range timing {
		if found[i] != v.theirs {
			t.Errorf("%s was %v, not %v: the library has changed; is it still what the elections wait for?", v.name, found[i], v.theirs)
		}
	}
}

// freeAddress is an address of this machine of which the port after it is free, too.
func freeAddress(t testing.TB) string {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		after, err := net.Listen("tcp", next(address))
		_ = l.Close()
		if err == nil {
			_ = after.Close()
			return address
		}
	}
	t.Fatal("no two ports are free")
	return ""
}

// events are those of some clusters.
type events struct {
	mu  sync.Mutex
	all []cluster.Event
}

func (e *events) add(x cluster.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, x)
}

func (e *events) has(k cluster.EventKind, text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		if x.Kind == k && strings.Contains(x.Text, text) {
			return true
		}
	}
	return false
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.all)
}

// founded makes the folders of nodes of which the first some keep the directory.
func founded(t testing.TB, keepers, nodes int) (ids []*Identity) {
	d := Description{Name: "test"}
	for i := range keepers {
		d.Keepers = append(d.Keepers, Keeper{fmt.Sprint("n", i), freeAddress(t)})
	}
	dir := t.TempDir()
	first, err := Init(filepath.Join(dir, "n0"), "n0", d)
	if err != nil {
		t.Fatal(err)
	}
	ids = []*Identity{first}
	for i := 1; i < nodes; i++ {
		id, err := first.Sibling(filepath.Join(dir, fmt.Sprint("n", i)), fmt.Sprint("n", i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// opened opens all at once, since a majority is needed, and closes them at the end.
func opened(t testing.TB, ids []*Identity, e *events) []*Cluster {
	all := make([]*Cluster, len(ids))
	errs := make([]error, len(ids))
	var wait sync.WaitGroup
	for i, id := range ids {
		wait.Go(func() { all[i], errs[i] = Open(within(t, 60*time.Second), id, Options{Events: e.add}) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("node %d: %v; events: %v", i, err, e)
		}
	}
	t.Cleanup(func() {
		for _, c := range all {
			if c != nil {
				c.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return all
}

func eventually(done func() bool) bool {
	for range 4000 {
		if done() {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return done()
}

// contract is clustertest.Contract on a cluster of some keepers, and nodes besides.
func contract(t *testing.T, keepers int) {
	clustertest.Contract(t, func(t *testing.T, n int) (ends []clustertest.End) {
		ids := founded(t, keepers, n)
		for i, c := range opened(t, ids, &events{}) {
			ends = append(ends, clustertest.End{Directory: c.Directory(), Links: c.Links(), Member: cluster.Member{
				Number: uint16(i + 1), Born: uint64(i + 1), Name: ids[i].Node, Identity: ids[i].Certificate(),
			}})
		}
		return ends
	}, eventually)
}

func TestContractOfOneKeeper(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	contract(t, 1)
}

func TestContractOfThreeKeepers(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	if testing.Short() {
		t.Skip("three servers five times")
	}
	contract(t, 3)
}
