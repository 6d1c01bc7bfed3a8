package natscluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// earlier makes the stream in which the release before has kept the keys of all bundles.
func earlier(t *testing.T, c *Cluster) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.nodes)
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.journalConfig("")
	cfg.Name, cfg.Description, cfg.Subjects = c.id.earlierStream(), "", []string{c.id.subject() + ".j.>"}
	if _, err := js.CreateStream(within(t, 20*time.Second), cfg); err != nil {
		t.Fatal(err)
	}
	return js
}

// What the release before has kept of a bundle is in the bundle's own stream, in order and once, however many move it, and however far one
// has come before it was killed. Nothing can be added to the earlier stream then.
func TestKeysOfTheReleaseBefore(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	c := all[0]
	js := earlier(t, c)
	add := func(bundle, rest, text string) error {
		_, err := js.Publish(within(t, 10*time.Second), c.id.earlierSubjects(bundle)+rest, []byte(text))
		return err
	}
	for i := range 40 {
		for _, bundle := range []string{"shop", "shop.2", "bank"} {
			if err := errors.Join(add(bundle, "k.carts.ann", fmt.Sprint(bundle, i)), add(bundle, fmt.Sprint("k.carts.k", i), "x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := add("shop", "e.carts.3", "fence"); err != nil {
		t.Fatal(err)
	}

	// One was killed when it had moved three records.
	half := &Journal{c: c, nc: c.keys, stream: c.id.streamJournal("shop"), prefix: c.id.subjectsOf("shop"), reads: make(chan struct{}, 1)}
	if err := c.makeStreamOf(within(t, 20*time.Second), c.keys, whatJournal, c.journalConfig("shop"), true); err != nil {
		t.Fatal(err)
	}
	for i, r := range [][2]string{{"k.carts.ann", "shop0"}, {"k.carts.k0", "x"}, {"k.carts.ann", "shop1"}} {
		if err := half.copied(within(t, 10*time.Second), half.prefix+r[0], []byte(r[1]), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	// Two others go on at the same time.
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wait.Go(func() {
			j := &Journal{c: c, nc: c.keys, stream: half.stream, prefix: half.prefix, reads: make(chan struct{}, 1)}
			errs[i] = j.adopt(within(t, 60*time.Second), "shop")
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := add("shop", "k.carts.ann", "late"); err == nil {
		t.Error("a node of the release before can store something that is left behind")
	}
	for bundle, fence := range map[string]bool{"shop": true, "shop.2": false, "bank": false} {
		for i, l := range journalsOf(t, all, bundle) {
			got := make(chan string, 1)
			l.Read("carts", 3, "ann", 0, func(list []cluster.LogEntry, err error) {
				text := fmt.Sprint(err)
				for n, e := range list {
					if string(e.Record) != fmt.Sprint(bundle, n) {
						text += fmt.Sprintf(" record %d is %q", n, e.Record)
					}
				}
				got <- fmt.Sprint(text, " ", len(list))
			})
			if text := <-got; text != "<nil> 40" {
				t.Errorf("%s, node %d: %s", bundle, i, text)
			}
			l.Last("carts", 3, func(b []byte, at uint64, err error) { got <- fmt.Sprintf("%q %v", b, err) })
			if text := <-got; strings.Contains(text, "fence") != fence {
				t.Errorf("%s, node %d: the fence is %s", bundle, i, text)
			}
		}
		s, err := mustStream(t, c).Stream(within(t, 10*time.Second), c.id.streamJournal(bundle))
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(81)
		if fence {
			want++
		}
		if n := s.CachedInfo().State.Msgs; n != want {
			t.Errorf("%s: %d records, and %d were to be moved", bundle, n-1, want-1)
		}
	}
}

// A copy of the earlier stream that is behind its leader has none of it forgotten.
func TestACopyOfTheReleaseBeforeIsBehind(t *testing.T) {
	c := opened(t, founded(t, 1, 1), &events{})[0]
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	stream, prefix := c.id.earlierStream(), c.id.earlierSubjects("shop")
	texts := []string{"one", "two", "three"}
	var asked atomic.Int64
	answers := map[string]nats.MsgHandler{
		"STREAM.INFO": func(m *nats.Msg) {
			_ = m.Respond(fmt.Appendf(nil, `{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":%q,"sealed":true},"state":{"last_seq":3}}`, stream))
		},
		"STREAM.MSG.GET": func(m *nats.Msg) { _ = m.Respond([]byte(`{"message":{"subject":"x","seq":3,"data":"dGhyZWU="}}`)) },
		"DIRECT.GET": func(m *nats.Msg) { // by copies that have none, one, and all
			var ask struct{ Seq int }
			has := min(int(asked.Add(1))-1, len(texts))
			if json.Unmarshal(m.Data, &ask) != nil || ask.Seq < 1 {
				t.Errorf("asked for %q", m.Data)
				return
			}
			for i := ask.Seq; i <= has; i++ {
				_ = m.RespondMsg(&nats.Msg{Data: []byte(texts[i-1]), Header: nats.Header{jetstream.SequenceHeader: {fmt.Sprint(i)}, jetstream.SubjectHeader: {prefix + "k.carts.ann"}}})
			}
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"204"}}})
		},
	}
	for call, f := range answers {
		if _, err := nc.Subscribe("$JS.API."+call+"."+stream, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.makeStreamOf(within(t, 20*time.Second), c.keys, whatJournal, c.journalConfig("shop"), true); err != nil {
		t.Fatal(err)
	}
	behind := &Cluster{id: c.id, nodes: nc, event: func(cluster.Event) {}}
	j := &Journal{c: behind, nc: c.keys, stream: c.id.streamJournal("shop"), prefix: c.id.subjectsOf("shop"), reads: make(chan struct{}, 1)}
	if err := j.adopt(within(t, 20*time.Second), "shop"); err != nil {
		t.Fatal(err)
	}
	var got []string
	list, err := j.records(within(t, 10*time.Second), j.key("carts", "ann"), 3)
	for _, e := range list {
		got = append(got, string(e.Record))
	}
	if err != nil || !slices.Equal(got, texts) {
		t.Errorf("%q were moved: %v", got, err)
	}
}

// A bundle whose journal is open does not look for an earlier one again, even if one appears.
func TestNothingIsMovedTwice(t *testing.T) {
	ids := founded(t, 1, 1)
	c := opened(t, ids, &events{})[0]
	want := written(t, journalsOf(t, []*Cluster{c}, "shop")[0])
	js := earlier(t, c)
	if _, err := js.Publish(within(t, 10*time.Second), c.id.earlierSubjects("shop")+"k.carts.ann", []byte("old")); err != nil {
		t.Fatal(err)
	}
	c.journals.mu.Lock()
	clear(c.journals.open)
	c.journals.mu.Unlock()
	if got := keptOf(t, journalsOf(t, []*Cluster{c}, "shop")[0]); got != want {
		t.Errorf("%s, and it was %s", got, want)
	}
}

// The keys of so many bundles are kept, and no more.
func TestJournalsAreBounded(t *testing.T) {
	c := &Cluster{}
	c.journals.begins()
	defer c.journals.stop()
	for i := range mostJournals {
		if _, err := c.journals.of(fmt.Sprint("b", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.journals.of("b0"); err != nil {
		t.Error(err)
	}
	if _, err := c.journals.of("more"); err == nil || !strings.Contains(err.Error(), "at most 16") {
		t.Errorf("one more: %v", err)
	}
}

// A keeper carries out so many bytes of requests of all bundles at a time, and has the room again when they are answered.
func TestWhatAKeeperIsAskedIsBounded(t *testing.T) {
	nodes := opened(t, founded(t, 1, 2), &events{})
	c, by := nodes[0], nodes[1].nodes
	journalsOf(t, []*Cluster{c}, "shop")
	s := newKeeperServer(c)
	askFor := func(bundle string, r keeperRequest) keeperAnswer {
		t.Helper()
		inbox := by.NewInbox()
		sub, err := by.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		if err := by.Flush(); err != nil {
			t.Fatal(err)
		}
		s.asked(&nats.Msg{Subject: c.id.subjectKeys(bundle), Reply: inbox, Data: mustEncode(r)})
		m, err := sub.NextMsg(5 * time.Second)
		if err != nil {
			t.Fatalf("call %d: %v", r.Op, err)
		}
		var a keeperAnswer
		if err := keeperDecoder.Unmarshal(m.Data, &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask := func(r keeperRequest) keeperAnswer { t.Helper(); return askFor("shop", r) }
	all := []keeperRequest{
		{Op: keysOpen}, {Op: keysLast, Kind: "carts", Shard: 3}, {Op: keysFence, Kind: "carts", Shard: 3, Record: []byte("fence")},
		{Op: keysAppend, Kind: "carts", Shard: 3, Name: "ann", Record: []byte("one"), At: 1 << 40}, {Op: keysReplace, Kind: "carts", Name: "bob", Record: []byte("one")},
		{Op: keysRead, Kind: "carts", Shard: 3, Name: "bob"},
	}
	for _, full := range []bool{false, true} {
		for _, r := range all {
			before := int64(0)
			if full { // what the bundle may have at most
				before = bytesUnder - (mostJournals-1)*bytesSure
			}
			if err := s.under.take("shop", before); err != nil {
				t.Fatal(err)
			}
			if a := ask(r); (a.Code == 2) != full {
				t.Errorf("call %d, full: %v: %+v", r.Op, full, a)
			}
			if !eventually(func() bool { return s.under.used() == before }) {
				t.Errorf("call %d: %d bytes are left", r.Op, s.under.used()-before)
			}
			s.under.give("shop", before)
		}
	}
	if !eventually(func() bool { return s.reads.begun() == 0 }) {
		t.Fatal("a read that was answered has not given its room back")
	}
	for range mostKeysOf {
		if err := s.reads.begin(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
	}
	read := all[len(all)-1]
	if a := ask(read); a.Code != 2 {
		t.Errorf("a read without room for the answer: %+v", a)
	}
	for range mostKeysOf {
		s.reads.end("shop")
	}
	if a := ask(read); a.Code != 0 {
		t.Errorf("a read when there is room again: %+v", a)
	}
}
