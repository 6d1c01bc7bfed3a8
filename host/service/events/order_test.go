package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/supervision"
	"github.com/wasmactors/wasmactors/supervision/backoff"
)

// story runs a manual system whose actors crash, send to nobody and come back, under three listeners in Go and
// a guest, and returns what each of them has heard at which point of it.
func story(t *testing.T, seed uint64) (told []string) {
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	policy, err := backoff.Spec{Curve: "exponential", Min: time.Millisecond, Max: 20 * time.Millisecond, Jitter: "full"}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	strategy := supervision.Default().WithOtherwise(supervision.Restart).WithBackoff(supervision.Backoff{Policy: policy})
	sys, err := host.New(host.NewConfig("t").WithShuffle(seed).WithClock(clock).WithSeed(seed).WithGuardian(strategy))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(context.Background())
	running, err := events.Service.Start(sys, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	svc := running.Ref()
	note := func(format string, args ...any) {
		told = append(told, fmt.Sprint(clock.Now().UnixNano(), " ")+fmt.Sprintf(format, args...))
	}
	spawn := func(name string, p host.Props) host.Ref {
		ref, err := sys.Spawn(name, p)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	grant := events.Service.Grant(everything, service.Bounds{})
	for _, channel := range []string{"lifecycle", "lifecycle.failed", "dead-letters"} {
		ref := spawn("on-"+strings.ReplaceAll(channel, ".", "-"), host.Func(func(ctx *host.Context, m host.Message) error {
			var e struct {
				_    struct{} `cbor:",toarray"`
				Kind string
				Body heard
			}
			if m.Decode(&e) == nil && e.Kind == "happened" {
				note("%s: %v", ctx.Self().Name(), e.Body)
				return ctx.Tell(m.Sender, []any{"ack", e.Body.N})
			}
			if m.Sender.IsZero() {
				return ctx.Ask(svc, []any{"subscribe", map[string]any{"channel": channel}}, 1, time.Minute)
			}
			return m.Err()
		}).WithGrant("events", grant))
		if err := sys.Tell(ref, nil); err != nil {
			t.Fatal(err)
		}
	}
	watcher := spawn("watcher", guest(t, "events-watcher", "lifecycle").WithGrant("events", grant))
	sys.RunUntilIdle(1e6)
	nobody := spawn("nobody", host.Func(func(ctx *host.Context, _ host.Message) error { return nil }))
	var workers []host.Ref
	for i := range 5 {
		workers = append(workers, spawn(fmt.Sprint("w", i), host.Func(func(ctx *host.Context, m host.Message) error {
			note("%s works", ctx.Self().Name())
			if ctx.Head().Draw()%2 == 0 {
				return errors.New("on purpose")
			}
			_ = ctx.Tell(nobody, 1)
			return nil
		})))
	}
	sys.Stop(nobody)
	for i := range 40 {
		if err := sys.Tell(workers[i%5], i); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Millisecond)
		sys.RunUntilIdle(1e6)
	}
	p, err := sys.Request(watcher, "heard")
	if err != nil {
		t.Fatal(err)
	}
	sys.RunUntilIdle(1e6)
	var text string
	if m := <-p.Answer(); m.Decode(&text) != nil {
		t.Fatal(m)
	}
	return append(told, "the guest: "+text)
}

// In a manual system actors hear of events at a defined point: one seed is one run, to the order of everything
// that anybody hears.
func TestEventsComeAtADefinedPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes half a minute to compile under the race detector")
	}
	first := story(t, 7)
	var kinds [4]int
	for _, line := range first {
		for i, part := range []string{"on-lifecycle: ", "on-lifecycle-failed: ", "on-dead-letters: ", "lifecycle.restarted /user/w"} {
			kinds[i] += strings.Count(line, part)
		}
	}
	if slices.Min(kinds[:]) < 10 {
		t.Fatalf("little has happened: %v\n%s", kinds, strings.Join(first, "\n"))
	}
	for run := range 50 {
		if again := story(t, 7); !slices.Equal(again, first) {
			for i := range again {
				if i >= len(first) || again[i] != first[i] {
					t.Fatalf("run %d, line %d of %d: %s", run, i, len(first), again[i])
				}
			}
			t.Fatalf("run %d has %d lines, the first %d", run, len(again), len(first))
		}
	}
	if other := story(t, 8); slices.Equal(other, first) {
		t.Error("another seed is the same run: the test sees nothing")
	}
}
