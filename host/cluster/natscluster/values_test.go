package natscluster

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// sharedOf opens what kv shares of a bundle.
func sharedOf(t testing.TB, c *Cluster, name, bundle string) service.Shared {
	t.Helper()
	x, err := c.Shared(within(t, 60*time.Second), name, bundle)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

type outcome struct {
	at  uint64
	ok  bool
	err error
}

func put(x service.Shared, key string, value []byte, revision uint64, stay int64) outcome {
	c := make(chan outcome, 1)
	x.Put(key, value, revision, stay, func(at uint64, ok bool, err error) { c <- outcome{at, ok, err} })
	return <-c
}

func get(x service.Shared, key string) (value string, at uint64, err error) {
	type got struct {
		value []byte
		at    uint64
		err   error
	}
	c := make(chan got, 1)
	x.Get(key, func(value []byte, at uint64, err error) { c <- got{value, at, err} })
	g := <-c
	return string(g.value), g.at, g.err
}

// told is what a watch was told.
type told struct {
	mu    sync.Mutex
	last  uint64
	is    map[string]string
	ready bool
	wrong string
}

func watched(x service.Shared) (*told, func()) {
	w := &told{is: map[string]string{}}
	return w, x.Watch(func(key string, value []byte, at uint64) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if at <= w.last {
			w.wrong = fmt.Sprintf("%d after %d", at, w.last)
		}
		if w.last, w.is[key] = at, fmt.Sprintf("%.20s %d at %d", value, len(value), at); len(value) == 0 {
			delete(w.is, key)
		}
	}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.ready {
			w.wrong = "ready twice"
		}
		w.ready = true
	})
}

func (w *told) sees(want map[string]string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready && maps.Equal(w.is, want)
}

// A watch of a node that keeps nothing is told what one of a keeper is, in order and once, of its bundle only: few changes and many, small
// ones and large ones, before and after it begins.
func TestWatchesThroughAKeeper(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	keeper, member := sharedOf(t, all[0], "kv", "shop"), sharedOf(t, all[1], "kv", "shop")
	rng := rand.New(rand.NewPCG(1, 2))
	want, at := map[string]string{}, map[string]uint64{}
	change := func(n int) {
		for i := range n {
			key, value := fmt.Sprint("shop.n.k", rng.IntN(40)), make([]byte, 1+rng.IntN(100))
			switch {
			case i%10 == 7:
				value = make([]byte, rng.IntN(maxValue+1))
			case i%10 == 9:
				value = nil
			}
			for j := range value {
				value[j] = byte('a' + j%26)
			}
			o := put([]service.Shared{keeper, member}[i%2], key, value, at[key], 0)
			if !o.ok || o.err != nil {
				t.Fatalf("%s at %d: %+v", key, at[key], o)
			}
			if at[key], want[key] = o.at, fmt.Sprintf("%.20s %d at %d", value, len(value), o.at); len(value) == 0 {
				delete(want, key)
			}
			if o := put(keeper, fmt.Sprint("bank.n.k", i), []byte("x"), 0, 1); o.err != nil {
				t.Fatal(o.err)
			}
		}
	}
	var watches []*told
	for range 3 {
		w, stop := watched(member)
		defer stop()
		watches = append(watches, w)
		change(60)
		for i, w := range watches {
			if !eventually(func() bool { return w.sees(want) }) {
				w.mu.Lock()
				t.Errorf("watch %d is told %v, and there is %v", i, w.is, want)
				w.mu.Unlock()
			}
			w.mu.Lock()
			if w.wrong != "" {
				t.Errorf("watch %d: %s", i, w.wrong)
			}
			w.mu.Unlock()
		}
	}
	for key := range want {
		a, atA, errA := get(keeper, key)
		b, atB, errB := get(member, key)
		if a != b || atA != atB || errA != nil || errB != nil {
			t.Errorf("%s: %d, %v and %d, %v", key, atA, errA, atB, errB)
		}
	}
	if o := put(member, "bank.n.k", []byte("x"), 0, 0); !errors.Is(o.err, service.ErrNotWritten) {
		t.Errorf("of another bundle than it was opened for: %+v", o)
	}
}

