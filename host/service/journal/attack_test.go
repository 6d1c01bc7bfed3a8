package journal_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/journal"
)

// until waits for what other goroutines do; it is not about how long they take.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// greedy is an actor that asks the service many questions at once when it is told to.
type greedy struct {
	service  host.Ref
	answered atomic.Int64
}

// order is what a greedy actor is told.
type order struct {
	Ask     int           `cbor:"ask"`
	Timeout time.Duration `cbor:"timeout"`
	Args    any           `cbor:"args"`
	Panic   bool          `cbor:"panic"`
}

func (g *greedy) Receive(ctx *host.Context, m host.Message) error {
	if m.Kind == abi.KindReply || m.Kind == abi.KindReplyError {
		g.answered.Add(1)
		return nil
	}
	var o order
	if err := m.Decode(&o); err != nil {
		return err
	}
	if o.Panic {
		panic("no more")
	}
	for i := range o.Ask {
		if err := ctx.Ask(g.service, []any{"read", o.Args}, uint64(i)+1, o.Timeout); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) greedy(name string, grant any) (host.Ref, *greedy) {
	w.t.Helper()
	g := &greedy{service: w.Running.Ref()}
	ref, err := w.System.Spawn(name, host.Native(func() host.Actor { return g }).WithLimits(host.Limits{Asks: 1000}).WithGrant("journal", grant))
	if err != nil {
		w.t.Fatal(err)
	}
	return ref, g
}

func (w *world) tell(to host.Ref, o order) {
	w.t.Helper()
	if err := w.Tell(to, o); err != nil {
		w.t.Fatal(err)
	}
}

// Requests without number that wait for events which never come take what their grant has, and others are served. When nobody waits for them any
// more, for whatever reason, all of it is there again at once: no request goes on for nobody.
func TestAbandonedReads(t *testing.T) {
	w := start(t)
	w.put("ada", "in one")
	neighbour := w.Asker("neighbour", grant(journal.Grant{Tags: []string{"in"}}, service.Bounds{}))
	const atOnce, asked = 5, 200
	forever := map[string]any{"tag": "never", "wait": int64(20 * time.Second)}
	for name, end := range map[string]func(host.Ref){
		"stopped":               func(r host.Ref) { w.Stop(r) },
		"killed":                func(r host.Ref) { _ = w.Operate().Kill(r) },
		"crashed":               func(r host.Ref) { w.tell(r, order{Panic: true}) },
		"timeouts of its asks":  func(host.Ref) { w.clock.Advance(500 * time.Millisecond) },
		"the time of the grant": func(host.Ref) { w.clock.Advance(15 * time.Second) },
		"the wait of a question": func(host.Ref) { // whose timer may be set after it has been counted as open
			until(t, "their wait does not end", func() bool { w.clock.Advance(20 * time.Second); return w.Running.Busy() == 0 })
		},
	} {
		timeout, bounds := time.Hour, service.Bounds{AtOnce: atOnce, Bytes: 300 << 10, Timeout: time.Minute}
		switch name {
		case "timeouts of its asks":
			timeout = 500 * time.Millisecond
		case "the time of the grant":
			bounds.Timeout = 15 * time.Second
		case "the wait of a question":
			timeout, bounds.Timeout = 1000*time.Hour, 1000*time.Hour
		}
		g := grant(journal.Grant{Tags: []string{"in", "never"}}, bounds)
		ref, _ := w.greedy(strings.ReplaceAll(name, " ", "-"), g)
		w.tell(ref, order{Ask: asked, Timeout: timeout, Args: forever})
		until(t, name+": they do not wait", func() bool { return w.Running.Open() == atOnce && w.Running.Waiting() == asked-atOnce })
		if _, got := w.read(neighbour, map[string]any{"tag": "in"}); got != "/user/ada#1 one" {
			t.Errorf("%s: a neighbour gets %s", name, got)
		}
		other := w.Asker("other-"+strings.ReplaceAll(name, " ", "-"), g) // of the same grant
		end(ref)
		until(t, name+": some are under way", func() bool { return w.Running.Busy() == 0 })
		if _, got := w.read(other, map[string]any{"tag": "in", "bytes": 256 << 10}); got != "/user/ada#1 one" {
			t.Errorf("%s: what they had is not given back: %s", name, got)
		}
		w.Stop(ref)
	}
}

// An event that is larger than what was asked for comes alone, and what it takes is the grant's, too.
func TestLargeEventsAreCounted(t *testing.T) {
	w := start(t)
	w.put("ada", "in "+strings.Repeat("x", 40_000))
	little := w.Asker("little", grant(journal.Grant{IDs: []string{"/user/ada"}, Tags: []string{"in"}}, service.Bounds{Bytes: 32 << 10}))
	enough := w.Asker("enough", grant(journal.Grant{IDs: []string{"/user/ada"}, Tags: []string{"in"}}, service.Bounds{Bytes: 48 << 10}))
	for _, args := range []map[string]any{{"id": "/user/ada", "bytes": 1}, {"tag": "in", "bytes": 1}} {
		if _, got := w.read(little, args); !strings.HasPrefix(got, "busy: ") || !strings.Contains(got, "bytes of the grant raises it") {
			t.Errorf("%v: %.200s", args, got)
		}
		for range 3 { // what it takes is given back
			if _, got := w.read(enough, args); !strings.HasPrefix(got, "/user/ada#1 xxx") {
				t.Errorf("%v: %.200s", args, got)
			}
		}
	}
	if err := w.Request(little, "ids", nil, nil); err == nil || !strings.HasPrefix(err.Error(), "busy: ") {
		t.Errorf("a list is not counted: %v", err)
	}
}

// Whoever waits is woken by all that anybody stores, and does not look into the index for each of it.
func TestWaitingReadsLookSeldom(t *testing.T) {
	w := start(t)
	all := w.Asker("all", grant(journal.Grant{Tags: []string{"in"}}, service.Bounds{}))
	answers := make(chan string, 1)
	go func() {
		_, got := w.read(all, map[string]any{"tag": "in", "wait": int64(10 * time.Second)})
		answers <- got
	}()
	until(t, "it does not wait", func() bool { return w.Running.Open() == 1 })
	rests := func() bool {
		when, ok := w.clock.Next()
		return ok && when.Sub(w.clock.Now()) <= time.Second/50
	}
	until(t, "it never rests", func() bool { w.put("ada", "out x"); return rests() })
	w.put("bob", "in y")
	select {
	case got := <-answers:
		t.Error("it has looked once more:", got)
	default:
	}
	w.clock.Advance(time.Second / 50)
	if got := <-answers; got != "/user/bob#1 y" {
		t.Error(got)
	}
}

// The events of long IDs and tags are on a page that fits the inbox of a guest.
func TestPagesOfLongTags(t *testing.T) {
	w := start(t)
	name := strings.Repeat("n", 200)
	d := persist.Definition{Schema: new(persist.Schema).Type("note.put", 1)}
	if _, err := w.System.Spawn(name, w.notes.Props(d, func(l *persist.Log) persist.Actor { return &note{l} }, 0)); err != nil {
		t.Fatal(err)
	}
	tag := strings.Repeat("t", journal.MaxTag)
	for range 200 {
		w.put(name, tag+" x")
	}
	all := w.Asker("all", grant(journal.Grant{Tags: []string{"t*"}}, service.Bounds{}))
	seen := 0
	for q := (map[string]any{"tag": tag}); ; {
		p, got := w.read(all, q)
		if len(p.Events) == 0 {
			t.Fatal(got)
		}
		seen += len(p.Events)
		if q["from"] = p.Next; !p.More {
			break
		}
	}
	if seen != 200 {
		t.Errorf("%d events", seen)
	}
}
