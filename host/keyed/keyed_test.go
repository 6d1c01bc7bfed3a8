package keyed_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/supervision"
	"pgregory.net/rapid"
)

// Names stand for keys one to one, whatever the keys are.
func TestNamesOfKeys(t *testing.T) {
	for key, want := range map[string]string{"alice": "alice", "a/b": "a~2Fb", ".": "~2E", "..": "~2E~2E", "...": "...", "~": "~7E", "a\x00\n": "a~00~0A", "": "", strings.Repeat("x", 256): "", strings.Repeat("/", 86): ""} {
		if got, err := keyed.Name(key); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", key, got, err)
		}
	}
	for _, name := range []string{"", "~", "~4", "~41", "~zz", "~2f", "a~", "a/b", "~2E~2E~2E", ".", "a b"} {
		if key, ok := keyed.Key(name); ok {
			t.Errorf("%q is the name of %q", name, key)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, "key"))
		name, err := keyed.Name(key)
		if err != nil || !abi.ValidName([]byte(name)) {
			t.Fatalf("%q: %q, %v", key, name, err)
		}
		if again, ok := keyed.Key(name); !ok || again != key {
			t.Fatalf("%q became %q", key, again)
		}
	})
}

// The first message starts a key's actor; it ends exactly so long after the end of its last turn.
func TestStartAndEnd(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	w.asks(r, keyed.For("a", "who"), "a 1")
	w.pass(59 * time.Second)
	w.asks(r, keyed.For("a", "who"), "a 2")
	w.tell(r, "b", "x")
	w.pass(59 * time.Second)
	w.pass(time.Second - 1)
	w.there("a", "b")
	w.pass(1)
	w.there()
	w.asks(r, keyed.For("a", "who"), "a 1")
}

// What is under way keeps an actor awake; from its end on time counts.
func TestWhatKeepsAwake(t *testing.T) {
	for verb, also := range map[string]string{"timer 150s": "", "ask 150s": "", "every 30s": "never", "later": "answer", "child": "child", "hold": "never"} {
		t.Run(verb, func(t *testing.T) {
			w := newWorld(t)
			r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
			switch p, err := w.Request(r, keyed.For("a", verb)); {
			case err != nil:
				t.Fatal(err)
			default:
				w.run()
				defer p.Cancel()
			}
			for range 150 {
				w.pass(time.Second)
			}
			w.there("a")
			switch also {
			case "never":
				w.pass(time.Hour)
				w.there("a")
				return
			case "child":
				if err := w.TellPath("/user/users/a/c", "end"); err != nil {
					t.Fatal(err)
				}
				w.run()
			case "answer":
				w.tell(r, "a", "answer")
			}
			w.endsIn(time.Minute)
		})
	}
}

// A message by the path of a key's actor is one for the key, whether the actor is there or not;
// in the order of those by header.
func TestByPath(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	for _, f := range []func() error{
		func() error { return w.TellPath("/user/users/a", "1") },
		func() error { return w.Tell(r, keyed.For("a", "2")) },
		func() error { return w.TellPath("/user/users/a", keyed.For("b", "3")) }, // the path counts
		func() error { return w.Tell(r, keyed.For("a", "4")) },
		func() error { return w.TellPath("/user/users/a~2Fb", "5") },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	slices.SortStableFunc(w.heard, func(a, b string) int { return strings.Compare(a[:2], b[:2]) }) // actors run in any order
	w.wants("a:1", "a:2", "a:3", "a:4", "a~2Fb:5")
	if err := w.TellPath("/user/users/*", "all"); err != nil {
		t.Fatal(err)
	}
	w.run()
	slices.Sort(w.heard)
	w.wants("a:all", "a~2Fb:all")
	at, err := w.AddressOf("/user/users/c") // who is not there yet
	if err != nil || at.To != r {
		t.Fatal(at.To, err)
	}
	w.asks(at.To, at.Message("who"), "c 1")
	if at, err := w.AddressOf("/user/users"); err != nil || at.To != r {
		t.Error(at.To, err)
	}
	if _, err := w.AddressOf("/user/none/x"); err == nil {
		t.Error("nobody has an address")
	}
	w.heard = nil
	for _, path := range []string{"/user/users/~41", "/user/users/a\nb"} { // names of no key
		_ = w.TellPath(path, "x")
		w.run()
		w.wants()
	}
	if err := w.TellPath("/user/users/none/below", "x"); err == nil {
		t.Error("nobody has got it")
	}
	w.there("a", "a~2Fb", "c")
}

// Where the key of a message is.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithHeader("user").WithField("id").WithKey(func(m *host.Message) []byte {
		var s string
		if m.Decode(&s) == nil && strings.HasPrefix(s, "key ") {
			return []byte(s[4:])
		}
		if s == "panic" {
			panic("x")
		}
		return nil
	}))
	for _, c := range []struct {
		v    any
		want string
	}{
		{"key f", "f:key f"},
		{host.Headed{Value: "x", Headers: map[string]string{"user": "h"}}, "h:x"},
		{host.Headed{Value: "key f", Headers: map[string]string{"user": "h"}}, "f:key f"},
		{map[string]any{"a": 1, "id": "text"}, "text:?"},
		{map[string]any{"id": 7}, "7:?"},
		{map[string]any{"id": -7}, "-7:?"},
		{map[string]any{"id": []byte("b")}, "b:?"},
		{map[string]any{"id": 1.5}, ""},
		{map[string]any{"id": ""}, ""},
		{map[string]any{"other": 1}, ""},
		{"panic", ""},
		{keyed.For("k", "x"), ""}, // not the header that was chosen
	} {
		if err := w.Tell(r, c.v); err != nil {
			t.Fatal(err)
		}
		w.run()
		if c.want == "" {
			w.asks(r, c.v, keyed.ErrNoKey.Error())
			w.wants()
		} else {
			w.wants(c.want)
		}
	}
	w.asks(r, host.Headed{Value: 1, Headers: map[string]string{"user": ""}}, keyed.ErrBadKey.Error())
	w.asks(r, host.Headed{Value: 1, Headers: map[string]string{"user": strings.Repeat("k", 300)}}, keyed.ErrBadKey.Error())
}