// A keeper tells a node of the changes of the bundle that it asks for, and of no other, and that there are more when they do not fit.
func TestChangesThatAKeeperTells(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	keeper := sharedOf(t, all[0], "kv", "shop")
	sharedOf(t, all[1], "kv", "shop") // keepers answer now
	var revisions []uint64
	for i, key := range []string{"bank.n.a", "shop.n.a", "shopx.n.a", "shop.n.b", "bank.n.b", "shop.n.c"} {
		value := make([]byte, maxValue*3/4)
		if key == "shop.n.c" {
			value = make([]byte, maxValue)
		}
		o := put(keeper, key, value, 0, 0)
		if !o.ok {
			t.Fatalf("%d: %+v", i, o)
		}
		revisions = append(revisions, o.at)
	}
	seen := uint64(0)
	for _, want := range []string{"shop.n.a", "shop.n.b", "shop.n.c", ""} {
		x, err := all[1].askOnce(within(t, 10*time.Second), all[1].id.subjectValues("shop"), "it", mustEncode(keeperRequest{Op: valuesWatch, Kind: "kv", At: seen, Now: true}))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range x.List {
			got += e.Name
		}
		if got != want || x.More != (want == "shop.n.a" || want == "shop.n.b") {
			t.Errorf("after %d it is told %q, more: %v, and not %q", seen, got, x.More, want)
		}
		seen = x.At
	}
	if seen != revisions[5] {
		t.Errorf("it is at %d of %v", seen, revisions)
	}

	// Who waits is answered by the change, not later.
	v := servedBy(all[0], "kv")
	inbox := all[1].nodes.NewInbox()
	sub, err := all[1].nodes.SubscribeSync(inbox)
	if err != nil || all[1].nodes.Flush() != nil {
		t.Fatal(err)
	}
	v.asked(inbox, "shop", &keeperRequest{Op: valuesWatch, Kind: "kv", At: seen})
	if !eventually(func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		w := v.held["shop"]
		if w == nil || len(w.all) != 1 {
			return false
		}
		w.all[0].until = time.Now().Add(time.Hour)
		return true
	}) {
		t.Fatal("it does not wait")
	}
	o := put(keeper, "shop.n.d", []byte("x"), 0, 0)
	m, err := sub.NextMsg(20 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := decodeAnswer(m); err != nil || x.At != o.at || len(x.List) != 1 || x.List[0].Name != "shop.n.d" || x.More {
		t.Errorf("%+v, %v", x, err)
	}
}

// A watch of an empty bundle is ready, and is told of the first change.
func TestAWatchOfNothing(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	x := sharedOf(t, all[1], "pubsub", "shop")
	w, stop := watched(x)
	defer stop()
	if !eventually(func() bool { return w.sees(map[string]string{}) }) {
		t.Fatal("it is not ready")
	}
	o := put(x, "shop.t", []byte("x"), 0, 0)
	if o.err != nil || !eventually(func() bool { return w.sees(map[string]string{"shop.t": fmt.Sprintf("x 1 at %d", o.at)}) }) {
		t.Errorf("%+v, %v", o, w.is)
	}
}

