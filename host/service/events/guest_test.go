package events_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/events"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

func guest(t testing.TB, typ string, args any) host.Props {
	t.Helper()
	return host.GuestOf(servicetest.Module(t), typ).WithArgs(args)
}

func (b *bench) ask(ref host.Ref, v any) string {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	text, err := host.AskAs[string](ctx, b.System, ref, v)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// heard polls a guest until it has heard all of it; what comes in between is told with it.
func (b *bench) heard(ref host.Ref, want string) {
	b.Helper()
	got := ""
	for deadline := time.Now().Add(10 * time.Second); len(got) < len(want) && time.Now().Before(deadline); {
		b.settle()
		if more := b.ask(ref, "heard"); more != "" {
			got += more + ";"
		}
		time.Sleep(time.Millisecond)
	}
	if got != want {
		b.Errorf("%s has heard %q, want %q", ref.Name(), got, want)
	}
}

// Guests in standard Go, which batch, hear of what their grant has.
func TestGuestsHearOfEvents(t *testing.T) {
	b := start(t, nil)
	granted := func(name string, g events.Grant, args any) host.Ref {
		return b.spawn(name, guest(t, "events-watcher", args).WithGrant("events", events.Service.Grant(g, service.Bounds{})))
	}
	life := granted("life", events.Grant{Lifecycle: []string{"/user/n*"}, Reasons: true}, "lifecycle")
	lost := granted("lost", events.Grant{DeadLetters: []string{"/user/**"}}, []string{"dead-letters", "/user/noisy"})
	odd := granted("odd", events.Grant{Unhandled: []string{"/user/noisy"}}, "unhandled")
	poor := granted("poor", events.Grant{Unhandled: []string{"/user/noisy"}}, "lifecycle")
	b.heard(poor, "denied: events of lifecycle are not granted; capabilities.events.lifecycle in the manifest would allow it;")
	noisy := b.spawn("noisy", guest(t, "events-noisy", nil))
	b.spawn("other", worker())
	_ = b.Tell(noisy, 1)
	b.settle()
	b.heard(odd, "unhandled /user/noisy;")
	b.Stop(noisy)
	b.settle()
	_ = b.Tell(noisy, 2)
	b.heard(lost, "dead-letters.unknown /user/noisy;")
	b.heard(life, "lifecycle.started /user/noisy;lifecycle.stopped /user/noisy stopped;")
}

// K07: what a guest logs comes out on its level, with its path.
func TestK07_GuestsLog(t *testing.T) {
	var out bytes.Buffer
	sys, err := host.New(host.NewConfig("test").WithLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	if err != nil {
		t.Fatal(err)
	}
	ref, err := sys.Spawn("noisy", guest(t, "events-noisy", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = sys.Tell(ref, "a {} b")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := sys.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	_ = sys.Close(context.Background())
	at := 0
	for _, level := range []string{"DEBUG", "INFO", "WARN", "ERROR"} { // in the order of the calls
		want := "level=" + level + ` msg="a {} b" actor=/user/noisy type=events-noisy `
		i := strings.Index(out.String()[at:], want)
		if i < 0 {
			t.Fatalf("no %s in\n%s", want, &out)
		}
		at += i
	}
}
