package persist_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/keyed"
	"github.com/wasmactors/wasmactors/host/persist"
)

// basket is the basket of testdata, in Go.
type basket struct {
	keeper *persist.Keeper
	things string
	more   int
	tag    string
}

func (b *basket) Save() (any, error) {
	if b.things == "" && b.more == 0 {
		return nil, nil
	}
	return b.things + strings.Repeat("x", b.more), nil
}

func (b *basket) Load(payload host.Raw) error {
	var s string
	err := host.Message{Payload: payload}.Decode(&s)
	b.things = strings.TrimRight(s, "x")
	b.more = len(s) - len(b.things)
	return err
}

func (b *basket) Tags() []string {
	if b.tag == "" {
		return nil
	}
	return []string{b.tag}
}

func (b *basket) Apply(e *persist.Event) error {
	s, err := textOf(e)
	b.things += s + " "
	return err
}

func (b *basket) tell(ctx *host.Context, s string) {
	if probe, err := ctx.System().Lookup("/user/probe"); err == nil {
		_ = ctx.Tell(probe, s)
	}
}

func (b *basket) say(ctx *host.Context, what string) {
	b.tell(ctx, fmt.Sprintf("%s %d: %s%d", what, b.keeper.Revision(), b.things, b.more))
}

func (b *basket) Recovered(ctx *host.Context) error {
	b.say(ctx, "recovered")
	return nil
}

func (b *basket) Receive(ctx *host.Context, m host.Message) error {
	var s string
	if m.Decode(&s) != nil {
		return host.ErrUnhandled
	}
	what, rest, _ := strings.Cut(s, " ")
	var err error
	switch what {
	case "put":
		b.things += rest + " "
	case "keep":
		b.things += rest + " "
		err = b.keeper.Keep()
	case "more":
		b.more, err = strconv.Atoi(rest)
	case "tag":
		b.tag = rest
	case "clear":
		b.things, b.more = "", 0
	case "forget":
		err = b.keeper.Forget()
	case "fail":
		b.things += rest + " "
		if err = b.keeper.Keep(); err == nil {
			return errors.New("as told")
		}
	case "say":
		b.say(ctx, "says")
	case "stop":
		ctx.Stop(ctx.Self())
	default:
		return host.ErrUnhandled
	}
	if err != nil {
		b.tell(ctx, "error "+err.Error())
	}
	if !m.Sender.IsZero() {
		return ctx.Reply(b.keeper.Revision())
	}
	return nil
}

func (w *world) basketInGo(typ, args string, limit int64) host.Props {
	if typ == "diary" {
		return w.inGo(typ, args, limit)
	}
	d := persist.StateDefinition{Type: "basket.state"}
	if typ != "basket" {
		d.Automatic, d.Events = true, new(persist.Schema).Type("diary.note", 2)
	}
	same := func(b host.Raw) (any, error) { return b, nil }
	switch typ {
	case "second":
		d.Version, d.Migrations = 2, map[uint16]func(host.Raw) (any, error){1: func(b host.Raw) (any, error) {
			var s string
			err := host.Message{Payload: b}.Decode(&s)
			return "old " + s, err
		}}
	case "third":
		d.Version, d.Migrations = 3, map[uint16]func(host.Raw) (any, error){2: same}
	}
	return w.journal.StateProps(d, func(k *persist.Keeper) persist.Stateful { return &basket{keeper: k} }, limit)
}

// baskets is both for actors that keep their state.
func baskets(t *testing.T, f func(w *world)) {
	both(t, func(w *world) {
		if !w.isGuest() {
			w.props = w.basketInGo
		}
		f(w)
	})
}

// isGuest reports whether the actors of the world are guests.
func (w *world) isGuest() bool { return strings.HasSuffix(w.t.Name(), "/guest") }

