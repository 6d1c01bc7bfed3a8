//go:build !wasip1

package persist_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/persist"
)

// basket keeps texts. It does what the texts that it is sent say.
type basket struct {
	keeper    *persist.Keeper
	things    []string
	tags      []string
	loaded    int
	recovered bool
}

func (b *basket) Save(_ *actor.Context, w *abi.Writer) error {
	if slices.Contains(b.things, "torn") {
		w.Encoded("\x81")
	} else if slices.Contains(b.things, "refused") {
		return errors.New("it is refused")
	} else if len(b.things) > 0 {
		w.Text(strings.Join(b.things, " "))
	}
	return nil
}

func (b *basket) Load(_ *actor.Context, r *abi.Reader) error {
	b.loaded++
	b.things = strings.Fields(r.Text())
	return nil
}

func (b *basket) Tags() []string { return b.tags }

func (b *basket) Recovered(*actor.Context) error {
	b.recovered = !b.keeper.Recovering()
	return nil
}

func (b *basket) Receive(ctx *actor.Context, msg *actor.Message) error {
	what, rest, _ := strings.Cut(msg.Text(), " ")
	var err error
	switch what {
	case "put":
		b.things = append(b.things, rest)
	case "keep":
		b.things = append(b.things, rest)
		err = b.keeper.Keep(ctx)
	case "again":
		err = b.keeper.Keep(ctx)
	case "clear":
		b.things = nil
	case "forget":
		err = b.keeper.Forget(ctx)
	case "tag":
		b.tags = strings.Fields(rest)
	case "large":
		b.things = []string{strings.Repeat("x", 1<<20)}
	case "fail":
		b.things = append(b.things, rest)
		return errors.New("as told")
	case "unhandled":
		b.things = append(b.things, rest)
		return actor.ErrUnhandled
	case "wait":
		ctx.Wait(time.Second, func(*actor.Context, *actor.Message) error {
			b.things = append(b.things, rest)
			return nil
		})
	case "ask":
		ctx.AskPath("/user/other", actor.Text(rest), time.Second, func(ctx *actor.Context, m *actor.Message) error {
			b.things = append(b.things, m.Text())
			return nil
		})
	}
	if err != nil {
		return ctx.ReplyError(err.Error())
	}
	return ctx.Reply(actor.Text(strconv.FormatUint(b.keeper.Revision(), 10) + ": " + strings.Join(b.things, " ")))
}

// ledger has kept events before.
type ledger struct{ basket }

func (b *ledger) Apply(e *persist.Event) error {
	var s actor.Text
	err := persist.Decode(e, &s)
	b.things = append(b.things, string(s))
	return err
}

func (b *ledger) Restore(version uint16, r *abi.Reader) error {
	b.things = []string{"snapshot" + strconv.Itoa(int(version)), r.Text()}
	return nil
}

func text(s string) func(w *abi.Writer) { return func(w *abi.Writer) { w.Text(s) } }

func init() {
	make := func(k *persist.Keeper) actor.Saver { return &basket{keeper: k} }
	d := persist.StateDefinition{Type: "basket.state"}
	persist.RegisterState("basket", d, make)
	d.Automatic = true
	persist.RegisterState("auto", d, make)
	d.State = actor.Saves(3).Migrate(2, func(r *abi.Reader, w *abi.Writer) error {
		s := r.Text()
		if s == "odd" {
			return errors.New("it is odd")
		}
		w.Text(s + " migrated")
		return nil
	})
	persist.RegisterState("newer", d, make)
	d = persist.StateDefinition{Type: "basket.state", Automatic: true, Events: new(persist.Schema).Type("basket.put", 2).Type("basket.state", 1).
		Upcast("basket.put", 1, func(e persist.Event) ([]persist.Event, error) { e.Version = 2; return []persist.Event{e}, nil }).
		Upcast("bag.state", 1, func(e persist.Event) ([]persist.Event, error) {
			e.Type = "basket.state"
			return []persist.Event{e}, nil
		})}
	persist.RegisterState("ledger", d, func(k *persist.Keeper) actor.Saver { return &ledger{basket{keeper: k}} })
}

// says sends a text and returns the answer, without the revision.
func says(t *testing.T, a *actortest.Actor, text string, want string) *actortest.Turn {
	t.Helper()
	turn := a.Send(actor.Text(text))
	if got := turn.Reply().Text(); got != want {
		t.Errorf("%s: %q, want %q", text, got, want)
	}
	return turn
}

