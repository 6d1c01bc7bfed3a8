package natscluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// kept is what there is of a key, and the fence of its shard.
func kept(t *testing.T, l cluster.Log, kind string, shard int, name string) string {
	t.Helper()
	c := make(chan string, 2)
	l.Last(kind, shard, func(b []byte, at uint64, err error) { c <- fmt.Sprintf("fence %q at %d, %v;", b, at, err) })
	text := <-c
	l.Read(kind, shard, name, 0, func(list []cluster.LogEntry, err error) {
		for _, e := range list {
			text += fmt.Sprintf(" %q at %d", e.Record, e.At)
		}
		c <- fmt.Sprint(text, ", ", err)
	})
	return <-c
}

// written puts a fence and some records of a key there, and says what there is.
func written(t *testing.T, l cluster.Log) string {
	t.Helper()
	c := make(chan uint64, 1)
	at := func(at uint64, err error) {
		if err != nil {
			t.Error(err)
		}
		c <- at
	}
	l.Fence("carts", 3, []byte("fence"), 0, at)
	fence := <-c
	for _, text := range []string{"one", "two"} {
		l.Append("carts", 3, fence, "ann", []byte(text), at)
		<-c
	}
	l.Append("carts", 3, fence, ":3", []byte("the keys that live"), at)
	<-c
	return keptOf(t, l)
}

// keptOf is what there is of the key, and which keys are to live.
func keptOf(t *testing.T, l cluster.Log) string {
	t.Helper()
	return kept(t, l, "carts", 3, "ann") + kept(t, l, "carts", 3, ":3")
}

