package natscluster

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// seen are the entries that a watch was told of.
type seen struct {
	mu    sync.Mutex
	at    map[string]uint64
	ready bool
}

func follow(s *store) (*seen, func()) {
	x := &seen{at: map[string]uint64{}}
	return x, s.follow(func(e cluster.Entry) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.at[e.Key] = e.Revision
	}, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ready = true
	})
}

func (x *seen) has(key string, revision uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ready && x.at[key] == revision
}

// raw publishes messages with headers as a hostile member writes them, byte by byte.
func raw(t *testing.T, c *Cluster, messages map[string]string) {
	t.Helper()
	conn, err := c.server.server.InProcessConn()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	text := fmt.Sprintf("CONNECT {\"verbose\":false,\"headers\":true,\"user\":%q,\"pass\":%q}\r\n", accountDirectory, c.server.secret)
	for subject, header := range messages {
		text += fmt.Sprintf("HPUB %s %d %d\r\n%sx\r\n", subject, len(header), len(header)+1, header)
	}
	go func() { _, _ = conn.Write([]byte(text + "PING\r\n")) }() // a pipe: the server writes first
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		if err != nil || strings.HasPrefix(line, "-ERR") {
			t.Fatalf("%q, %v", line, err)
		}
		if strings.HasPrefix(line, "PONG") {
			return
		}
	}
}

// What a member publishes that no node writes stops no watch, neither one that is there nor one that begins later.
func TestAWatchPassesWhatNoNodeWrites(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	s, member := all[0].dir, all[1]
	before, stop := follow(s)
	defer stop()
	const most = "18446744073709551615"
	p := s.prefix + "shard." // where it may write
	forged := map[string]nats.Header{
		"sequence": {jetstream.SequenceHeader: {most}}, "status": {"Status": {"404"}}, "end": {"Status": {"204"}, numPending: {"0"}, jetstream.LastSequenceHeader: {most}},
		"subject": {jetstream.SubjectHeader: {p + "other"}}, "lines": {"X": make([]string, 100)},
	}
	for i, spoil := range []func(){
		func() { _ = member.nodes.Publish(p+strings.Repeat("k", maxKey+1), []byte("x")) },
		func() { _ = member.nodes.Publish(p+"large", make([]byte, maxValue+1)) },
		func() {
			for name, h := range forged {
				_ = member.nodes.PublishMsg(&nats.Msg{Subject: p + name, Header: h, Data: []byte("x")})
			}
		},
		func() {
			hidden := "NATS/1.0\r\n" + jetstream.SequenceHeader + ": " + most + "\r\n" + jetstream.SubjectHeader + ": " + p + "hidden\r\n\r\n"
			raw(t, all[0], map[string]string{
				p + "early": hidden + "\r\n", p + "early2": "NATS/1.0\r\nStatus: 204\r\n" + numPending + ": 0\r\n" + jetstream.LastSequenceHeader + ": " + most + "\r\n\r\n\r\n",
				p + "broken": "NATS/1.0\r\nno colon\r\n\r\n", p + "spaces": "NATS/1.0\r\nX:      " + strings.Repeat(" ", 400) + "y\r\n\r\n",
			})
		},
	} {
		spoil()
		if err := member.nodes.FlushTimeout(20 * time.Second); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint("good", i)
		at, err := s.put(key, []byte("x"), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !eventually(func() bool { return before.has(key, at) }) {
			t.Fatalf("%d: the watch stands still: %v", i, before.at)
		}
		later, stop := follow(s)
		if !eventually(func() bool { return later.has(key, at) }) {
			t.Errorf("%d: a new watch stands still: %v", i, later.at)
		}
		stop()
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	for name, x := range before.at {
		if x > 100 {
			t.Errorf("%s has revision %d", name, x)
		}
	}
	if before.at["shard.hidden"] != 0 || before.at["shard.other"] != 0 || before.at["shard.subject"] == 0 {
		t.Error("an entry that was made up is there")
	}
}

// A member cannot make the streams of services, and one that was made otherwise is refused.
func TestAMemberMakesNoStream(t *testing.T) {
	e := &events{}
	ids := founded(t, 1, 2)
	all := opened(t, ids, e)
	cfg := all[1].sharedStore("kv").streamConfig(1)
	js, err := jetstream.New(all[1].nodes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{all[1].id.streamShared("kv"), all[1].id.stream()} {
		cfg.Name = name
		if _, err := js.CreateStream(within(t, time.Second), cfg); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	if _, err := all[1].Shared(within(t, 20*time.Second), "kv", "shop"); err != nil {
		t.Error(err)
	}
	keeper := mustStream(t, all[0])
	right := all[0].sharedStore("kv").streamConfig(1)
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"max_age":       func(c *jetstream.StreamConfig) { c.MaxAge = 10 * time.Second },
		"storage":       func(c *jetstream.StreamConfig) { c.Storage, c.MaxBytes = jetstream.MemoryStorage, 1<<20 },
		"max_bytes":     func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"allow_msg_ttl": func(c *jetstream.StreamConfig) { c.AllowMsgTTL = false },
		"republish":     func(c *jetstream.StreamConfig) { c.RePublish = nil },
		"sources": func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: all[0].id.stream()}}
		},
		"discard": func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	} {
		if err := keeper.DeleteStream(within(t, 20*time.Second), right.Name); err != nil {
			t.Fatal(err)
		}
		wrong := right
		change(&wrong)
		if _, err := keeper.CreateStream(within(t, 20*time.Second), wrong); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := all[0].makeShares(within(t, 20*time.Second), all[0].sharedStore("kv")); err == nil || !strings.Contains(err.Error(), "its "+name+" ") {
			t.Errorf("%s: %v", name, err)
		}
		if !e.has(cluster.EventRefused, "its "+name+" ") {
			t.Errorf("%s: no event says so", name)
		}
	}
}

// A store that is full says that nothing was written.
func TestAFullStore(t *testing.T) {
	all := opened(t, founded(t, 1, 1), &events{})
	s := all[0].sharedStore("kv")
	s.stream, s.prefix, s.told, s.size = s.stream+"SMALL", "small.", "told.", 8<<10
	if err := all[0].makeStream(within(t, 20*time.Second), s); err != nil {
		t.Fatal(err)
	}
	x := &Shared{s, time.Second}
	put := func(key string, value []byte) error {
		c := make(chan error, 1)
		x.Put(key, value, 0, 0, func(_ uint64, _ bool, err error) { c <- err })
		return <-c
	}
	if err := put("a", make([]byte, 6<<10)); err != nil {
		t.Fatal(err)
	}
	if err := put("b", make([]byte, 6<<10)); !errors.Is(err, service.ErrFull) {
		t.Errorf("the second one: %v", err)
	}
	s.close()
	if err := put("c", nil); err == nil || errors.Is(err, service.ErrFull) || !errors.Is(err, service.ErrNotWritten) {
		t.Errorf("the node has left: %v", err)
	}
}
