package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/internal/network"
	"github.com/wasmactors/wasmactors/host/internal/signal"
)

// release is the directory and the links of a node that understands the versions of the protocol up to newest. It notes the signals
// of the packets that come.
type release struct {
	cluster.Directory
	cluster.Links
	id     uint64
	newest uint16
	came   []signal.Signal
}

func (r *release) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	var m cluster.Member
	if strings.HasPrefix(key, "node.") && cbor.Unmarshal(value, &m) == nil && m.ID == r.id {
		m.Newest = r.newest
		value, _ = cbor.Marshal(m)
	}
	r.Directory.Put(key, value, revision, done)
}

func (r *release) Receive(f func(uint16, []byte)) {
	r.Links.Receive(func(from uint16, packet []byte) {
		for _, frame := range cluster.Frames(packet) {
			if _, g, err := network.Decode(frame); err == nil && g != nil {
				r.came = append(r.came, *g)
			}
		}
		f(from, packet)
	})
}

// mixed is two nodes, of which the second is of a release that understands the versions up to newest.
func mixed(t *testing.T, newest uint16) (w *net, second *release) {
	w = join(t, 2, func(c *cluster.Config) {
		if c.ID == 2 {
			second = &release{Directory: c.Directory, Links: c.Links, id: c.ID, newest: newest}
			c.Directory, c.Links = second, second
		}
	})
	return w, second
}

// What has failed and ended is told with its path to nodes that understand that, and without to those of the release before.
func TestPathsAreForNodesThatUnderstandThem(t *testing.T) {
	for newest, want := range map[uint16]string{cluster.NamesBundles: "", cluster.NamesFailed: "wasm://test@1/user/y"} {
		w, second := mixed(t, newest)
		a, b := w.members[0], w.members[1]
		y := w.spawn(a, "y", func(*host.Context, host.Message) error { return errors.New("as asked") })
		in := b.system.Inbox(0)
		in.Watch(y)
		m, _ := w.ended(w.ask(b, y, "fail"), time.Second)
		var failed *host.TurnError
		if !errors.As(m.Err(), &failed) || failed.Ref.UID() != y.UID() || failed.Failure.Kind != abi.FailureGuestError {
			t.Errorf("version %d: %v", newest, m.Err())
		}
		w.pass(time.Second) // the guardian restarts or stops it
		a.system.Stop(y)
		w.pass(time.Second)
		kinds := map[signal.Kind]int{}
		for _, g := range second.came {
			kinds[g.Kind]++
			if g.Path != want {
				t.Errorf("version %d: %s of %q, want %q", newest, g.Kind, g.Path, want)
			}
		}
		if kinds[signal.Unanswered] != 1 || kinds[signal.Terminated] != 1 {
			t.Errorf("version %d: %v", newest, kinds)
		}
		if ended, ok := in.TryReceive(); !ok || ended.Kind != abi.KindTerminated || ended.Sender != y {
			t.Errorf("version %d: %+v", newest, ended)
		}
		in.Close()
	}
}

// What a node of the release before says without a path is understood.
func TestFailuresWithoutAPath(t *testing.T) {
	w, second := mixed(t, cluster.NamesBundles)
	a, b := w.members[0], w.members[1]
	var question host.Message
	y := w.spawn(b, "y", func(_ *host.Context, m host.Message) error { question = m.Clone(); return nil })
	p := w.ask(a, y, "fail")
	w.pass(100 * time.Millisecond)
	frame := network.AppendSignal(nil, &signal.Signal{Kind: signal.Unanswered, From: y.UID(), Correlation: question.Correlation, Code: signal.Failed + signal.Code(abi.FailureTrap), Reason: "unreachable"})
	second.Links.Send(a.self.Number, cluster.Packet(b.self, a.self, 1, 1, question.Sender.UID(), false, frame))
	m, _ := w.ended(p, time.Second)
	var failed *host.TurnError
	if !errors.As(m.Err(), &failed) || failed.Failure.Kind != abi.FailureTrap || !strings.HasPrefix(m.Err().Error(), "host: the actor on node 2 that was asked has failed: trap: unreachable") {
		t.Errorf("%v", m.Err())
	}
}
