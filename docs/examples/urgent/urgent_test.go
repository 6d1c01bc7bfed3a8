package urgent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
)

// notes is an actor that notes what it is told.
func notes(to *[]string) host.Props {
	return host.Func(func(_ *host.Context, m host.Message) error {
		var v string
		err := m.Decode(&v)
		*to = append(*to, v)
		return err
	})
}

func TestInGo(t *testing.T) {
	for _, c := range []struct {
		name  string
		props func(host.Props) host.Props
		send  []any
		want  string
	}{
		{"Desk", Desk, []any{"file", "copy", Urgent("sign")}, "sign file copy"},
		{"Stoppable", Stoppable, []any{"file", "stop", "copy", "pause"}, "stop pause file copy"},
		{"Once", Once, []any{order("pay", "17"), order("pay again", "17"), "file"}, "pay file"},
	} {
		s, err := host.New(host.NewConfig("test").WithManual())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ref, err := s.Spawn("a", c.props(notes(&got)))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.send {
			if err := s.Tell(ref, v); err != nil {
				t.Error(err)
			}
		}
		s.RunUntilIdle(100)
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: %q, want %q", c.name, g, c.want)
		}
		_ = s.Close(context.Background())
	}
}

func order(v, key string) host.Headed {
	return host.Headed{Value: v, Headers: map[string]string{"idempotency-key": key}}
}

// All jobs are done, in order, though there is room for few.
func TestFeed(t *testing.T) {
	s, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var all sync.WaitGroup
	all.Add(500)
	var got []string
	ref, err := s.Spawn("a", Patient(host.Func(func(_ *host.Context, m host.Message) error {
		defer all.Done()
		var v string
		err := m.Decode(&v)
		got = append(got, v)
		return err
	})))
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for i := range 500 {
		jobs = append(jobs, fmt.Sprint(i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Feed(ctx, s, ref, jobs); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if strings.Join(got, " ") != strings.Join(jobs, " ") {
		t.Errorf("%q", got)
	}
}

// The bundle: the clerk brings the urgent job last, the desk does it first.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("a Go guest takes minutes to compile under the race detector")
	}
	m, err := bundle.Load("bundle.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	s, err := b.Start(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	desk, err := s.Lookup("/user/desk")
	if err != nil {
		t.Fatal(err)
	}
	clerk, err := s.Lookup("/user/clerk")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Operate().Pause(desk, false); err != nil { // while the jobs come
		t.Fatal(err)
	}
	if err := s.TellFrom(desk, clerk, "go"); err != nil {
		t.Fatal(err)
	}
	for {
		if i, err := s.View().Info(desk); err != nil || i.Mailbox == 3 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := s.Operate().Unpause(desk, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := host.AskAs[string](ctx, s, desk, "report"); err != nil || got != "sign! file copy" {
		t.Errorf("%q, %v", got, err)
	}

	// So does the desk that a guest has spawned.
	own, err := s.Lookup("/user/front/desk")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Operate().Pause(own, false); err != nil {
		t.Fatal(err)
	}
	for _, job := range []any{"file", "copy", Urgent("sign")} {
		if err := s.Tell(own, job); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Operate().Unpause(own, false); err != nil {
		t.Fatal(err)
	}
	front, err := s.Lookup("/user/front")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := host.AskAs[string](ctx, s, front, "report"); err != nil || got != "sign! file copy" {
		t.Errorf("%q, %v", got, err)
	}
}