func stored(t *testing.T, a *actortest.Actor, want string) {
	t.Helper()
	got := ""
	for _, e := range a.Events() {
		r := abi.NewReader(e.Payload)
		got += strconv.FormatUint(e.Number, 10) + " " + e.Type + "@" + strconv.Itoa(int(e.Version)) + " " + r.Text() + strings.Join(append([]string{""}, e.Tags...), " #")
	}
	if got != want || len(a.Snapshots()) > 0 {
		t.Errorf("there is %q and %d snapshots, want %q", got, len(a.Snapshots()), want)
	}
}

// The latest state is what there is, and the number of it grows only if it has changed.
func TestStatesAreKept(t *testing.T) {
	a := actortest.Spawn(t, "basket")
	if a.Started().Recovered == nil || !a.Actor().(*basket).recovered || a.Actor().(*basket).keeper.Kept() {
		t.Fatalf("%+v", a.Started())
	}
	says(t, a, "put tea", "0: tea")
	stored(t, a, "")
	says(t, a, "keep jam", "1: tea jam")
	stored(t, a, "1 basket.state@1 tea jam")
	if turn := says(t, a, "again", "1: tea jam"); len(turn.Persisted) != 0 {
		t.Errorf("the same is stored once more: %+v", turn.Persisted)
	}
	says(t, a, "tag red", "1: tea jam")
	says(t, a, "again", "2: tea jam")
	stored(t, a, "2 basket.state@1 tea jam #red")
	a.Restart()
	b := a.Actor().(*basket)
	if b.loaded != 1 || strings.Join(b.things, " ") != "tea jam" || !b.keeper.Kept() {
		t.Errorf("%+v", b)
	}
	if turn := says(t, a, "tag red", "2: tea jam"); len(turn.Persisted) != 0 {
		t.Error(turn.Persisted)
	}
	says(t, a, "again", "2: tea jam")
	says(t, a, "clear", "2: ")
	says(t, a, "again", "2: ")
	stored(t, a, "")
	a.Restart()
	if b := a.Actor().(*basket); b.loaded != 0 || b.keeper.Kept() || b.keeper.Revision() != 2 {
		t.Errorf("%+v", b)
	}
	says(t, a, "keep rum", "3: rum")
	says(t, a, "forget", "3: rum")
	stored(t, a, "")
	says(t, a, "again", "4: rum")
}

// What cannot be kept is an error, and nothing has changed.
func TestStatesThatCannotBeKept(t *testing.T) {
	for text, want := range map[string]string{"keep torn": "not valid CBOR", "keep refused": "it is refused", "large": "the state has 1048581 bytes, of at most 1044480", "tag a\u00e9": "printable ASCII"} {
		a := actortest.Spawn(t, "basket", actortest.Kept("basket.state@1", func(w *abi.Writer) { w.Text("tea") }))
		a.Send(actor.Text(text))
		turn := a.Send(actor.Text("again"))
		if got := turn.Reply(); got.Kind != actortest.ReplyError || !strings.Contains(got.Text(), want) || len(turn.Persisted) > 0 {
			t.Errorf("%s: %q", text, got.Text())
		}
		stored(t, a, "1 basket.state@1 tea")
	}
	auto := actortest.Spawn(t, "auto")
	if turn := auto.Send(actor.Text("put torn")); turn.Failure == nil || !strings.Contains(turn.Failure.Reason, "not valid CBOR") {
		t.Errorf("%+v", turn.Failure)
	}
	stored(t, auto, "")
}

// With Automatic the state is kept after whatever has changed it, and after nothing else.
func TestStatesAreKeptByThemselves(t *testing.T) {
	a := actortest.Spawn(t, "auto")
	says(t, a, "look", "0: ")
	stored(t, a, "")
	says(t, a, "put tea", "0: tea")
	stored(t, a, "1 basket.state@1 tea")
	says(t, a, "look", "1: tea")
	says(t, a, "wait jam", "1: tea")
	a.Advance(time.Second)
	stored(t, a, "2 basket.state@1 tea jam")
	q := a.Send(actor.Text("ask more")).Ask()
	stored(t, a, "2 basket.state@1 tea jam")
	a.Answer(q, actor.Text("rum"))
	stored(t, a, "3 basket.state@1 tea jam rum")
	if turn := a.Send(actor.Text("unhandled egg")); !turn.Unhandled {
		t.Errorf("%+v", turn)
	}
	stored(t, a, "4 basket.state@1 tea jam rum egg")
	a.Send(actor.Text("fail pie"))
	a.Restart()
	says(t, a, "forget", "4: tea jam rum egg")
	stored(t, a, "")
	says(t, a, "look", "4: tea jam rum egg")
	stored(t, a, "")
	says(t, a, "put ham", "4: tea jam rum egg ham")
	stored(t, a, "5 basket.state@1 tea jam rum egg ham")
	says(t, a, "clear", "5: ")
	stored(t, a, "")
}