// bound are a keeper, a node whose token was for a bundle, and one that is bound to none.
func bound(t *testing.T, e *events, bundle string) []*Cluster {
	t.Helper()
	ids := founded(t, 1, 2)
	text, err := ids[0].Token("b", time.Hour, bundle)
	if err != nil {
		t.Fatal(err)
	}
	member, err := enrolled(t, ids[0], text, filepath.Join(t.TempDir(), "b"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, []*Identity{ids[0], member, ids[1]}, e)
}

// A node that is bound to one bundle can neither read, change nor delete what another one has: whatever it asks NATS, and whatever it has
// NATS answer to.
func TestAHostileMemberAndTheKeysOfAnotherBundle(t *testing.T) {
	e := &events{}
	all := bound(t, e, "shop")
	keeper, member, other := all[0], all[1], all[2]
	bank := journalsOf(t, []*Cluster{keeper}, "bank")[0]
	want := written(t, bank)
	own := journalsOf(t, []*Cluster{member}, "shop")[0]
	if got := written(t, own); strings.Contains(got, " 0,") || !strings.Contains(got, `"two"`) {
		t.Fatalf("its own bundle's: %s", got)
	}

	// With other accounts.
	id := member.id
	for _, account := range []string{accountJournals, accountSystem, "$SYS", ""} {
		nc, err := nats.Connect(addresses(id.Keepers), nats.Secure(id.transport(func(string) bool { return true }, false)), nats.UserInfo(account, ""), nats.Timeout(5*time.Second))
		if err == nil {
			nc.Close()
			t.Errorf("it may connect as %q", account)
		}
	}

	// By listening.
	nc := member.nodes
	heard := make(chan *nats.Msg, 1024)
	for _, subject := range []string{
		">", "_INBOX.>", inboxes + "*.>", inboxOf(keeper.id.Node) + ".>", inboxOf(other.id.Node) + ".>", id.subject() + ".>", id.subject() + ".k.>", id.subjectsOf("bank") + ">",
		id.subjectOfKeys() + ">", id.subjectKeys("bank"), "$JS.>", "$JS.API.>", "$SYS.>",
	} {
		if _, err := nc.ChanSubscribe(subject, heard); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.ChanQueueSubscribe(subject, keepersAnswer, heard); err != nil {
			t.Fatal(err)
		}
	}

	// By NATS's own requests, for the streams and for records.
	stream := id.streamJournal("bank")
	mirror := member.journalConfig("shop")
	mirror.Subjects, mirror.Name, mirror.Mirror = nil, "MINE", &jetstream.StreamSource{Name: stream}
	source := member.journalConfig("shop")
	source.Subjects, source.Name, source.Sources = nil, "MINE2", []*jetstream.StreamSource{{Name: stream}}
	wider := member.journalConfig("shop")
	wider.Subjects = []string{id.subject() + ".k.>"}
	js := func(v any) []byte { return jsonOf(t, v) }
	for request, body := range map[string][]byte{
		"STREAM.INFO." + stream: nil, "STREAM.NAMES": nil, "STREAM.LIST": nil, "STREAM.PURGE." + stream: nil, "STREAM.DELETE." + stream: nil,
		"STREAM.UPDATE." + stream: js(wider), "STREAM.CREATE." + stream: js(wider), "STREAM.CREATE.MINE": js(mirror), "STREAM.CREATE.MINE2": js(source),
		"STREAM.MSG.GET." + stream: []byte(`{"seq":1}`), "STREAM.MSG.DELETE." + stream: []byte(`{"seq":1}`), "STREAM.SNAPSHOT." + stream: []byte(`{"deliver_subject":"_INBOX.x"}`),
		"DIRECT.GET." + stream: []byte(`{"seq":1}`), "DIRECT.GET." + stream + "." + id.subjectsOf("bank") + "k.carts.ann": nil,
		"STREAM.RESTORE." + stream: nil, "STREAM.LEADER.STEPDOWN." + stream: nil, "STREAM.PEER.REMOVE." + stream: []byte(`{"peer":"n0"}`),
		"CONSUMER.CREATE." + stream + ".c":         js(map[string]any{"stream_name": stream, "config": map[string]any{"name": "c", "ack_policy": "none"}}),
		"CONSUMER.DURABLE.CREATE." + stream + ".c": js(map[string]any{"stream_name": stream, "config": map[string]any{"durable_name": "c"}}), "CONSUMER.NAMES." + stream: nil,
		"ACCOUNT.PURGE." + accountJournals: nil, "INFO": nil,
		// its own bundle's stream is not for it either
		"STREAM.DELETE." + id.streamJournal("shop"): nil, "STREAM.PURGE." + id.streamJournal("shop"): nil, "STREAM.INFO." + id.streamJournal("shop"): nil,
	} {
		if r, err := nc.RequestWithContext(within(t, 100*time.Millisecond), "$JS.API."+request, body); err == nil {
			t.Errorf("%s is answered: %s", request, r.Data)
		}
	}
	forged := func(subject string, h nats.Header, b []byte) {
		_ = nc.PublishMsg(&nats.Msg{Subject: subject, Header: h, Data: b})
	}
	for _, fence := range []string{"", "1", "2", "3"} {
		h := nats.Header{}
		if fence != "" {
			h.Set(jetstream.ExpectedLastSubjSeqHeader, fence)
			h.Set("Nats-Expected-Last-Subject-Sequence-Subject", id.subjectsOf("bank")+"e.carts.3")
		}
		forged(id.subjectsOf("bank")+"k.carts.ann", h, []byte("forged"))
		forged(id.subjectsOf("bank")+"k.carts.~3a3", h, []byte("forged"))
		forged(id.subjectsOf("bank")+"e.carts.3", nats.Header{jetstream.MsgRollup: {"all"}}, []byte("forged"))
	}

	// By what keepers answer.
	requests := []keeperRequest{
		{Op: keysOpen}, {Op: keysLast, Kind: "carts", Shard: 3}, {Op: keysRead, Kind: "carts", Shard: 3, Name: "ann"},
		{Op: keysAppend, Kind: "carts", Shard: 3, Name: "ann", Record: []byte("forged"), At: 2}, {Op: keysFence, Kind: "carts", Shard: 3, Record: []byte("forged"), At: 2},
		{Op: keysReplace, Kind: "carts", Name: "ann", Record: []byte("forged"), At: 4}, {Op: keysRead, Kind: "carts", Shard: 3, Name: ":3"},
		{Op: keysAppend, Kind: "carts", Shard: 3, Name: ":3", Record: []byte("forged"), At: 2}, {Op: keysSpare, Kind: "carts", Shard: 3, Name: ":3", Record: []byte("forged"), At: 2},
		{Op: keysReplace, Kind: "carts", Name: ":3", Record: []byte("forged"), At: 5},
		asksKeys(cluster.KeyQuery{Most: 9}), asksKeys(cluster.KeyQuery{Most: 1, Kind: "carts", Prefix: "a"}),
	}
	for _, r := range requests {
		for _, subject := range []string{id.subjectKeys("bank"), id.subjectOfKeys() + "shop.bank", id.subjectOfKeys() + "~62ank"} {
			if m, err := nc.RequestWithContext(within(t, 100*time.Millisecond), subject, mustEncode(r)); err == nil {
				t.Errorf("%s is answered: %x", subject, m.Data)
			}
		}
	}

	// By what is answered to a subject of another bundle: by NATS with what is stored in the directory, by NATS with JSON, and by a keeper.
	tricked(t, e, member, requests, id.subjectKeys("bank"), id.subjectKeys("shop"), id.subjectKeys("bank"), id.subjectsOf("bank")+"k.carts.ann", id.subjectsOf("bank")+"e.carts.3", "$JS.API.STREAM.DELETE."+stream)
	if err := nc.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}

	// The same by another node, which the member could listen to.
	if got := keptOf(t, journalsOf(t, []*Cluster{other}, "bank")[0]); got != want {
		t.Errorf("the keys of the other bundle are\n%s\nand were\n%s", got, want)
	}
	if got := keptOf(t, bank); got != want {
		t.Errorf("the keys of the other bundle are\n%s\nand were\n%s", got, want)
	}
	info, err := mustStream(t, keeper).Stream(within(t, 10*time.Second), stream)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.CachedInfo(); s.State.Msgs != 5 || s.State.Consumers != 0 || differs(s.Config, keeper.journalConfig("bank")) != nil {
		t.Errorf("the other bundle's stream is %+v, %+v", s.State, s.Config)
	}
	if err := nc.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	for len(heard) > 0 {
		if m := <-heard; !strings.HasPrefix(m.Subject, inboxOf(id.Node)) {
			t.Errorf("it hears %s: %.200q", m.Subject, m.Data)
		}
	}
}

