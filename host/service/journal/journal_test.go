package journal_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/journal"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	servicetest.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// note is an actor in Go that stores what it is sent: "tag text".
type note struct{ log *persist.Log }

func (*note) Apply(*persist.Event) error { return nil }

func (n *note) Receive(ctx *host.Context, m host.Message) error {
	var s string
	if err := m.Decode(&s); err != nil {
		return err
	}
	tag, text, _ := strings.Cut(s, " ")
	if tag == "delete" {
		n.log.DeleteEvents(n.log.Last())
	} else if err := n.log.Persist("note.put@1", text, tag); err != nil {
		return err
	}
	return ctx.Reply(n.log.Last())
}

type world struct {
	*servicetest.World
	t     *testing.T
	clock *host.VirtualClock
	notes *persist.Memory
}

func start(t *testing.T) *world {
	notes, err := persist.NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, notes: notes, clock: host.NewVirtualClock(time.Unix(1e9, 0))}
	t.Cleanup(func() {
		w.End()
		if err := notes.Close(); err != nil {
			t.Error(err)
		}
	})
	w.World = servicetest.New(t, journal.Service, nil, nil, func(c host.Config) host.Config { return c.WithClock(w.clock).WithStore(notes) })
	if err := persist.Attach(w.System, notes.Journal); err != nil {
		t.Fatal(err)
	}
	if err := persist.Attach(w.System, nil); err == nil {
		t.Error("a second journal was attached")
	}
	for _, name := range []string{"ada", "bob"} {
		d := persist.Definition{Schema: new(persist.Schema).Type("note.put", 1)}
		if _, err := w.System.Spawn(name, notes.Props(d, func(l *persist.Log) persist.Actor { return &note{l} }, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) put(to, text string) {
	w.t.Helper()
	ref, err := w.Lookup("/user/" + to)
	if err == nil {
		_, err = w.Ask(w.t.Context(), ref, text)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func grant(g journal.Grant, b service.Bounds) any { return journal.Service.Grant(g, b) }

// page is an answer.
type page struct {
	Events []struct {
		ID      string   `cbor:"id"`
		Number  uint64   `cbor:"number"`
		Offset  uint64   `cbor:"offset"`
		Type    string   `cbor:"type"`
		Version uint16   `cbor:"version"`
		Tags    []string `cbor:"tags"`
		Time    int64    `cbor:"time"`
		Payload []byte   `cbor:"payload"`
	} `cbor:"events"`
	Next uint64 `cbor:"next"`
	More bool   `cbor:"more"`
}

// String is such as "/user/ada#1 one, /user/bob#1 two; more".
func (p page) String() string {
	var all []string
	for _, e := range p.Events {
		var s string
		_ = host.Message{Payload: e.Payload}.Decode(&s)
		all = append(all, fmt.Sprintf("%s#%d %s", e.ID, e.Number, s))
	}
	text := strings.Join(all, ", ")
	if p.More {
		text += "; more"
	}
	return text
}

func (w *world) read(who host.Ref, args map[string]any) (page, string) {
	w.t.Helper()
	var p page
	if err := w.Request(who, "read", args, &p); err != nil {
		return p, err.Error()
	}
	return p, p.String()
}

// Events are read by actor and by tag, in pages that go on where the one before has ended.
func TestPages(t *testing.T) {
	w := start(t)
	all := w.Asker("all", grant(journal.Grant{IDs: []string{"/user/*"}, Tags: []string{"*"}}, service.Bounds{}))
	for i := range 5 {
		w.put("ada", fmt.Sprintf("in a%d", i))
		w.put("bob", fmt.Sprintf("out b%d", i))
	}
	w.put("bob", "in last")
	p, got := w.read(all, map[string]any{"id": "/user/ada", "limit": 2})
	if want := "/user/ada#1 a0, /user/ada#2 a1; more"; got != want || p.Next != 3 {
		t.Errorf("%q, %d", got, p.Next)
	}
	if e := p.Events[0]; e.Type != "note.put" || e.Version != 1 || len(e.Tags) != 1 || e.Tags[0] != "in" || e.Time != 1e18 || e.Offset == 0 {
		t.Errorf("%+v", e)
	}
	if _, got := w.read(all, map[string]any{"id": "/user/ada", "from": 3, "to": 4}); got != "/user/ada#3 a2, /user/ada#4 a3" {
		t.Error(got)
	}
	if p, got := w.read(all, map[string]any{"id": "/user/ada", "from": 6}); got != "" || p.Next != 6 {
		t.Errorf("%q, %d", got, p.Next)
	}
	var seen []string
	for q := (map[string]any{"tag": "in", "limit": 2}); ; {
		p, got := w.read(all, q)
		seen = append(seen, strings.TrimSuffix(got, "; more"))
		if q["from"] = p.Next; !p.More {
			break
		}
	}
	if got := strings.Join(seen, ", "); got != "/user/ada#1 a0, /user/ada#2 a1, /user/ada#3 a2, /user/ada#4 a3, /user/ada#5 a4, /user/bob#6 last" {
		t.Error(got)
	}
	if _, got := w.read(all, map[string]any{"tag": "out", "bytes": 250}); got != "/user/bob#1 b0, /user/bob#2 b1; more" {
		t.Error(got)
	}
	w.put("ada", "delete")
	if p, got := w.read(all, map[string]any{"id": "/user/ada", "to": 5, "wait": int64(time.Second)}); got != "" || p.Next != 6 {
		t.Error("all up to the end is deleted:", got, p.Next)
	}
	if p, got := w.read(all, map[string]any{"tag": "in"}); got != "/user/bob#6 last" || p.Events[0].Offset+1 != p.Next {
		t.Error(got, p.Next)
	}
	var info map[string]uint64
	if err := w.Request(all, "info", map[string]any{"id": "/user/ada"}, &info); err != nil || info["last"] != 5 || info["deleted"] != 5 {
		t.Error(info, err)
	}
	var ids struct {
		IDs  []string `cbor:"ids"`
		Next string   `cbor:"next"`
	}
	if err := w.Request(all, "ids", map[string]any{"limit": 1}, &ids); err != nil || fmt.Sprint(ids) != "{[/user/ada] /user/ada}" {
		t.Error(ids, err)
	}
	after := ids.Next
	ids.IDs, ids.Next = nil, ""
	if err := w.Request(all, "ids", map[string]any{"after": after}, &ids); err != nil || fmt.Sprint(ids) != "{[/user/bob] }" {
		t.Error(ids, err)
	}
}

// Whoever waits is answered when there is something, or when the time is over.
func TestWaiting(t *testing.T) {
	w := start(t)
	all := w.Asker("all", grant(journal.Grant{IDs: []string{"/user/ada"}, Tags: []string{"in"}}, service.Bounds{}))
	answers := make(chan string, 4)
	ask := func(args map[string]any) {
		go func() {
			_, got := w.read(all, args)
			answers <- got
		}()
		for deadline := time.Now().Add(20 * time.Second); w.Running.Open() == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	ask(map[string]any{"tag": "in", "wait": int64(10 * time.Second)})
	w.put("ada", "out x") // not for it
	w.put("bob", "in y")
	if got := <-answers; got != "/user/bob#1 y" {
		t.Error(got)
	}
	ask(map[string]any{"id": "/user/ada", "from": 2, "wait": int64(5 * time.Second)})
	w.clock.Advance(5*time.Second - 1)
	if w.Running.Open() != 1 {
		t.Error("it was answered too early")
	}
	w.clock.Advance(1)
	if got := <-answers; got != "" {
		t.Error(got)
	}
}

func TestRefusals(t *testing.T) {
	w := start(t)
	one := w.Asker("one", grant(journal.Grant{IDs: []string{"/user/ada"}, Tags: []string{"in-*"}}, service.Bounds{}))
	tags := w.Asker("tags", grant(journal.Grant{Tags: []string{"in"}}, service.Bounds{}))
	none := w.Asker("none", nil)
	args := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	for _, c := range []struct {
		who  host.Ref
		op   string
		args map[string]any
		want string
	}{
		{one, "read", args("id", "/user/ada"), ""},
		{one, "read", args("tag", "in-x"), ""},
		{one, "read", args("id", "/user/bob"), `denied: the events of "/user/bob" are not granted; capabilities.journal.ids in the manifest would allow it`},
		{one, "read", args("id", "/user/ada/x"), `denied: the events of "/user/ada/x" are not granted; capabilities.journal.ids in the manifest would allow it`},
		{one, "read", args("tag", "in"), `denied: events with the tag "in" are not granted; capabilities.journal.tags in the manifest would allow it`},
		{one, "info", args("id", "/user/bob"), `denied: the events of "/user/bob" are not granted; capabilities.journal.ids in the manifest would allow it`},
		{tags, "ids", nil, "denied: the list of IDs is not granted; capabilities.journal.ids in the manifest would allow it"},
		{one, "read", args("id", "/user/ada", "tag", "in-x"), "bad_request: read takes id or tag, and one of them"},
		{one, "read", nil, "bad_request: read takes id or tag, and one of them"},
		{one, "read", args("id", "ada"), `bad_request: "ada" is no path, such as /user/account/ada`},
		{one, "read", args("tag", "a b"), `bad_request: the tag "a b" is not printable ASCII without spaces`},
		{one, "read", args("id", "/user/ada", "limit", 257), "bad_request: limit is 257, which is not between 1 and 256"},
		{one, "read", args("id", "/user/ada", "bytes", 1<<20), "bad_request: bytes is 1048576, which is not between 1 and 262144"},
		{one, "read", args("id", "/user/ada", "wait", int64(time.Minute)), "bad_request: wait is 1m0s, which is not between 0 and 20s"},
		{one, "read", args("tag", "in-x", "to", 3), "bad_request: to is for an id: a tag has no last number"},
		{one, "ids", args("limit", -1), "bad_request: limit is -1, which is not between 1 and 256"},
		{one, "ids", args("after", strings.Repeat("x", 5000)), "bad_request: after is no path, and no next of a page of this run"},
		{one, "ids", args("after", "~"), "bad_request: after is no path, and no next of a page of this run"},
		{one, "ids", args("after", "~"+strings.Repeat("A", 60)), "bad_request: after is no path, and no next of a page of this run"},
		{one, "read", args("id", "/user/ada\x00\x00\x00\x00"), `bad_request: "/user/ada\x00\x00\x00\x00" is no path, such as /user/account/ada`},
		{one, "write", nil, `bad_request: there is no operation "write"`},
		{none, "read", args("id", "/user/ada"), "the actor has not been granted"},
	} {
		err := w.Request(c.who, c.op, c.args, nil)
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s %v: %v, want %q", c.op, c.args, err, c.want)
		case err != nil && err.Error() != c.want && c.who != none:
			t.Errorf("%s %v: %q, want %q", c.op, c.args, err, c.want)
		}
	}
}

// A page of IDs shows no path that is not granted, not even where it ends. Whoever goes on from there finds all that are.
func TestPagesOfOtherIDs(t *testing.T) {
	defer journal.SetLooked(1)()
	w := start(t)
	for i := range 300 {
		name := fmt.Sprintf("b%03d", i)
		d := persist.Definition{Schema: new(persist.Schema).Type("note.put", 1)}
		if _, err := w.System.Spawn(name, w.notes.Props(d, func(l *persist.Log) persist.Actor { return &note{l} }, 0)); err != nil {
			t.Fatal(err)
		}
		w.put(name, "in x")
	}
	w.put("ada", "in x")
	w.put("bob", "in x")
	one := w.Asker("one", grant(journal.Grant{IDs: []string{"/user/ada", "/user/bob"}}, service.Bounds{}))
	var found []string
	after := ""
	for pages := 1; ; pages++ {
		var p struct {
			IDs  []string `cbor:"ids"`
			Next string   `cbor:"next"`
		}
		if err := w.Request(one, "ids", map[string]any{"after": after}, &p); err != nil {
			t.Fatal(err)
		}
		found = append(found, p.IDs...)
		if after = p.Next; after == "" {
			if pages < 2 {
				t.Error("all was on one page")
			}
			break
		}
		if strings.Contains(after, "user") {
			t.Errorf("it shows %q", after)
		}
	}
	if got := strings.Join(found, " "); got != "/user/ada /user/bob" {
		t.Error(got)
	}
}

// Without actors that keep events there is nothing to read.
func TestNoJournal(t *testing.T) {
	w := servicetest.New(t, journal.Service, nil, nil, nil)
	one := w.Asker("one", grant(journal.Grant{IDs: []string{"/user/ada"}}, service.Bounds{}))
	want := "unavailable: no actor of this bundle keeps events: durable: events in the manifest says which do"
	if err := w.Request(one, "read", map[string]any{"id": "/user/ada"}, nil); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// A page is on the account of the grant while it is read.
func TestPagesAreCounted(t *testing.T) {
	w := start(t)
	one := w.Asker("one", grant(journal.Grant{IDs: []string{"/user/ada"}}, service.Bounds{Bytes: 64 << 10}))
	if err := w.Request(one, "read", map[string]any{"id": "/user/ada", "bytes": 100_000}, nil); err == nil || !strings.HasPrefix(err.Error(), "busy: ") {
		t.Error(err)
	}
}

func TestFlood(t *testing.T) {
	w := start(t)
	g := grant(journal.Grant{IDs: []string{"/user/ada"}}, service.Bounds{})
	servicetest.Flood(t, w.System, w.Running, g, "read", func(int) any { return map[string]any{"id": "/user/ada"} })
}

func TestGrantsAreChecked(t *testing.T) {
	for want, g := range map[string]journal.Grant{
		"it grants nothing: ids and tags have patterns of whose events may be read": {},
		`ids[0]: the pattern "x" does not begin with /`:                             {IDs: []string{"x"}},
		"ids: 17 patterns, at most 16":                                              {IDs: make([]string, 17)},
		"tags: 17 patterns, at most 16":                                             {Tags: make([]string, 17)},
		`tags[1]: the tag "a b" is not printable ASCII without spaces`:              {Tags: []string{"a", "a b"}},
		`tags[0]: the tag "*********" has more than 8 wildcards`:                    {Tags: []string{"*********"}},
		"tags[0]: a tag has 1 to 128 bytes, not 0":                                  {Tags: []string{""}},
		"": {IDs: []string{"/user/**"}, Tags: []string{"*"}},
	} {
		err := journal.Service.CheckGrant(&g)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A guest follows a tag: it gets what there is, and what comes, once each and in order. With other actors, it reads a page,
// the list of IDs and what is known of one.
func TestGuestsRead(t *testing.T) {
	w := start(t)
	w.put("ada", "in one")
	w.put("ada", "out no")
	g := grant(journal.Grant{IDs: []string{"/user/**"}, Tags: []string{"in"}}, service.Bounds{})
	follower := w.Spawn("follower", "journal-follower", g, "in")
	reader := w.Spawn("reader", "journal-reader", g, nil)
	for i := range 20 {
		w.put("bob", fmt.Sprintf("in b%d", i))
	}
	want := "/user/ada#1 one"
	for i := range 20 {
		want += fmt.Sprintf(";/user/bob#%d b%d", i+1, i)
	}
	got := ""
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for got != want && ctx.Err() == nil {
		if err := w.Idle(ctx); err != nil { // questions are answered before time passes
			t.Fatal(err)
		}
		w.clock.Advance(time.Second) // it looks every second
		var err error
		if got, err = host.AskAs[string](ctx, w.System, follower, "heard"); err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for ask, want := range map[string]string{
		"read /user/ada": "/user/ada#1 one;/user/ada#2 no next=3",
		"ids":            "/user/ada,/user/bob next=",
		"info /user/bob": "last=20 deleted=0",
		"read /system/x": `denied: the events of "/system/x" are not granted; capabilities.journal.ids in the manifest would allow it`,
	} {
		if got, err := host.AskAs[string](ctx, w.System, reader, ask); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", ask, got, err, want)
		}
	}
}