// A crash of one key touches no other, and loses nothing that waits.
func TestCrashTouchesNoOther(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	w.tell(r, "b", "x")
	for _, text := range []string{"1", "crash", "2"} {
		if err := w.Tell(r, keyed.For("a", text)); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	w.wants("b:x", "a:1", "a:crash", "a:2")
	w.asks(r, keyed.For("b", "who"), "b 2")
	if w.starts["b"] != 1 || w.starts["a"] != 2 {
		t.Error(w.starts)
	}
	if err := keyed.New(w.worker()).WithSupervision(supervision.Default().WithKind(supervision.AllForOne)).Check(); err == nil {
		t.Error("a failure of one may touch all")
	}
}

// What waits for an actor that ends by its own wish is handled by the next one, in order.
func TestOwnEnd(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	for _, text := range []string{"1", "stop", "2", "stop", "3", "4"} {
		if err := w.Tell(r, keyed.For("a", text)); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	w.wants("a:1", "a:stop", "a:2", "a:stop", "a:3", "a:4")
	if w.starts["a"] != 3 {
		t.Error(w.starts)
	}
}

// A key whose actor fails at every start is not started at every message, and who asks is answered.
func TestFailsAtEveryStart(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()))
	got := w.ask(r, keyed.For("bad", "who"))
	if got == "" || w.starts["bad"] != 1 {
		t.Errorf("%q, %d starts", got, w.starts["bad"])
	}
	for range 100 {
		w.asks(r, keyed.For("bad", "who"), keyed.ErrFailed.Error())
	}
	w.asks(r, keyed.For("good", "who"), "good 1")
	for range 3600 { // an hour, a message a second: after each minute one start
		w.pass(time.Second)
		if w.ask(r, keyed.For("bad", "who")) == "" {
			t.Fatal("no answer")
		}
	}
	if n := w.starts["bad"]; n < 50 || n > 80 {
		t.Errorf("%d starts within an hour", n)
	}
}

// Beyond the bound messages are refused at once, or the one that was used least recently ends, if it
// has nothing to do.
func TestAtLimit(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(2))
	w.tell(r, "a", "x")
	w.tell(r, "b", "x")
	w.asks(r, keyed.For("c", "who"), keyed.ErrFull.Error())
	w.there("a", "b")
	w.pass(keyed.DefaultIdle)
	w.asks(r, keyed.For("c", "who"), "c 1")

	w = newWorld(t)
	r = w.start(keyed.New(w.worker()).WithMax(3).WithAtLimit(keyed.Evict))
	for _, key := range []string{"a", "b", "c", "a"} {
		w.tell(r, key, "x")
	}
	w.asks(r, keyed.For("d", "who"), "d 1") // instead of b
	w.there("a", "c", "d")
	w.tell(r, "c", "timer 1h")
	w.tell(r, "a", "timer 1h")
	w.asks(r, keyed.For("e", "who"), "e 1")
	w.there("a", "c", "e")
	w.tell(r, "e", "timer 1h")
	w.asks(r, keyed.For("f", "who"), keyed.ErrFull.Error())
}

