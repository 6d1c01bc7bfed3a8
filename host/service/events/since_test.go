package events

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
)

// What has happened before a subscription is not told, though it was still on its way; what happens in the same
// instant is. The events are handed to the provider as its goroutine would.
func TestWhatHappenedBefore(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	sys, err := host.New(host.NewConfig("test").WithManual().WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	listener, err := sys.Spawn("listener", host.Func(func(_ *host.Context, m host.Message) error {
		var e struct {
			_    struct{} `cbor:",toarray"`
			Kind string
			Body struct {
				Topic string `cbor:"topic"`
			}
		}
		if err := m.Decode(&e); err != nil {
			return err
		}
		got = append(got, e.Body.Topic)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	told, err := sys.Spawn("told", host.Func(func(*host.Context, host.Message) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	sys.RunUntilIdle(1000)
	env := &service.Env{System: sys, Clock: clock}
	p := newProvider(env, 10)
	defer func() {
		_ = sys.Close(context.Background())
		_ = p.Close(context.Background())
	}()
	grant := &Grant{Lifecycle: []string{"/user/told"}}
	classes, err := mayHear(grant, "lifecycle")
	if err != nil {
		t.Fatal(err)
	}
	s := &subscription{key: subscriptionKey{listener.UID(), "lifecycle"}, classes: classes}
	s.wants(nil, grant)
	s.feed = feed.New(env, listener, feed.Usual(), feed.Words{Event: "happened", Ended: "over"}, marks, func() { p.remove(s) }, func() {})
	if err := p.add(s, 1, grant); err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Spawn("feed", s.feed.Props())
	if err != nil {
		t.Fatal(err)
	}
	s.feed.Begin(ref)
	since := clock.Now()
	clock.Advance(time.Second)
	for _, e := range []struct {
		kind host.EventKind
		at   time.Duration
	}{{host.EventFailed, -time.Hour}, {host.EventRestarted, -1}, {host.EventPaused, 0}, {host.EventUnpaused, 1}, {host.EventStopped, time.Second}} {
		p.happens(&host.Event{Kind: e.kind, Ref: told, Time: since.Add(e.at)})
	}
	sys.RunUntilIdle(1000)
	if fmt.Sprint(got) != "[lifecycle.paused lifecycle.unpaused lifecycle.stopped]" {
		t.Errorf("it was told of %v", got)
	}
}
