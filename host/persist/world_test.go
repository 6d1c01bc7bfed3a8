package persist_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/vfs.(*syncingFile).Sync"))
}

// image is the guest of testdata/diary, built once a test run.
var image = sync.OnceValues(func() (*runtime.Image, error) {
	code, err := guesttest.Build(filepath.Join("testdata", "diary"))
	if err != nil {
		return nil, err
	}
	engine, err := runtime.New(context.Background(), runtime.NewConfig())
	if err != nil {
		return nil, err
	}
	return engine.Load(context.Background(), code, runtime.ImageConfig{Name: "diary"})
})

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a system in steps with a journal, a probe, and actors that keep a diary, all of them in Go or all of them
// guests.
type world struct {
	*host.System
	t       *testing.T
	clock   *host.VirtualClock
	journal *persist.Memory
	props   func(typ, args string, limit int64) host.Props
	heard   []string
}

// both runs f with diaries in Go, and in wasm.
func both(t *testing.T, f func(w *world)) {
	for _, name := range []string{"Go", "guest"} {
		t.Run(name, func(t *testing.T) {
			if name == "guest" && testing.Short() {
				t.Skip("a Go guest takes minutes to compile under the race detector")
			}
			w := newWorld(t)
			if name == "Go" {
				w.props = w.inGo
			}
			f(w)
		})
	}
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.journal = must(persist.NewMemory())(t)
	w.props = w.guests
	w.begin()
	t.Cleanup(func() {
		_ = w.Close(context.Background())
		if err := w.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// begin makes a system. What was stored is there.
func (w *world) begin() {
	w.clock = host.NewVirtualClock(time.Unix(1_700_000_000, 0))
	cfg := host.NewConfig("test").WithManual().WithClock(w.clock).WithSeed(1).WithStore(w.journal).
		WithGuardian(supervision.Default().WithOtherwise(supervision.Restart).WithMaxRestarts(50, time.Hour))
	w.System = must(host.New(cfg))(w.t)
	must(w.Spawn("probe", host.Func(func(_ *host.Context, m host.Message) error {
		var s string
		if m.Decode(&s) == nil {
			w.heard = append(w.heard, s)
		}
		return nil
	})))(w.t)
	w.run()
}

// again ends the system, and makes another one.
func (w *world) again() {
	w.t.Helper()
	if err := w.Close(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	w.begin()
}

func (w *world) guests(typ, args string, limit int64) host.Props {
	p := host.Guest(must(image())(w.t), typ).WithArgs(args).WithCapabilities(host.Capabilities{Send: []string{"/user/*"}})
	return w.journal.Guest(p, mailbox.New(mailbox.Bounded), limit)
}

func (w *world) run() { w.RunUntilIdle(1_000_000) }

func (w *world) spawn(name, typ, args string) host.Ref {
	w.t.Helper()
	ref := must(w.Spawn(name, w.props(typ, args, 0)))(w.t)
	w.run()
	return ref
}

// say sends texts to an actor, all before the first is handled.
func (w *world) say(to host.Ref, texts ...string) {
	w.t.Helper()
	for _, s := range texts {
		if err := w.Tell(to, s); err != nil {
			w.t.Fatal(err)
		}
	}
	w.run()
}

// wants compares what was heard since the last call.
func (w *world) wants(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.heard, want) {
		w.t.Errorf("heard\n  %s\nwant\n  %s", strings.Join(w.heard, "\n  "), strings.Join(want, "\n  "))
	}
	w.heard = nil
}

// events are those of an ID, as number:payload.
func (w *world) events(id string) (list []string) {
	w.t.Helper()
	for e, err := range w.journal.ByID(context.Background(), id, persist.Query{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%d:%s", e.Number, e.Payload[1:]))
	}
	return list
}

// failures are the reasons of the failures of an actor that happen while f runs.
func (w *world) failures(f func()) (reasons []string) {
	w.t.Helper()
	sub := w.Subscribe(1000, func(e *host.Event) bool { return e.Kind == host.EventFailed })
	defer sub.Close()
	f()
	for {
		select {
		case e := <-sub.C():
			reasons = append(reasons, e.Failure.Error())
		default:
			return reasons
		}
	}
}

// diary is the diary of testdata, in Go.
type diary struct {
	log   *persist.Log
	notes []string
}

const noteType = "diary.note@2"

func noteOf(s string) persist.Event {
	b, _ := host.Encode(s)
	return persist.Event{Type: "diary.note", Version: 2, Payload: b}
}

func textOf(e *persist.Event) (s string, err error) {
	err = host.Message{Payload: e.Payload}.Decode(&s)
	return s, err
}

var schema = new(persist.Schema).Type("diary.note", 2).
	Upcast("diary.note", 1, func(e persist.Event) ([]persist.Event, error) {
		s, err := textOf(&e)
		return []persist.Event{noteOf("old " + s)}, err
	}).
	Upcast("diary.pair", 1, func(e persist.Event) ([]persist.Event, error) {
		s, err := textOf(&e)
		first, second, _ := strings.Cut(s, "+")
		b := noteOf(second)
		b.Version = 1
		return []persist.Event{noteOf(first), b}, err
	}).
	Drop("diary.gone", 1).
	Adapt(func(e *persist.Event) error {
		if string(e.Payload) == "\x66refuse" {
			return errors.New("the adapter refuses it")
		}
		e.Tags = append(e.Tags, "all")
		return nil
	})

func (d *diary) Apply(e *persist.Event) error {
	s, err := textOf(e)
	if err != nil {
		return err
	}
	if s == "poison" {
		return errors.New("it cannot be applied")
	}
	d.notes = append(d.notes, s)
	return nil
}

func (d *diary) Snapshot() (any, error) { return strings.Join(d.notes, " "), nil }

func (d *diary) Restore(version uint16, payload host.Raw) error {
	var s string
	if version != 1 {
		return errors.New("version " + strconv.Itoa(int(version)))
	}
	err := host.Message{Payload: payload}.Decode(&s)
	d.notes = append(strings.Fields(s), "|")
	return err
}

func (d *diary) say(ctx *host.Context, s string) {
	if probe, err := ctx.System().Lookup("/user/probe"); err == nil {
		_ = ctx.Tell(probe, s)
	}
}

func (d *diary) Recovered(ctx *host.Context) error {
	d.say(ctx, fmt.Sprintf("recovered %d: %s", d.log.Last(), strings.Join(d.notes, " ")))
	return nil
}

func (d *diary) Receive(ctx *host.Context, m host.Message) error {
	var s string
	if m.Decode(&s) != nil {
		return host.ErrUnhandled
	}
	what, rest, _ := strings.Cut(s, " ")
	var err error
	switch what {
	case "put":
		err = d.log.Persist(noteType, rest)
		d.say(ctx, "put "+rest)
	case "tag":
		tag, s, _ := strings.Cut(rest, " ")
		err = d.log.Persist(noteType, s, tag)
	case "all":
		var list []persist.Pending
		for _, s := range strings.Fields(rest) {
			if s == "secret" {
				list = append(list, persist.New("diary.secret@1", s))
			} else {
				list = append(list, persist.New(noteType, s))
			}
		}
		err = d.log.PersistAll(list...)
	case "nest":
		for _, s := range []string{"a-outer-1", "a-outer-2", "a-inner-1", "a-inner-2"} {
			err = errors.Join(err, d.log.Persist(noteType, s))
			d.say(ctx, s)
		}
	case "secret":
		err = d.log.Persist("diary.secret@1", "")
	case "torn":
		err = d.log.Persist(noteType, host.Raw("\x81"))
	case "large":
		err = d.log.Persist(noteType, strings.Repeat("x", 1<<20))
	case "tags":
		err = d.log.Persist(noteType, "x", rest, "twice", "twice")
	case "fail":
		if err = d.log.Persist(noteType, rest); err == nil {
			d.say(ctx, "never")
			return errors.New("as told")
		}
	case "snap":
		err = d.log.SaveSnapshot()
	case "delete":
		n, _ := strconv.ParseUint(rest, 10, 64)
		d.log.DeleteEvents(n)
	case "unsnap":
		from, to, _ := strings.Cut(rest, " ")
		a, _ := strconv.ParseUint(from, 10, 64)
		b, _ := strconv.ParseUint(to, 10, 64)
		d.log.DeleteSnapshots(a, b)
	case "state":
		d.say(ctx, fmt.Sprintf("state %d: %s", d.log.Last(), strings.Join(d.notes, " ")))
	case "stop":
		ctx.Stop(ctx.Self())
	default:
		return host.ErrUnhandled
	}
	if err != nil {
		d.say(ctx, "error "+err.Error())
	}
	if !m.Sender.IsZero() {
		return ctx.Reply(d.log.Last())
	}
	return nil
}

func (w *world) inGo(typ, args string, limit int64) host.Props {
	d := persist.Definition{Schema: schema, SnapshotVersion: 1}
	for _, word := range strings.Fields(args) {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseUint(value, 10, 64)
		r := &d.Recovery
		switch key {
		case "off":
			r.Off = true
		case "nosnap":
			r.NoSnapshot = true
		case "to":
			r.To = n
		case "most":
			r.Most = n
		case "snapto":
			r.SnapshotTo = n
		case "snapver":
			r.SnapshotVersion = uint16(n)
		}
	}
	switch typ {
	case "keeper":
		d.Retention = persist.Retention{Every: 3, Keep: 2, Trim: true, When: func(e *persist.Event) bool { return string(e.Payload) == "\x64snap" }}
	case "stranger":
		d.Schema = new(rules.Schema).Type("diary.other", 1)
	}
	return w.journal.Props(d, func(l *persist.Log) persist.Actor { return &diary{log: l} }, limit)
}