func (w *world) info(id string) persist.Info {
	w.t.Helper()
	if err := w.journal.Idle(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return must(w.journal.Info(id))(w.t)
}

// kept is what there is of an ID.
func (w *world) kept(id, want string) {
	w.t.Helper()
	got := ""
	for e, err := range w.journal.ByID(context.Background(), id, persist.Query{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		s, _ := textOf(&e)
		got += fmt.Sprintf("%d %s@%d %s%v", e.Number, e.Type, e.Version, s, e.Tags)
	}
	if got != want {
		w.t.Errorf("%s has %q, want %q", id, got, want)
	}
}

// The latest state outlives the process, and a turn that fails has kept nothing.
func TestTheLatestStateIsKept(t *testing.T) {
	baskets(t, func(w *world) {
		a := w.spawn("a", "basket", "")
		w.wants("recovered 0: 0")
		w.say(a, "keep tea", "put jam", "keep egg")
		w.kept("/user/a", "2 basket.state@1 tea jam egg []")
		w.say(a, "put rum")
		w.again()
		a = w.spawn("a", "basket", "")
		w.wants("recovered 2: tea jam egg 0")
		if reasons := w.failures(func() { w.say(a, "fail pie") }); len(reasons) != 1 {
			t.Error(reasons)
		}
		w.kept("/user/a", "2 basket.state@1 tea jam egg []")
		w.wants("recovered 2: tea jam egg 0")
		w.say(a, "keep ham", "say")
		w.wants("says 3: tea jam egg ham 0")
		w.say(a, "forget")
		w.kept("/user/a", "")
		w.again()
		w.spawn("a", "basket", "")
		w.wants("recovered 3: 0")
	})
}

// With Automatic nobody says when, and messages that came together are kept once.
func TestStatesAreKeptByThemselves(t *testing.T) {
	baskets(t, func(w *world) {
		a := w.spawn("a", "auto", "")
		w.say(a, "say")
		w.kept("/user/a", "")
		w.say(a, "put tea", "put jam", "tag red", "say", "put egg")
		w.kept("/user/a", "4 basket.state@1 tea jam egg [red]")
		if reasons := w.failures(func() { w.say(a, "put ham", "more 1048576", "put rum") }); len(reasons) != 1 || !strings.Contains(reasons[0], "of at most 1044480") {
			t.Error(reasons)
		}
		w.heard = nil
		w.say(a, "say")
		if len(w.heard) != 1 || !strings.HasSuffix(w.heard[0], ": tea jam egg ham rum 0") {
			t.Error(w.heard)
		}
		w.say(a, "clear")
		w.kept("/user/a", "")
		if info := w.info("/user/a"); info.Bytes != 0 || info.Last != info.Deleted || info.Last == 0 {
			t.Errorf("%+v", info)
		}
	})
}

// Others find the latest states by their tags, those that there are and those that come, and not what was before.
func TestStatesAreFoundByTags(t *testing.T) {
	baskets(t, func(w *world) {
		a, b := w.spawn("a", "auto", ""), w.spawn("b", "auto", "")
		w.say(a, "tag red", "put 1")
		w.say(b, "tag red", "put 2")
		w.say(a, "put 3")
		tagged := func(from uint64) (list string, next uint64) {
			p, err := w.journal.PageByTag(t.Context(), "red", persist.Query{From: from}, 1<<18)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range p.Events {
				s, _ := textOf(&e)
				list += fmt.Sprintf("%s %s| ", e.ID, s)
			}
			return list, p.Next
		}
		got, next := tagged(0)
		if got != "/user/b 2 | /user/a 1 3 | " {
			t.Error(got)
		}
		live := make(chan string, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		go func() {
			for e, err := range w.journal.ByTag(ctx, "red", persist.Query{From: next, Live: true}) {
				if err != nil {
					live <- err.Error()
					return
				}
				s, _ := textOf(&e)
				live <- fmt.Sprint(e.ID, " ", s)
				return
			}
		}()
		w.say(b, "put 4")
		if got := <-live; got != "/user/b 2 4 " {
			t.Error(got)
		}
		w.say(b, "clear")
		if got, _ := tagged(0); got != "/user/a 1 3 | " {
			t.Error(got)
		}
	})
}

// New code takes the state over by its migrations, and stops where there is no way; what was kept is as it was then.
func TestStatesGoOverToNewCode(t *testing.T) {
	baskets(t, func(w *world) {
		w.say(w.spawn("a", "basket", ""), "keep tea")
		w.again()
		var reasons []string
		reasons = w.failures(func() { w.spawn("a", "third", "") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "event 1 (basket.state@1): no migration leads from version 1 to 2, and this code reads version 3: add the migration") {
			t.Error(reasons)
		}
		if _, err := w.Lookup("/user/a"); err == nil {
			t.Error("it has not stopped")
		}
		w.kept("/user/a", "1 basket.state@1 tea []")
		w.heard = nil
		w.spawn("a", "second", "")
		w.wants("recovered 1: old tea 0")
		w.kept("/user/a", "2 basket.state@2 old tea []")
		w.again()
		w.spawn("a", "third", "")
		w.wants("recovered 2: old tea 0")
		w.kept("/user/a", "3 basket.state@3 old tea []")
		w.again()
		reasons = w.failures(func() { w.spawn("a", "second", "") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "it was kept by newer code") {
			t.Error(reasons)
		}
	})
}

// What was stored as events is taken over where the definition says so, and is refused elsewhere; so is a state by code that keeps events.
func TestEventsBecomeStates(t *testing.T) {
	baskets(t, func(w *world) {
		w.say(w.spawn("a", "diary", ""), "put tea", "put jam", "stop")
		w.heard = nil
		reasons := w.failures(func() { w.spawn("a", "basket", "") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "event 1 is of the unknown type diary.note@2, and the actor keeps its state as basket.state") {
			t.Error(reasons)
		}
		a := w.spawn("a", "auto", "")
		w.wants("recovered 2: tea jam 0")
		w.say(a, "put egg")
		if info := w.info("/user/a"); info.Last-info.Deleted != 1 {
			t.Errorf("%+v", info)
		}
		w.say(a, "stop")
		reasons = w.failures(func() { w.spawn("a", "diary", "") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "is of the unknown type basket.state@1: it needs an upcaster") {
			t.Error(reasons)
		}
	})
}

// The largest state that can be kept can be loaded.
func TestLargeStates(t *testing.T) {
	baskets(t, func(w *world) {
		a := w.spawn("a", "auto", "")
		const most = 1044480 - 5 // the head of the text
		w.say(a, fmt.Sprint("more ", most))
		w.again()
		w.heard = nil
		a = w.spawn("a", "auto", "")
		w.wants(fmt.Sprint("recovered 1: ", most))
		w.say(a, "more 10", "more 400000", "more 500000", "more 5")
		var many []string // more than the commands of one entry may be
		for n := range 12 {
			many = append(many, fmt.Sprint("more ", 400_000+n))
		}
		if reasons := w.failures(func() { w.say(a, append(many, "more 5")...) }); len(reasons) != 0 {
			w.t.Error(reasons)
		}
		if info := w.info("/user/a"); info.Bytes > 200 {
			t.Errorf("%+v", info)
		}
	})
}

// A state is bounded by limits.durable, however often it is kept.
func TestStatesAreBounded(t *testing.T) {
	baskets(t, func(w *world) {
		a := must(w.Spawn("a", w.props("auto", "", 2000)))(t)
		w.run()
		for n := range 20 {
			w.say(a, fmt.Sprint("more ", 1800+n))
		}
		reasons := w.failures(func() { w.say(a, "more 2000") })
		if len(reasons) != 1 || !strings.Contains(reasons[0], "raise limits.durable") || !strings.Contains(reasons[0], abi.FailureMemoryLimit.String()) {
			t.Error(reasons)
		}
		w.heard = nil
		w.say(a, "say")
		if len(w.heard) != 1 || !strings.HasSuffix(w.heard[0], ": 1819") {
			t.Error(w.heard)
		}
	})
}

// A key whose state the code cannot read begins again with the messages for it, and not as fast as it can: it is a failure like any other.
func TestKeysThatCannotBeRead(t *testing.T) {
	baskets(t, func(w *world) {
		carts := func(typ string) host.Ref {
			ref := must(w.Spawn("carts", keyed.New(w.props(typ, "", 0)).Props()))(w.t)
			w.run()
			return ref
		}
		tell := func(to host.Ref) {
			if err := w.Tell(to, keyed.For("ann", "put tea")); err != nil {
				w.t.Fatal(err)
			}
			w.run()
		}
		tell(carts("auto"))
		w.again()
		ref := carts("third")
		n := len(w.failures(func() {
			tell(ref)
			w.clock.Advance(time.Minute)
			w.run()
		}))
		if n == 0 || n > 20 {
			w.t.Errorf("%d failures in a minute", n)
		}
		w.kept("/user/carts/ann", "1 basket.state@1 tea []")
	})
}