// 10^5 keys that somebody makes up: no more actors than there may be, and nothing else grows.
func TestFloodOfKeys(t *testing.T) {
	for _, at := range []keyed.AtLimit{keyed.Refuse, keyed.Evict} {
		w := newWorld(t)
		r := w.start(keyed.New(w.worker()).WithMax(50).WithAtLimit(at).WithRemember(20))
		n := 20_000
		if testing.Short() {
			n = 2000
		}
		for i := range n {
			_ = w.Tell(r, keyed.For("k"+strconv.Itoa(i), "x"))
			if i%500 == 0 {
				w.run()
				if got := len(w.Select("/user/users/*")); got > 50 {
					t.Fatalf("%d actors", got)
				}
			}
		}
		w.run()
		w.heard = nil
		past := w.page(r, keyed.Page{Past: true})
		if len(past) > 20 || at == keyed.Evict && len(past) != 20 {
			t.Errorf("%d are remembered", len(past))
		}
		if h := must(w.View().Held(r))(t); h.Total() > 1<<20 {
			t.Errorf("%+v is held", h)
		}
	}
}

// One sender cannot begin all keys there may be.
func TestPerSender(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(10).WithMaxPerSender(3))
	front := func(name string) host.Ref {
		return must(w.Spawn(name, host.Func(func(ctx *host.Context, m host.Message) error {
			var key string
			if err := m.Decode(&key); err != nil {
				return err
			}
			return ctx.Tell(r, keyed.For(key, "x"))
		})))(t)
	}
	one, other := front("one"), front("other")
	for _, key := range []string{"a", "b", "c", "d", "a"} {
		_ = w.Tell(one, key)
	}
	w.run()
	w.there("a", "b", "c")
	_ = w.Tell(other, "d")
	w.run()
	w.there("a", "b", "c", "d")
	w.pass(keyed.DefaultIdle)
	_ = w.Tell(one, "e")
	w.run()
	w.there("e")
}

// Nor by having Go code send because of it, as the schedule does: it is the actor's share all the same, also if
// others pass or forward what was sent, and also when the actor has gone.
func TestPerSenderOnBehalf(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(20).WithMaxPerSender(3))
	one := must(w.Spawn("one", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Tell(r, keyed.For("a", "x")) })))(t)
	pass := must(w.Spawn("pass", host.Func(func(ctx *host.Context, m host.Message) error { return ctx.Head().Pass(r) })))(t)
	forward := must(w.Spawn("forward", host.GuestOf(servicetest.Module(t), "service-forwarder").WithArgs(uint64(r.UID()))))(t)
	w.run()
	because := func(to host.Ref, of, key string) {
		t.Helper()
		if err := w.Tell(to, host.OnBehalf{Of: of, Value: keyed.For(key, "x")}); err != nil {
			t.Fatal(err)
		}
		w.run()
	}
	_ = w.Tell(one, 1)
	w.run()
	because(pass, "/user/one", "b")
	because(forward, "/user/one", "c")
	because(r, "/user/one", "d")
	because(pass, "/user/one", "d")
	because(forward, "/user/one", "d")
	w.there("a", "b", "c")
	if at, err := w.AddressOf("/user/users/e"); err != nil {
		t.Error(err)
	} else if _ = w.Tell(at.To, at.Message(host.OnBehalf{Of: "/user/one", Value: "x"})); true {
		w.run()
		w.there("a", "b", "c")
	}
	for _, key := range []string{"p", "q", "r", "s"} {
		because(r, "/user/gone", key)
	}
	w.there("a", "b", "c", "p", "q", "r")
	_ = w.Tell(r, keyed.For("z", "x")) // of nobody: there is no bound
	w.run()
	w.there("a", "b", "c", "p", "q", "r", "z")
	w.pass(keyed.DefaultIdle)
	w.there()
	because(r, "/user/gone", "s")
	w.there("s")
}

// A key that waits for a place counts for who has sent to it first, so that nobody pushes out more than its share.
func TestKeysThatWaitCountForTheirSender(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(2).WithMaxPerSender(1).WithAtLimit(keyed.Evict))
	w.tell(r, "a", "x")
	w.tell(r, "b", "x")
	one := must(w.Spawn("one", host.Func(func(*host.Context, host.Message) error { return nil })))(t)
	w.run()
	for _, key := range []string{"c", "d"} {
		if err := w.TellFrom(one, r, keyed.For(key, "x")); err != nil {
			t.Fatal(err)
		}
	}
	w.run()
	w.there("b", "c")
}

// Nor by forwarding what its timers bring, which nobody has sent.
func TestForwardedTimersHaveASender(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(10).WithMaxPerSender(3).WithField("key"))
	must(w.Spawn("sly", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind == abi.KindTimer {
			return ctx.Forward(r)
		}
		for i := range uint64(6) {
			if err := ctx.After(i, time.Millisecond, 0, map[string]string{"key": fmt.Sprint("k", i)}); err != nil {
				return err
			}
		}
		return nil
	})))(t)
	sly := must(w.Lookup("/user/sly"))(t)
	_ = w.Tell(sly, 1)
	w.run()
	w.pass(10 * time.Millisecond)
	w.there("k0", "k1", "k2")
}

