//go:build unix

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster/natscluster"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// partable is a cluster of three nodes of which one, far, can be cut off from the others, in both directions.
func partable(t *testing.T) (f *field, far *process, cut func(bool)) {
	t.Helper()
	f = fieldOf(t, 1, ofRegisters)
	f.nodes = nil
	free := freePorts(t, 6)
	one, two, real, three, toOne, toTwo := free[0], free[1], free[2], free[3], free[4], free[5]
	f.found(natscluster.Description{Name: "test", Keepers: []natscluster.Keeper{{Name: "n1", Address: one}, {Name: "n2", Address: two}, {Name: "n3", Address: three}}})
	var proxies []*proxy
	for at, to := range map[string]string{three: real, toOne: one, toTwo: two} {
		proxies = append(proxies, proxyOf(t, at, to), proxyOf(t, after(at), after(to)))
	}
	far = f.nodes[2]
	file := filepath.Join(far.folder, "cluster.json")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.NewReplacer(one, toOne, two, toTwo).Replace(string(text))), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(f.bundle, "far.yaml"), []byte(strings.Replace(ofRegisters, "cluster: {}", "cluster: {listen: \""+real+"\"}", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	far.file, far.args = "far.yaml", []string{"--allow", "listen=" + real}
	return f, far, func(on bool) {
		for _, p := range proxies {
			p.set(on)
		}
	}
}

// One of three nodes is cut off: what it can reach, and by what it is reached, are proxies. Its keys begin elsewhere after the lease,
// and it acts no more by then. When the network is whole again it joins under another number.
func TestANodeIsCutOff(t *testing.T) {
	if !thorough.Enabled {
		t.Skip("three processes for half a minute: make thorough")
	}
	f, far, cut := partable(t)
	a := f.nodes[0]
	f.start(f.nodes...)
	keys := someKeys(everywhere)
	first := f.settle(keys)
	number := f.numberOf(far)
	ctx, stop := context.WithCancel(context.Background())
	wait := f.load(ctx, keys, 20*time.Millisecond)
	cut(true)
	began := time.Now()
	for _, key := range keys {
		if first[key].node == number {
			f.until(a, key, func(l life) bool { return l.node != number })
		}
	}
	took := time.Since(began)
	t.Logf("the keys of the node that is cut off answer elsewhere after %v", took.Round(10*time.Millisecond))
	if took > lease+2*time.Second+slack {
		t.Errorf("that took %v", took)
	}
	var late []<-chan outcome // it answers them when it has joined again
	for _, key := range keys {
		late = append(late, far.put(key, "read"))
	}
	cut(false)
	for i, c := range late {
		if o := <-c; o.Kind == "reply" && lifeOf(t, o).node == number {
			t.Errorf("%s is answered by the node that was cut off", keys[i])
		}
	}
	for _, key := range keys {
		f.until(far, key, func(l life) bool { return l.node != number })
	}
	stop()
	answered, failed := wait()
	t.Logf("%d questions were answered, %d failed", answered, failed)
	for _, w := range f.seen.overlaps() {
		t.Error(w)
	}
}

// after is the address with the port after it.
func after(address string) string {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+1))
}
