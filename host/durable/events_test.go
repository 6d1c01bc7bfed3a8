package durable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
)

// tally is an actor in Go that keeps its sum as events.
type tally struct {
	log *persist.Log
	sum int
}

func (x *tally) Apply(e *persist.Event) error {
	var n int
	err := host.Message{Payload: e.Payload}.Decode(&n)
	x.sum += n
	return err
}

func (x *tally) Receive(ctx *host.Context, m host.Message) error {
	var n int
	if m.Decode(&n) != nil {
		return host.ErrUnhandled
	}
	if n != 0 {
		if err := x.log.Persist("tally.added@1", n, fmt.Sprint("n", n%2)); err != nil {
			return err
		}
	}
	return ctx.Reply(x.sum)
}

func (x *tally) Snapshot() (any, error) { return x.sum, nil }

func (x *tally) Restore(_ uint16, b host.Raw) error { return host.Message{Payload: b}.Decode(&x.sum) }

var tallying = persist.Definition{Schema: new(persist.Schema).Type("tally.added", 1), Retention: persist.Retention{Every: 7, Keep: 2}}

// eventful is a system with a store and an actor "t" that keeps events.
type eventful struct {
	*world
	journal *persist.Journal
}

func openEvents(t testing.TB, dir string, names []string, change ...func(*Options)) (*eventful, error) {
	t.Helper()
	w, err := open(t, dir, Props{}, change...)
	if err != nil {
		return nil, err
	}
	x := &eventful{world: w}
	if x.journal, err = w.store.Events(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := w.Spawn(name, x.journal.Props(tallying, func(l *persist.Log) persist.Actor { return &tally{log: l} }, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return x, nil
}

func mustOpenEvents(t testing.TB, dir string, names []string, change ...func(*Options)) *eventful {
	t.Helper()
	x, err := openEvents(t, dir, names, change...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// add has an actor add n and returns the sum.
func (x *eventful) add(name string, n int) (sum int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ref, err := x.Lookup("/user/" + name)
	if err != nil {
		return 0, err
	}
	a, err := x.Ask(ctx, ref, n)
	if err == nil {
		err = a.Decode(&sum)
	}
	return sum, err
}

func (x *eventful) numbers(id string) (list []uint64) {
	for e, err := range x.journal.ByID(context.Background(), id, persist.Query{}) {
		if err != nil {
			x.t.Fatal(err)
		}
		list = append(list, e.Number)
	}
	return list
}

// Events outlive the process and the log: what a checkpoint gives back is in the index, and a start without the index, or with
// an older one, is refused.
func TestEventsOutliveTheLog(t *testing.T) {
	dir := t.TempDir()
	small := func(o *Options) { o.index = nil }
	x := mustOpenEvents(t, dir, []string{"t", "idle"}, small)
	if _, err := x.add("idle", 5); err != nil {
		t.Fatal(err)
	}
	first := x.store.log.Used()
	for i := 1; i <= 300; i++ {
		if sum, err := x.add("t", 1); err != nil || sum != i {
			t.Fatal(sum, err)
		}
		if i%100 == 0 {
			x.checkpoint()
		}
	}
	for r, err := range x.store.log.Read(0) {
		if err != nil || r.At < 1 {
			t.Fatal(err)
		}
	}
	_ = first
	x.close()
	x = mustOpenEvents(t, dir, []string{"t", "idle"}, small)
	for name, want := range map[string]int{"t": 300, "idle": 5} {
		if sum, err := x.add(name, 0); err != nil || sum != want {
			t.Error(name, sum, err)
		}
	}
	if n := x.numbers("/user/t"); len(n) != 300 || n[299] != 300 {
		t.Error(n)
	}
	x.close()
}

// A power failure at any moment takes no event whose answer was seen, and leaves none that is not in the log, nor the log or
// the index behind the other.
func TestEventsAfterAPowerFailure(t *testing.T) {
	dir, fs := t.TempDir(), vfs.NewStrictMem()
	with := func(o *Options) { o.index = fs }
	sum := 0
	for round := range 12 {
		x := mustOpenEvents(t, dir, []string{"t"}, with)
		got, err := x.add("t", 0)
		if err != nil || got != sum {
			t.Fatalf("round %d: %d instead of %d: %v", round, got, sum, err)
		}
		for range 10 + round {
			if sum, err = x.add("t", 1); err != nil {
				t.Fatal(err)
			}
		}
		if round%3 == 1 {
			x.checkpoint()
		}
		fs.SetIgnoreSyncs(true) // nothing of the index that comes now survives
		x.close()
		fs.ResetToSyncedState()
		fs.SetIgnoreSyncs(false)
	}
}

// The log without its index is refused once a part of the log was given back.
func TestTheIndexIsMissed(t *testing.T) {
	dir, fs := t.TempDir(), vfs.NewMem()
	x := mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.index = fs })
	if _, err := x.add("t", 1); err != nil {
		t.Fatal(err)
	}
	x.close()
	x = mustOpenEvents(t, dir, []string{"t"}, func(o *Options) { o.index = vfs.NewMem() }) // all is in the log still
	if sum, err := x.add("t", 1); sum != 2 || err != nil {
		t.Fatal(sum, err)
	}
	x.checkpoint()
	x.close()
	if x, err := openEvents(t, dir, []string{"t"}, func(o *Options) { o.index = vfs.NewMem() }); !errors.Is(err, ErrRecord) {
		t.Error(err)
		if err == nil {
			x.close()
		}
	}
}