// A bound node can neither read, change nor learn of what services share of another bundle: whatever it asks NATS or keepers, and whatever it
// has them answer to.
func TestAHostileMemberAndWhatAnotherBundleShares(t *testing.T) {
	e := &events{}
	all := bound(t, e, "shop")
	keeper, member, other := all[0], all[1], all[2]
	id, nc := member.id, member.nodes
	for _, name := range sharing {
		bank := sharedOf(t, other, name, "bank")
		first := put(bank, "bank.n.k", []byte("secret"), 0, 0)
		if first.err != nil || !first.ok {
			t.Fatalf("%+v", first)
		}
		watch, stop := watched(bank)
		defer stop()
		want := map[string]string{"bank.n.k": fmt.Sprintf("secret 6 at %d", first.at)}
		if !eventually(func() bool { return watch.sees(want) }) {
			t.Fatalf("%v", watch.is)
		}
		if o := put(sharedOf(t, member, name, "shop"), "shop.n.k", []byte("own"), 0, 0); o.err != nil || !o.ok {
			t.Fatalf("its own bundle's: %+v", o)
		}
		if _, err := member.Shared(within(t, 5*time.Second), name, "bank"); err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%s: it opens another bundle's: %v", name, err)
		}
		heard := make(chan *nats.Msg, 1024)
		for _, subject := range []string{
			">", inboxes + "*.>", inboxOf(other.id.Node) + ".>", id.subjectOfValues() + "*", id.subjectValues("bank"), id.subjectShared(name) + ">", id.subjectSharedTold(name) + ">",
		} {
			if _, err := nc.ChanSubscribe(subject, heard); err != nil {
				t.Fatal(err)
			}
			if _, err := nc.ChanQueueSubscribe(subject, keepersAnswer, heard); err != nil {
				t.Fatal(err)
			}
		}

		var asked sync.WaitGroup
		ask := func(subject string, b []byte) {
			asked.Go(func() {
				if m, err := nc.RequestWithContext(within(t, 500*time.Millisecond), subject, b); err == nil {
					t.Errorf("%s is answered: %q to %x", subject, m.Data, b)
				}
			})
		}

		// By NATS's own requests, and by publishing where the stream takes values in the account of keepers.
		stream := id.streamShared(name)
		for request, body := range map[string]string{
			"STREAM.INFO." + stream: "", "STREAM.PURGE." + stream: "", "STREAM.DELETE." + stream: "", "STREAM.MSG.GET." + stream: `{"seq":1}`, "STREAM.MSG.DELETE." + stream: `{"seq":1}`,
			"DIRECT.GET." + stream: `{"seq":1}`, "DIRECT.GET." + stream + "." + id.subjectShared(name) + "bank.n.k": "", "STREAM.LEADER.STEPDOWN." + stream: "",
			"CONSUMER.CREATE." + stream + ".c": `{"stream_name":"` + stream + `","config":{"name":"c","ack_policy":"none"}}`, "STREAM.SNAPSHOT." + stream: `{"deliver_subject":"_INBOX.x"}`,
			"STREAM.CREATE." + stream: string(jsonOf(t, keeper.sharedStore(name).streamConfig(1))), "STREAM.UPDATE." + stream: string(jsonOf(t, keeper.sharedStore(name).streamConfig(1))),
		} {
			ask("$JS.API."+request, []byte(body))
		}
		for _, subject := range []string{id.subjectShared(name) + "bank.n.k", id.subjectSharedTold(name) + "bank.n.k"} {
			_ = nc.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{jetstream.ExpectedLastSubjSeqHeader: {fmt.Sprint(first.at)}}, Data: []byte("forged")})
		}

		// By what keepers answer: of the other bundle, and of its own with keys and subjects of the other.
		requests := []keeperRequest{
			{Op: valuesOpen, Kind: name}, {Op: valuesGet, Kind: name, Name: "bank.n.k"}, {Op: valuesPut, Kind: name, Name: "bank.n.k", Record: []byte("forged"), At: first.at},
			{Op: valuesPut, Kind: name, Name: "bank.n.k", At: first.at, Stay: 1}, {Op: valuesPut, Kind: name, Name: "bank.n.new", Record: []byte("forged")},
			{Op: valuesWatch, Kind: name, Now: true},
		}
		for _, r := range requests {
			for _, subject := range []string{id.subjectValues("bank"), id.subjectOfValues() + "~62ank", id.subjectOfValues() + "shop.bank", id.subjectKeys("bank")} {
				ask(subject, mustEncode(r))
			}
			if r.Name == "" {
				continue
			}
			for _, key := range []string{r.Name, "shop.." + r.Name, "shop.>", "*.n.k", ">", "shopx.n.k", "$moved", "shop"} {
				r.Name = key
				ask(id.subjectValues("shop"), mustEncode(r))
			}
		}
		asked.Wait()
		_ = nc.PublishRequest(id.subjectValues("shop"), inboxOf(other.id.Node)+".guessed", mustEncode(keeperRequest{Op: valuesWatch, Kind: name, Now: true}))

		// By what is answered to a subject of the other bundle.
		tricked(t, e, member, requests, id.subjectValues("bank"), id.subjectValues("shop"), id.subjectValues("bank"), id.subjectShared(name)+"bank.n.k", id.subjectSharedTold(name)+"bank.n.k", "$JS.API.STREAM.PURGE."+stream)
		_ = nc.PublishRequest(id.subjectValues("shop"), id.subjectValues("bank"), mustEncode(keeperRequest{Op: valuesGet, Kind: name, Name: "shop.n.k"}))

		// Watches and values without end: the other bundle is served all the same.
		for range 2 * mostHeldOf {
			_ = nc.PublishRequest(id.subjectValues("shop"), inboxOf("x"+fmt.Sprint(rand.IntN(1000)))+".y", mustEncode(keeperRequest{Op: valuesWatch, Kind: name, At: 1 << 60}))
		}
		for i := range 40 {
			_ = nc.PublishRequest(id.subjectValues("shop"), inboxOf(id.Node)+".y", mustEncode(keeperRequest{Op: valuesPut, Kind: name, Name: fmt.Sprint("shop.big.", i), Record: make([]byte, maxValue)}))
		}
		if err := nc.FlushTimeout(20 * time.Second); err != nil {
			t.Fatal(err)
		}
		second := outcome{}
		if !eventually(func() bool { // while a keeper is flooded it may refuse
			second = put(bank, "bank.n.k", []byte("second"), first.at, 0)
			return second.err == nil
		}) || !second.ok {
			t.Errorf("what the other bundle shares was changed: %+v, was %+v", second, first)
		}
		want = map[string]string{"bank.n.k": fmt.Sprintf("second 6 at %d", second.at)}
		if !eventually(func() bool { return watch.sees(want) }) {
			t.Errorf("the other bundle is told %v, not %v", watch.is, want)
		}
		is, err := mustStream(t, keeper).Stream(within(t, 10*time.Second), stream)
		if err != nil || differs(is.CachedInfo().Config, keeper.sharedStore(name).streamConfig(1)) != nil || is.CachedInfo().State.Consumers != 0 {
			t.Errorf("the stream is another one: %v", err)
		}
		if watch.wrong != "" {
			t.Error(watch.wrong)
		}
		for len(heard) > 0 {
			if m := <-heard; !strings.HasPrefix(m.Subject, inboxOf(id.Node)) {
				t.Errorf("it hears %s: %.200q", m.Subject, m.Data)
			} else if strings.Contains(string(m.Data), "secret") {
				t.Errorf("it is told what another bundle has: %q", m.Data)
			}
		}
	}
}