// tricked has a member try to have requests of another bundle made by who answers its own: they are stored in the directory and sent from
// there, and are asked for of its own bundle.
func tricked(t *testing.T, e *events, member *Cluster, requests []keeperRequest, other, own string, to ...string) {
	t.Helper()
	nc, id := member.nodes, member.id
	for i, r := range requests {
		key := fmt.Sprintf("shard.trick%d", i)
		_, at, err := member.dir.get(within(t, 10*time.Second), key)
		if err == nil {
			_, err = member.dir.put(key, mustEncode(r), at, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		last := fmt.Appendf(nil, `{"last_by_subj":%q}`, id.subjectEntries()+key)
		if i == 0 {
			_ = nc.PublishRequest("$JS.API.DIRECT.GET."+id.stream(), other, last)
			if !eventually(func() bool { return e.has(cluster.EventRefused, "it has headers") }) {
				t.Errorf("NATS has not sent what is stored to another bundle's subject, so this test says nothing of that; events: %v", e)
			}
		}
		for _, to := range to {
			_ = nc.PublishRequest("$JS.API.DIRECT.GET."+id.stream(), to, last)
			_ = nc.PublishRequest("$JS.API.DIRECT.GET."+id.stream(), to, fmt.Appendf(nil, `{"seq":1,"next_by_subj":%q,"batch":100}`, id.subjectEntries()+"shard.>"))
			_ = nc.PublishRequest("$JS.API.STREAM.MSG.GET."+id.stream(), to, last)
			_ = nc.PublishRequest("$JS.API.STREAM.INFO."+id.stream(), to, nil)
			_ = nc.PublishRequest(id.subjectEntries()+"shard.trickx", to, []byte("x"))
			_ = nc.PublishRequest(own, to, mustEncode(r))
		}
	}
}

func mustStream(t *testing.T, c *Cluster) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.keys)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// What no node asks for is refused.
func TestRequestsForKeysThatNoNodeMakes(t *testing.T) {
	d := &Description{ID: "0123456789abcdef"}
	good := keeperRequest{Op: keysAppend, Kind: "carts", Shard: 3, Name: "ann", Record: []byte("x"), At: 2}
	msg := func(change func(*nats.Msg, *keeperRequest)) *nats.Msg {
		m, r := &nats.Msg{Subject: d.subjectKeys("shop.1"), Reply: inboxes + "x.y"}, good
		change(m, &r)
		if m.Data == nil {
			m.Data = mustEncode(r)
		}
		return m
	}
	if bundle, r, wrong := d.decodeAsked(msg(func(*nats.Msg, *keeperRequest) {})); bundle != "shop.1" || r.Name != "ann" || wrong != "" {
		t.Fatalf("%q, %+v, %s", bundle, r, wrong)
	}
	for name, change := range map[string]func(*nats.Msg, *keeperRequest){
		"headers":         func(m *nats.Msg, _ *keeperRequest) { m.Header = nats.Header{"Nats-Stream": {"x"}} },
		"another reply":   func(m *nats.Msg, _ *keeperRequest) { m.Reply = d.subjectEntries() + "node.1" },
		"no reply":        func(m *nats.Msg, _ *keeperRequest) { m.Reply = "" },
		"no bundle":       func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfKeys() },
		"a broken escape": func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfKeys() + "a~2" },
		"another escape":  func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfKeys() + "~61" },
		"two tokens":      func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfKeys() + "a.b" },
		"an answer's JSON": func(m *nats.Msg, _ *keeperRequest) {
			m.Data = []byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response"}`)
		},
		"an answer":                        func(m *nats.Msg, _ *keeperRequest) { m.Data = mustEncode(keeperAnswer{At: 7}) },
		"nothing":                          func(m *nats.Msg, _ *keeperRequest) { m.Data = []byte{} },
		"no kind":                          func(_ *nats.Msg, r *keeperRequest) { r.Kind = "" },
		"no name":                          func(_ *nats.Msg, r *keeperRequest) { r.Name = "" },
		"a long name":                      func(_ *nats.Msg, r *keeperRequest) { r.Name = strings.Repeat("x", 256) },
		"a shard below 0":                  func(_ *nats.Msg, r *keeperRequest) { r.Shard = -1 },
		"a shard too many":                 func(_ *nats.Msg, r *keeperRequest) { r.Shard = mostShards },
		"a long record that needs no room": func(_ *nats.Msg, r *keeperRequest) { r.Op, r.Record = keysSpare, make([]byte, cluster.MaxSpare+1) },
		"a long record":                    func(_ *nats.Msg, r *keeperRequest) { r.Record = make([]byte, cluster.MaxRecord+1) },
		"another order":                    func(_ *nats.Msg, r *keeperRequest) { r.Op = 99 },
		"a list without end":               func(_ *nats.Msg, r *keeperRequest) { *r = keeperRequest{Op: keysList, At: cluster.MaxKeys + 1} },
		"a list without a number":          func(_ *nats.Msg, r *keeperRequest) { *r = keeperRequest{Op: keysList} },
		"a list behind half a key":         func(_ *nats.Msg, r *keeperRequest) { *r = keeperRequest{Op: keysList, At: 1, Name: "carts"} },
		"a list of a shard":                func(_ *nats.Msg, r *keeperRequest) { *r = keeperRequest{Op: keysList, At: 1, Shard: 1} },
		"a list of all subjects":           func(_ *nats.Msg, r *keeperRequest) { *r = keeperRequest{Op: keysList, At: 1, Kind: ">"} },
	} {
		if _, _, wrong := d.decodeAsked(msg(change)); wrong == "" {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzKeysRequest(f *testing.F) {
	d := &Description{ID: "0123456789abcdef"}
	f.Add(d.subjectKeys("shop"), mustEncode(keeperRequest{Op: keysRead, Kind: "k", Name: "n"}))
	f.Add(d.subjectOfKeys()+"~2e", []byte{0xa0})
	f.Add(d.subjectKeys("shop"), mustEncode(asksKeys(cluster.KeyQuery{Kind: "k", Prefix: "a", After: cluster.KeyID{Kind: "k", Name: "ab"}, Most: 7})))
	f.Add(d.subjectValues("shop.1"), mustEncode(keeperRequest{Op: valuesPut, Kind: "kv", Name: "shop~2e1.n.k", Record: []byte("x"), Stay: 3}))
	f.Add(d.subjectValues("shop"), mustEncode(keeperRequest{Op: valuesWatch, Kind: "pubsub", At: 7, Now: true}))
	f.Fuzz(func(t *testing.T, subject string, b []byte) {
		bundle, r, wrong := d.decodeAsked(&nats.Msg{Subject: subject, Reply: inboxes + "x", Data: b})
		if wrong != "" {
			return
		}
		values := subject == d.subjectValues(bundle)
		if !values && d.subjectKeys(bundle) != subject || !r.valid(bundle) || r.ofValues() != values || values && r.Name != "" && !ofBundle(r.Name, bundle) {
			t.Errorf("%q, %+v", bundle, r)
		}
	})
}

func FuzzKeeperAnswer(f *testing.F) {
	f.Add(uint64(3), mustEncode(keeperAnswer{At: 7, List: []keeperEntry{{At: 5, Name: "shop.n.k", Record: []byte("x")}, {At: 7, Name: "shop.n.l"}}}))
	f.Add(uint64(0), mustEncode(keeperAnswer{Code: notWritten}))
	f.Add(uint64(0), mustEncode(listed(cluster.KeyPage{More: true, Keys: []cluster.KeyInfo{{KeyID: cluster.KeyID{Kind: "carts", Name: "ann"}, Records: 2, Bytes: 7, Last: 9}}})))
	f.Fuzz(func(t *testing.T, seen uint64, b []byte) {
		x, err := decodeAnswer(&nats.Msg{Data: b})
		a := &askedValues{bundle: "shop"}
		if err != nil {
			return
		}
		q := cluster.KeyQuery{Kind: "carts", Prefix: "a", After: cluster.KeyID{Kind: "carts", Name: "a1"}, Most: 2}
		if p, err := x.pageOf(q); err == nil {
			last := q.After
			for _, k := range p.Keys {
				if k.Kind != "carts" || !strings.HasPrefix(k.Name, "a") || !last.Before(k.KeyID) || strings.ContainsAny(k.Name, "/ ") {
					t.Errorf("%+v", p)
				}
				last = k.KeyID
			}
			if len(p.Keys) > q.Most || p.More && len(p.Keys) == 0 {
				t.Errorf("%+v", p)
			}
		}
		if a.follows(seen, &x) != nil {
			return
		}
		for _, e := range x.List {
			if e.At <= seen || e.At > x.At || !strings.HasPrefix(e.Name, "shop.") {
				t.Errorf("%d: %+v", seen, x)
			}
		}
	})
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