// Bytes bound the actors, too.
func TestMaxBytes(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMaxBytes(100 << 10).WithAtLimit(keyed.Evict))
	for i := range 100 {
		if got := w.ask(r, keyed.For("k"+strconv.Itoa(i), "who")); got != fmt.Sprintf("k%d 1", i) {
			t.Fatalf("k%d: %q, %d actors, %+v", i, got, len(w.Select("/user/users/*")), must(w.View().Held(r))(t))
		}
	}
	if n := len(w.Select("/user/users/*")); n < 5 || n > 25 {
		t.Errorf("%d actors in 100 KiB", n)
	}
}

// A restart of the keeper loses no message that waits.
func TestKeeperRestarts(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		w := newWorldThat(t, keeps)
		r := w.start(keyed.New(w.worker()))
		w.tell(r, "a", "x")
		a := must(w.Lookup("/user/users/a"))(t)
		_ = w.Tell(r, keyed.For("a", "1"))
		_ = w.Tell(a, "2")
		_ = w.Tell(r, keyed.For("b", "3"))
		if err := w.Operate().Restart(r); err != nil {
			t.Fatal(err)
		}
		_ = w.Tell(r, keyed.For("a", "4"))
		w.run()
		if got := strings.Join(w.heard, " "); !strings.Contains(got, "a:1") || !strings.Contains(got, "a:2") || !strings.Contains(got, "b:3") || !strings.HasSuffix(got, "a:4") && !strings.Contains(got, "a:4") {
			t.Errorf("%v: heard %q", keeps, got)
		}
		if strings.Index(strings.Join(w.heard, " "), "a:1") > strings.Index(strings.Join(w.heard, " "), "a:4") {
			t.Errorf("%v: out of order: %q", keeps, w.heard)
		}
		w.heard = nil
		w.pass(keyed.DefaultIdle)
		w.there()
	}
}

func (w *world) page(r host.Ref, p keyed.Page) (out []keyed.Entry) {
	w.t.Helper()
	q := must(w.Request(r, host.Headed{Value: p, Headers: map[string]string{keyed.Header: "keys"}}))(w.t)
	w.run()
	m := <-q.Answer()
	if err := m.Err(); err != nil {
		w.t.Fatal(err)
	}
	if err := m.Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Keys can be listed, those whose actors have ended, too, in pages; and ended by hand.
func TestListing(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithIdle(time.Minute))
	for _, key := range []string{"c", "a/1", "b"} {
		w.tell(r, key, "x")
	}
	w.ask(r, keyed.For("bad", "x"))
	show := func(es []keyed.Entry) (s string) {
		for _, e := range es {
			s += e.Key + " " + e.State + ";"
		}
		return s
	}
	if got := show(w.page(r, keyed.Page{})); got != "a/1 awake;b awake;bad failed;c awake;" {
		t.Error(got)
	}
	if got := show(w.page(r, keyed.Page{After: "a/1", Most: 2})); got != "b awake;bad failed;" {
		t.Error(got)
	}
	w.asks(r, host.Headed{Value: "b", Headers: map[string]string{keyed.Header: "passivate"}}, "<nil>")
	w.there("a~2F1", "c")
	if got := show(w.page(r, keyed.Page{Past: true})); got != "b past;" {
		t.Error(got)
	}
	w.asks(r, host.Headed{Value: "b", Headers: map[string]string{keyed.Header: "x"}}, "keyed: there is no such order: x")
	foe := must(w.Spawn("foe", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Kind != abi.KindMessage {
			w.heard = append(w.heard, answerOf(m))
			return nil
		}
		return ctx.Ask(r, host.Headed{Value: nil, Headers: map[string]string{keyed.Header: "keys"}}, 1, time.Second)
	})))(t)
	w.heard = nil
	_ = w.Tell(foe, "x")
	w.run()
	w.wants("keyed: the sender may not manage the keys")
}

// What one key has waiting is bounded, and not at the expense of others.
func TestBuffer(t *testing.T) {
	w := newWorld(t)
	r := w.start(keyed.New(w.worker()).WithMax(2).WithAtLimit(keyed.Evict).WithBuffer(8, 1<<20))
	w.tell(r, "a", "x")
	w.tell(r, "b", "x")
	a := must(w.Lookup("/user/users/a"))(t)
	if err := w.Operate().Pause(a, false); err != nil { // it does not come to the request to end
		t.Fatal(err)
	}
	w.run()
	w.Operate().Unpause(a, false)
	for range 5 {
		_ = w.Tell(r, keyed.For("c", "x"))
	}
	w.heard = nil
	w.run()
	w.wants("c:x", "c:x") // a quarter of 8
}