// Requests for what services share that no node makes are refused.
func TestRequestsForValuesThatNoNodeMakes(t *testing.T) {
	d := &Description{ID: "0123456789abcdef"}
	good := map[string]keeperRequest{
		"open": {Op: valuesOpen, Kind: "kv"}, "put": {Op: valuesPut, Kind: "kv", Name: "shop~2e1.n.k", Record: []byte("x"), At: 2, Stay: 5},
		"get": {Op: valuesGet, Kind: "pubsub", Name: "shop~2e1.t"}, "watch": {Op: valuesWatch, Kind: "kv", At: 3, Now: true},
	}
	for name, r := range good {
		ask := func(change func(*nats.Msg, *keeperRequest)) string {
			m, r := &nats.Msg{Subject: d.subjectValues("shop.1"), Reply: inboxes + "x.y"}, r
			if change(m, &r); m.Data == nil {
				m.Data = mustEncode(r)
			}
			_, _, wrong := d.decodeAsked(m)
			return wrong
		}
		if wrong := ask(func(*nats.Msg, *keeperRequest) {}); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
		for what, change := range map[string]func(*nats.Msg, *keeperRequest){
			"headers":             func(m *nats.Msg, _ *keeperRequest) { m.Header = nats.Header{"Nats-Stream": {"x"}} },
			"another reply":       func(m *nats.Msg, _ *keeperRequest) { m.Reply = d.subjectEntries() + "node.1" },
			"no bundle":           func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfValues() },
			"where keys are":      func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectKeys("shop.1") },
			"another escape":      func(m *nats.Msg, _ *keeperRequest) { m.Subject = d.subjectOfValues() + "~73hop~2e1" },
			"another service":     func(_ *nats.Msg, r *keeperRequest) { r.Kind = "sql" },
			"a shard":             func(_ *nats.Msg, r *keeperRequest) { r.Shard = 1 },
			"a key of another":    func(_ *nats.Msg, r *keeperRequest) { r.Name = "bank.n.k" },
			"of one like it":      func(_ *nats.Msg, r *keeperRequest) { r.Name = "shop~2e1x.n" },
			"a wildcard":          func(_ *nats.Msg, r *keeperRequest) { r.Name = "shop~2e1.>" },
			"a long key":          func(_ *nats.Msg, r *keeperRequest) { r.Name = "shop~2e1." + strings.Repeat("k", maxSharedKey) },
			"a large value":       func(_ *nats.Msg, r *keeperRequest) { r.Record = make([]byte, maxValue+1) },
			"a time below 0":      func(_ *nats.Msg, r *keeperRequest) { r.Stay = -1 },
			"a time without end":  func(_ *nats.Msg, r *keeperRequest) { r.Stay = longestStay + 1 },
			"another order":       func(_ *nats.Msg, r *keeperRequest) { r.Op = 99 },
			"an order about keys": func(_ *nats.Msg, r *keeperRequest) { r.Op = keysRead },
		} {
			if ask(change) == "" {
				t.Errorf("%s, %s: taken", name, what)
			}
		}
	}
}

