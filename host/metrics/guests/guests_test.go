package guests_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.CompileMain()
	code := m.Run()
	if opened != nil {
		if err := opened.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type shop struct {
	*host.System
	bundle *bundle.Bundle
	t      *testing.T
	events *host.Subscription
}

// opened is the bundle, which is built once.
var opened *bundle.Bundle

func start(t *testing.T) *shop {
	t.Helper()
	if opened == nil {
		m, err := bundle.Load("testdata/shop")
		if err != nil {
			t.Fatal(err)
		}
		if opened, err = bundle.Open(t.Context(), m, bundle.Options{CacheDir: servicetest.CacheDir(), Compiler: guesttest.Compiler(), Allow: func([]bundle.Reach) error { return nil }}); err != nil {
			t.Fatal(err)
		}
	}
	s := &shop{bundle: opened, t: t}
	var err error
	s.System, err = opened.Start(nil, func(sys *host.System) {
		s.events = sys.Subscribe(1000, func(e *host.Event) bool { return e.Kind != host.EventLog })
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// say asks an actor, so that its turn has ended, and then the service, so that all of it has
// arrived.
func (s *shop) say(path string, v any) host.Message {
	s.t.Helper()
	ref, err := s.Lookup(path)
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := s.Ask(s.t.Context(), ref, v)
	if err != nil && v != "crash" {
		s.t.Fatal(err)
	}
	if _, err := s.Identify(s.t.Context(), guests.Path); err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *shop) text() string {
	var b strings.Builder
	if err := exposition.Write(&b, s.bundle.Metrics()); err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

// wants waits until series have these values, "" for one that is not shown.
func (s *shop) wants(want map[string]string) {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		bad := ""
		text := s.text()
		for series, v := range want {
			got := ""
			for line := range strings.Lines(text) {
				if rest, ok := strings.CutPrefix(line, series+" "); ok {
					got = strings.TrimSpace(rest)
				}
			}
			if got != v {
				bad += fmt.Sprintf("%s is %q, want %q\n", series, got, v)
			}
		}
		if bad == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(bad)
		}
		time.Sleep(time.Millisecond)
	}
}

const (
	orders  = `wasmactors_guest_orders_total{actor="/user/shop"}`
	depth   = `wasmactors_guest_depth{actor="/user/shop"}`
	waited  = `wasmactors_guest_wait_seconds_count{actor="/user/shop"}`
	refused = `wasmactors_guest_metric_refusals_total{actor="/user/shop"}`
)

// What a guest in standard Go counts is shown, and nothing that was not granted.
func TestAGuestCounts(t *testing.T) {
	s := start(t)
	s.wants(map[string]string{orders: "0", depth: "", waited: "0", refused: "0"})
	s.say("/user/shop", "order")
	s.say("/user/shop", "order")
	s.wants(map[string]string{orders: "2", depth: "3", waited: "2", refused: "0"})

	// A turn that fails has counted nothing.
	s.say("/user/shop", "crash")
	s.wants(map[string]string{orders: "2"})

	s.say("/user/shop", "batch")
	s.wants(map[string]string{orders: "152"})

	// What is wrong is refused as a whole.
	for _, v := range []string{"unknown", "backwards", "half", "garbage"} {
		s.say("/user/shop", v)
	}
	s.wants(map[string]string{orders: "152", refused: "4"})

	// Children have a part of the gauge while they live.
	s.say("/user/shop", "child")
	s.wants(map[string]string{orders: "153", depth: "6"})
	s.say("/user/shop", "end child")
	s.wants(map[string]string{orders: "153", depth: "3"})

	// Who asks hears what is wrong.
	var answer string
	if err := s.say("/user/shop", "ask").Decode(&answer); err != nil || !strings.Contains(answer, "an array of at most") {
		t.Errorf("%q, %v", answer, err)
	}

	// Series end with the actor.
	ref, err := s.Lookup("/user/shop")
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(ref)
	s.wants(map[string]string{orders: "", depth: "", waited: ""})
}

// Without a grant nothing can be sent, and the advice names the key.
func TestWithoutAGrant(t *testing.T) {
	s := start(t)
	s.say("/user/thief", "order")
	s.wants(map[string]string{orders: "0"})
	for e := range s.events.C() {
		if e.Kind == host.EventDeadLetter {
			if got := bundle.Advice(&e); !strings.Contains(got, "metrics") || e.Dead.Reason != host.DeadDenied {
				t.Errorf("%v: %q", e.Dead.Reason, got)
			}
			return
		}
	}
}

// A flood costs who floods its own messages: the mailbox keeps room for the others.
func TestAFlood(t *testing.T) {
	s := start(t)
	s.say("/user/shop", "flood")
	if _, dead := s.DeadLetters(); dead > 20000 {
		t.Errorf("%d dead letters", dead)
	}
	s.say("/user/shop", "order")
}

func TestGrantsAreChecked(t *testing.T) {
	counter := func(name string) guests.Metric { return guests.Metric{Name: name, Kind: exposition.Counter} }
	many := make([]guests.Metric, guests.MaxMetrics+1)
	for i := range many {
		many[i] = counter(fmt.Sprintf("m%d_total", i))
	}
	for what, c := range map[string]struct {
		metrics []guests.Metric
		want    string
	}{
		"capital":       {[]guests.Metric{counter("Orders_total")}, "lower-case letters"},
		"digit":         {[]guests.Metric{counter("1_total")}, "lower-case letters"},
		"long":          {[]guests.Metric{counter(strings.Repeat("x", 60) + "_total")}, "63"},
		"no _total":     {[]guests.Metric{counter("orders")}, "must end with _total"},
		"gauge _total":  {[]guests.Metric{{Name: "x_total", Kind: exposition.Gauge}}, "only the name of a counter"},
		"_bucket":       {[]guests.Metric{{Name: "x_bucket", Kind: exposition.Gauge}}, "reserved by the format"},
		"kind":          {[]guests.Metric{{Name: "x"}}, "a counter, a gauge or a histogram"},
		"buckets":       {[]guests.Metric{{Name: "x", Kind: exposition.Histogram, Buckets: []float64{2, 1}}}, "ascending"},
		"gauge buckets": {[]guests.Metric{{Name: "x", Kind: exposition.Gauge, Buckets: []float64{1}}}, "only a histogram"},
		"many":          {many, "at most 50"},
	} {
		if _, err := guests.New(map[string][]guests.Metric{"/user/a": c.metrics}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := guests.New(map[string][]guests.Metric{"/user/a": {counter("x_total")}, "/user/b": {{Name: "x_total", Kind: exposition.Counter, Help: "other"}}})
	if err == nil {
		t.Error("different helps are no error")
	}
}