// States of versions before become this one; what there is no way from stops the recovery, which says what to do.
func TestVersionsOfStates(t *testing.T) {
	for _, c := range []struct{ typ, text, has, failure string }{
		{"basket.state@3", "tea", "tea", ""},
		{"basket.state@2", "tea", "tea migrated", ""},
		{"basket.state@2", "odd", "", "event 1 (basket.state@2): the migration from version 2: it is odd"},
		{"basket.state@1", "tea", "", "event 1 (basket.state@1): no migration leads from version 1 to 2, and this code reads version 3: add the migration"},
		{"basket.state@4", "tea", "", "event 1 (basket.state@4): this code reads the state up to version 3: it was kept by newer code"},
		{"basket.put@1", "tea", "", "event 1 is of the unknown type basket.put@1, and the actor keeps its state as basket.state: StateDefinition.Events"},
	} {
		a := actortest.Spawn(t, "newer", actortest.Kept(c.typ, text(c.text)))
		f := a.Started().Recovered.Failure
		if c.failure != "" {
			if f == nil || !strings.Contains(f.Reason, c.failure) {
				t.Errorf("%s: %+v", c.typ, f)
			}
			continue
		}
		if f != nil {
			t.Errorf("%s: %v", c.typ, f)
		} else if got := strings.Join(a.Actor().(*basket).things, " "); got != c.has {
			t.Errorf("%s: %s", c.typ, got)
		}
		number := "1"
		if c.has != c.text {
			number = "2" // it is kept in the present version at once
		}
		stored(t, a, number+" basket.state@3 "+c.has)
	}
	snapshot := actortest.Spawn(t, "newer", actortest.History(&persist.Snapshot{Number: 3, Version: 1, Payload: []byte{0x61, 'a'}}))
	if f := snapshot.Started().Recovered.Failure; f == nil || !strings.Contains(f.Reason, "the actor has no Restore") {
		t.Errorf("%+v", f)
	}
}

// What was stored as events before is taken over, and is gone when the state is kept; a state may have been kept in between.
func TestFromEventsToStates(t *testing.T) {
	event := func(typ, s string) persist.Event {
		name, version, _ := abi.CutMessageType(typ)
		w := abi.NewWriter(nil)
		w.Text(s)
		return persist.Event{Type: name, Version: version, Payload: w.Bytes()}
	}
	a := actortest.Spawn(t, "ledger", actortest.History(nil, event("basket.put@1", "tea"), event("basket.put@2", "jam")))
	stored(t, a, "3 basket.state@1 tea jam")
	a = actortest.Spawn(t, "ledger", actortest.History(&persist.Snapshot{Number: 5, Version: 7, Payload: []byte{0x61, 'a'}}, event("basket.put@2", "jam")))
	stored(t, a, "7 basket.state@1 snapshot7 a jam")
	a.Restart()
	says(t, a, "look", "7: snapshot7 a jam")
	a = actortest.Spawn(t, "ledger", actortest.History(nil, event("bag.state@1", "egg"), event("basket.put@2", "jam")))
	stored(t, a, "3 basket.state@1 egg jam")
	a = actortest.Spawn(t, "ledger", actortest.History(nil, event("other@1", "egg")))
	if f := a.Started().Recovered.Failure; f == nil || !strings.Contains(f.Reason, "other@1") {
		t.Errorf("%+v", f)
	}
	a = actortest.Spawn(t, "sum", actortest.Kept("basket.state@1", text("tea"))) // and the other way round
	if f := a.Started().Recovered.Failure; f == nil || !strings.Contains(f.Reason, "basket.state@1: it needs an upcaster") {
		t.Errorf("%+v", f)
	}
}

// Definitions that cannot be ones are refused where they are made.
func TestStateDefinitions(t *testing.T) {
	for _, d := range []persist.StateDefinition{{}, {Type: "a b"}, {Type: "a", State: actor.Saves(1 << 16)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is none", d)
				}
			}()
			persist.StateFactory(d, nil)
		}()
	}
}