// What is no answer to a request for changes is not taken.
func TestChangesThatNoKeeperTells(t *testing.T) {
	a := &askedValues{bundle: "shop", what: "x"}
	entry := func(at uint64, key string, bytes int) keeperEntry {
		return keeperEntry{At: at, Name: key, Record: make([]byte, bytes)}
	}
	for name, x := range map[string]keeperAnswer{
		"of another bundle": {At: 8, List: []keeperEntry{entry(8, "bank.n.k", 1)}}, "not a key": {At: 8, List: []keeperEntry{entry(8, "shop.>", 1)}},
		"old": {At: 8, List: []keeperEntry{entry(7, "shop.k", 1)}}, "twice": {At: 8, List: []keeperEntry{entry(8, "shop.k", 1), entry(8, "shop.l", 1)}},
		"back": {At: 9, List: []keeperEntry{entry(9, "shop.k", 1), entry(8, "shop.l", 1)}}, "large": {At: 8, List: []keeperEntry{entry(8, "shop.k", maxValue+1)}},
		"behind its changes": {At: 8, List: []keeperEntry{entry(9, "shop.k", 1)}}, "behind": {At: 6}, "more of nothing": {At: 7, More: true},
	} {
		if a.follows(7, &x) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, x := range map[string]keeperAnswer{
		"nothing": {At: 7}, "passed over": {At: 9, More: true}, "some": {At: 10, List: []keeperEntry{entry(8, "shop.k", 0), entry(9, "shop.l", maxValue)}},
	} {
		if err := a.follows(7, &x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A keeper bounds what waits for changes, of each node, each bundle and in all, and what is carried out.
func TestWhatAKeeperServesIsBounded(t *testing.T) {
	all := opened(t, founded(t, 1, 1), &events{})
	s := newKeeperServer(all[0])
	sharedOf(t, all[0], "kv", "shop")
	st, _ := all[0].shared.of["kv"].opened()
	v := s.served("kv", st)
	if !eventually(func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.ready }) {
		t.Fatal("it does not follow")
	}
	ask := func(node, bundle string) bool {
		v.mu.Lock()
		before := v.count
		v.mu.Unlock()
		v.asked(inboxOf(node)+".x", bundle, &keeperRequest{Op: valuesWatch, Kind: "kv", At: 1 << 60})
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.count > before
	}
	hold := func(bundle string, count int) { // as if so many waited
		v.mu.Lock()
		defer v.mu.Unlock()
		v.held[bundle].count += count
		v.count += count
	}
	for i := range mostHeldBy {
		if !ask("n1", "shop") {
			t.Fatalf("request %d of a node waits no more", i)
		}
	}
	if ask("n1", "shop") {
		t.Error("one more of the same node waits")
	}
	if !ask("n1", "bank") || !ask("n2", "shop") {
		t.Error("of another bundle, or by another node, it does not wait")
	}
	hold("shop", mostHeldOf)
	if ask("n3", "shop") {
		t.Error("one more of the same bundle waits")
	}
	hold("bank", mostHeld)
	if ask("n4", "third") {
		t.Error("one more waits")
	}
	hold("shop", -mostHeldOf)
	hold("bank", -mostHeld)
	if !eventually(func() bool { // they are answered a while later
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.count == 0 && len(v.held) == 0
	}) {
		t.Errorf("%d wait for ever", v.count)
	}

	x := &s.values
	big := x.enter("shop", bytesValuesOf)
	if big == nil || x.enter("shop", 1) != nil {
		t.Error("bytes of a bundle have no bound")
	}
	x.leave("shop", big, bytesValuesOf)
	for range mostValuesOf {
		if x.enter("shop", 1) == nil {
			t.Fatal("too few requests of a bundle")
		}
	}
	if x.enter("shop", 1) != nil || x.enter("bank", 1) == nil {
		t.Error("requests of a bundle have no bound, or are those of others")
	}
	x.count = mostValues
	if x.enter("third", 1) != nil {
		t.Error("requests have no bound")
	}

	full := room{turn: make(chan struct{}, 1), had: service.MaxSharedTotal - 100, asked: time.Now().Add(time.Hour)}
	if err := full.take(t.Context(), st, 60); err != nil {
		t.Error(err)
	}
	if err := full.take(t.Context(), st, 60); !errors.Is(err, service.ErrFull) {
		t.Errorf("beyond the room for values: %v", err)
	}
	if err := full.take(t.Context(), st, 40); err != nil {
		t.Errorf("what was refused takes room: %v", err)
	}
	full.asked = time.Time{}
	if err := full.take(t.Context(), st, 60); err != nil || full.had > 1<<20 {
		t.Errorf("it does not ask again: %v, %d bytes", err, full.had)
	}
}

// With more bundles than a keeper notes, changes of one that it has not noted are told all the same.
func TestBundlesThatAKeeperDoesNotNote(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	member := sharedOf(t, all[1], "kv", "shop")
	v := servedBy(all[0], "kv")
	v.mu.Lock()
	for i := range mostNamed {
		v.last[fmt.Sprint("b", i)] = 1
	}
	v.mu.Unlock()
	w, stop := watched(member)
	defer stop()
	if o := put(member, "shop.n.k", []byte("x"), 0, 0); o.err != nil || !eventually(func() bool { return w.sees(map[string]string{"shop.n.k": fmt.Sprintf("x 1 at %d", o.at)}) }) {
		t.Fatalf("%+v, %v", o, w.is)
	}
	v.mu.Lock()
	if _, ok := v.last["shop"]; ok || !v.lacks {
		t.Error("it was noted")
	}
	v.mu.Unlock()
	o := put(member, "shop.n.l", []byte("x"), 0, 0)
	if !eventually(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.last == o.at }) {
		t.Errorf("%+v, %v", o, w.is)
	}
	asked := mustEncode(keeperRequest{Op: valuesWatch, Kind: "kv"})
	if x, err := all[1].askOnce(within(t, 20*time.Second), all[1].id.subjectValues("shop"), "it", asked); err != nil || len(x.List) != 2 {
		t.Errorf("a request that does not know of them waits for another change: %+v, %v", x, err)
	}
}

// servedBy is what a keeper serves of a service.
func servedBy(c *Cluster, name string) *served {
	st, _ := c.shared.of[name].opened()
	return c.serves.served(name, st)
}

// Keepers are killed one after the other while a node that keeps nothing writes: all that was acknowledged is there, the watch is told of all in
// order, and none of the changes that the node knows to be refused took place.
func TestKeepersAreKilledWhileValuesAreWritten(t *testing.T) {
	thorough.SkipUnlessSlow(t)
	ids := founded(t, 3, 4)
	e := &events{}
	all := opened(t, ids, e)
	x := sharedOf(t, all[3], "kv", "shop")
	w, stop := watched(x)
	defer stop()
	var mu sync.Mutex
	acknowledged, refused := map[string]uint64{}, map[string]bool{}
	over := make(chan struct{})
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				key := fmt.Sprintf("shop.n.%d-%d", n, i)
				o := put(x, key, []byte(key), 0, 0)
				mu.Lock()
				switch {
				case o.ok:
					acknowledged[key] = o.at
				case errors.Is(o.err, service.ErrNotWritten):
					refused[key] = true
				}
				mu.Unlock()
				if o.err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	goesOn := func(what string) {
		t.Helper()
		if n := count(); !eventually(func() bool { return count() > n+50 }) {
			t.Fatalf("%s: nothing is written; events: %v", what, e)
		}
	}
	goesOn("at first")
	for i := range 2 {
		all[i].server.close()
		goesOn(fmt.Sprintf("keeper %d was killed", i))
		all[i].Close()
		all[i] = opened(t, ids[i:i+1], e)[0]
		goesOn(fmt.Sprintf("keeper %d is back", i))
	}
	close(over)
	writers.Wait()
	y := sharedOf(t, all[2], "kv", "shop")
	last := uint64(0)
	for key, at := range acknowledged {
		value, is, err := get(y, key)
		if value != key || is != at || err != nil {
			t.Fatalf("%s was acknowledged at %d, and is %q at %d, %v", key, at, value, is, err)
		}
		last = max(last, at)
	}
	for key := range refused {
		if value, at, err := get(y, key); at != 0 || err != nil {
			t.Errorf("%s was refused, and is %q at %d, %v", key, value, at, err)
		}
	}
	if !eventually(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.last >= last }) {
		t.Errorf("the watch stands at %d of %d", w.last, last)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, at := range acknowledged {
		if want := fmt.Sprintf("%.20s %d at %d", key, len(key), at); w.is[key] != want {
			t.Errorf("the watch is told %q of %s, and it is %q", w.is[key], key, want)
		}
	}
	if w.wrong != "" {
		t.Error(w.wrong)
	}
	t.Logf("%d were acknowledged, %d refused", len(acknowledged), len(refused))
}

// What a get and a put take through a keeper is at most one request more than of the directory, which is asked without one.
func BenchmarkValuesThroughAKeeper(b *testing.B) {
	for _, keepers := range []int{1, 3} {
		all := opened(b, founded(b, keepers, keepers+1), &events{})
		c := all[keepers]
		x := sharedOf(b, c, "kv", "shop")
		value := make([]byte, 100)
		if o := put(x, "shop.n.k", value, 0, 0); !o.ok {
			b.Fatalf("%+v", o)
		}
		at, err := c.dir.put("shard.bench", value, 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		_, mine, _ := get(x, "shop.n.k")
		rng, took := rand.New(rand.NewPCG(1, 2)), map[string]time.Duration{}
		measure := func(what string, f func() error) {
			began := time.Now()
			if err := f(); err != nil {
				b.Fatal(what, err)
			}
			took[what] += time.Since(began)
		}
		b.Run(fmt.Sprintf("keepers=%d", keepers), func(b *testing.B) {
			clear(took)
			all := []func(){
				func() {
					measure("request", func() error {
						_, err := c.askOnce(b.Context(), c.id.subjectValues("shop"), "a keeper", mustEncode(keeperRequest{Op: valuesOpen, Kind: "kv"}))
						return err
					})
				},
				func() {
					measure("get-before", func() error { _, _, err := c.dir.get(b.Context(), "shard.bench"); return err })
				},
				func() { measure("get", func() error { _, _, err := get(x, "shop.n.k"); return err }) },
				func() {
					measure("put-before", func() (err error) { at, err = c.dir.put("shard.bench", value, at, 0); return err })
				},
				func() {
					measure("put", func() error { o := put(x, "shop.n.k", value, mine, 0); mine = o.at; return o.err })
				},
			}
			for range b.N { // in another order each time
				rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				for _, f := range all {
					f()
				}
			}
			for what, d := range took {
				b.ReportMetric(float64(d.Microseconds())/float64(b.N), what+"-us")
			}
		})
	}
}
