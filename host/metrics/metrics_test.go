package metrics_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/metrics/prom"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/internal/histogram"
	"github.com/wasmactors/wasmactors/supervision"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	*host.System
	*metrics.Metrics
}

func newWorld(t testing.TB, o metrics.Options) *world { return sharedWorld(t, o, -1) }

// sharedWorld is a system whose observer walks only so often.
func sharedWorld(t testing.TB, o metrics.Options, sharing time.Duration) *world {
	t.Helper()
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	stored := func() *observe.Store {
		return &observe.Store{Bytes: 5, Limit: 9, Full: true, Checkpoints: 3, CheckpointsFailed: 1, PauseNS: 2e6}
	}
	of := observe.New(sys, observe.Options{}.WithSharing(sharing).WithStore(stored))
	m, err := metrics.New(of, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		of.Close()
		if err := sys.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &world{sys, m}
}

func (w *world) spawn(t testing.TB, name string, p host.Props) host.Ref {
	t.Helper()
	ref, err := w.Spawn(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (w *world) scrape(t testing.TB) string {
	t.Helper()
	r := httptest.NewRecorder()
	w.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != exposition.ContentType {
		t.Fatalf("%d, %v", r.Code, r.Header())
	}
	return r.Body.String()
}

// value is that of a series, as it is written; "" if there is none.
func value(text, series string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func typed(name string, f func(ctx *host.Context, m host.Message) error) host.Props {
	return host.Behave(name, func() host.Behaviour { return &typedActor{f: f} })
}

type typedActor struct {
	f func(ctx *host.Context, m host.Message) error
}

func (a *typedActor) Start(*host.Context, *abi.Failure) *abi.Failure { return nil }
func (a *typedActor) Handle(ctx *host.Context, n int) *abi.Failure {
	for range n {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		if err := a.f(ctx, m); err != nil {
			return &abi.Failure{Kind: abi.FailureGuestError, Reason: err.Error()}
		}
	}
	return nil
}

func (a *typedActor) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}
func (a *typedActor) CannotRewind() string        { return "it keeps nothing" }
func (a *typedActor) Rewind(*host.Context) bool   { return false }
func (a *typedActor) End(*host.Context, host.End) {}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func everything(t testing.TB) *world {
	counted, err := guests.New(map[string][]guests.Metric{"/user/a": {
		{Name: "orders_total", Kind: exposition.Counter, Help: "Orders."}, {Name: "depth", Kind: exposition.Gauge},
		{Name: "wait_seconds", Kind: exposition.Histogram, Buckets: []float64{1, 2}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var running []*service.Running
	var gate *gateway.Gateway
	w := newWorld(t, metrics.Options{}.WithVersion("1.2").WithServices(func() []*service.Running { return running }).WithGateway(func() *gateway.Gateway { return gate }).WithActors("/user/a", "/user/nobody").WithGuests(counted.Families).
		WithFigures("flow", func() []service.Figure {
			return []service.Figure{{Name: "streams_open", Value: 4}, {Name: "streams_started_total", Value: 9}}
		}).
		WithCluster(func() *metrics.Cluster {
			h := &histogram.Histogram{}
			h.Observe(3 * time.Millisecond)
			x := &metrics.Cluster{Acting: true, Left: 2.5, Members: 3, Children: 2, Started: 8, Refused: 3, Renewed: 7, Unrenewed: 1, Lost: 4, Changes: h.Counts(), Events: map[string]uint64{"joined": 3, "gone": 1},
				Kinds:   []metrics.ClusterKind{{Kind: "carts", Owned: 5, Moving: 2, Waiting: 9, Keys: 11, In: 6, Out: 1, GivenUp: 1, Stolen: 1}},
				Journal: &metrics.ClusterJournal{Stored: 8, Fenced: 1, Whole: 2, Crowded: 1, Bytes: 900, Loaded: 3, Held: 1, Keys: 4, Kept: 700, Waiting: 60, Confirm: h.Counts(), Used: 5000, Limit: 2 << 30}}
			for i := range metrics.MaxLinks + 3 {
				x.Links = append(x.Links, metrics.ClusterLink{Node: "n" + strconv.Itoa(1000+i), Sent: 10, Received: 20, SentBytes: 30, ReceivedBytes: 40, Again: 1, Refused: 2, Queue: 3})
			}
			return x
		}).
		WithSpans(func() metrics.Spans { return metrics.Spans{Recorded: 5, Long: 2, Fast: 1, Traces: 3} }))
	ref, err := w.SpawnService(guests.Name, counted.Props())
	if err != nil {
		t.Fatal(err)
	}
	clock := service.Define(service.Definition[struct{}, struct{}]{Name: "clock", Doc: "says what time it is",
		Open: func(*service.Env, *struct{}) (service.Provider[struct{}], error) { return clockService{}, nil }})
	one, err := clock.Start(w.System, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	running = append(running, one)
	b := w.spawn(t, "b", host.Func(func(ctx *host.Context, m host.Message) error {
		return ctx.Tell(one.Ref(), []any{"now", nil})
	}).WithGrant("clock", clock.Grant(struct{}{}, service.Bounds{})))
	c := w.spawn(t, "c", host.Func(func(ctx *host.Context, m host.Message) error {
		if m.Correlation != 0 {
			return ctx.Reply(1)
		}
		return nil
	}))
	for range 500 { // a worker times one in 127
		_ = w.Tell(c, 1)
	}
	if gate, err = gateway.New(w.System, gateway.Config{Routes: []gateway.Route{{Pattern: "GET /shop/{name}", To: gateway.Target{Path: "/user/shop"}}}, Health: gateway.Health{Live: "/live"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	for _, path := range []string{"/shop/1", "/shop/2", "/nowhere", "/elsewhere", "/live"} {
		gate.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	if err := w.Tell(b, nil); err != nil {
		t.Fatal(err)
	}
	a := w.spawn(t, "a", typed("shop", func(ctx *host.Context, m host.Message) error {
		var n int
		if m.Decode(&n) == nil && n == 0 {
			return errors.New("no")
		}
		return ctx.Tell(ref, []any{[]any{"orders_total", n}, []any{"depth", -2.5}, []any{"wait_seconds", 1.5}})
	}))
	for _, v := range []int{1, 2, 0} {
		if err := w.Tell(a, v); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the messages are not handled", func() bool {
		text := w.scrape(t)
		return value(text, `wasmactors_restarts_total{type="shop"}`) == "1" && value(text, `wasmactors_guest_orders_total{actor="/user/a"}`) == "3" &&
			value(text, `wasmactors_service_requests_total{service="clock",op="now",code="ok"}`) == "1"
	})
	return w
}

type clockService struct{}

func (clockService) Serve(context.Context, *service.Request[struct{}]) (any, error) { return 1, nil }
func (clockService) Close(context.Context) error                                    { return nil }
func (clockService) Figures() []service.Figure {
	return []service.Figure{{Name: "hands", Value: 2}, {Name: "ticks_total", Value: 7}}
}

// Every metric has series when everything is chosen, the names follow the conventions, and
// Prometheus' own library reads it all.
func TestEverythingIsWellFormed(t *testing.T) {
	w := everything(t)
	text := w.scrape(t)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, i := range metrics.Table() {
		if !strings.Contains(text, "# TYPE "+i.Name+" "+i.Kind.String()+"\n") {
			t.Errorf("%s is missing", i.Name)
		}
	}
	for series, want := range map[string]string{
		`wasmactors_actors{type="shop"}`:              "1",
		`wasmactors_actors_in_state{state="running"}`: "6",
		// Paths that callers make up are no routes.
		`wasmactors_http_requests_total{route="GET /shop/{name}",status="503"}`:         "2",
		`wasmactors_http_requests_total{route="(none)",status="404"}`:                   "2",
		`wasmactors_http_requests_total{route="(health)",status="200"}`:                 "1",
		`wasmactors_http_request_seconds_count{route="GET /shop/{name}"}`:               "2",
		`wasmactors_service_request_seconds_bucket{service="clock",op="now",le="+Inf"}`: "1",
		`wasmactors_service_figure{service="clock",figure="hands"}`:                     "2",
		`wasmactors_service_figure_total{service="clock",figure="ticks"}`:               "7",
		`wasmactors_service_figure{service="flow",figure="streams_open"}`:               "4",
		`wasmactors_service_figure_total{service="flow",figure="streams_started"}`:      "9",
		`wasmactors_store_bytes`:                                          "5",
		`wasmactors_store_up`:                                             "0",
		`wasmactors_store_checkpoints_total{result="failed"}`:             "1",
		`wasmactors_store_checkpoint_pause_seconds`:                       "0.002",
		`wasmactors_turns_total{type="shop"}`:                             "3",
		`wasmactors_crashes_total{type="shop"}`:                           "1",
		`wasmactors_actor_turns_total{path="/user/a",type="shop"}`:        "3",
		`wasmactors_actor_incarnation{path="/user/a",type="shop"}`:        "1",
		`wasmactors_dead_letters_total{reason="mailbox_full"}`:            "0",
		`wasmactors_trace_spans_dropped_total{reason="trace"}`:            "2",
		`wasmactors_guest_depth{actor="/user/a"}`:                         "-2.5",
		`wasmactors_guest_wait_seconds_bucket{actor="/user/a",le="1"}`:    "0",
		`wasmactors_guest_wait_seconds_bucket{actor="/user/a",le="2"}`:    "2",
		`wasmactors_guest_wait_seconds_bucket{actor="/user/a",le="+Inf"}`: "2",
		`wasmactors_guest_wait_seconds_sum{actor="/user/a"}`:              "3",
		`wasmactors_guest_metric_refusals_total{actor="/user/a"}`:         "0",
	} {
		if got := value(text, series); got != want {
			t.Errorf("%s is %q, want %q", series, got, want)
		}
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(prom.Collector(w.Metrics)); err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "wasmactors_guest_wait_seconds" && f.GetMetric()[0].GetHistogram().GetSampleCount() != 2 {
			t.Errorf("%v", f)
		}
	}
}

// Series end with what they are about.
func TestSeriesEndWithTheirActors(t *testing.T) {
	w := everything(t)
	a, err := w.Lookup("/user/a")
	if err != nil {
		t.Fatal(err)
	}
	w.Stop(a)
	eventually(t, "something of the actor is still shown", func() bool {
		text := w.scrape(t)
		return !strings.Contains(text, `path="/user/a"`) && !strings.Contains(text, "wasmactors_guest_orders") && !strings.Contains(text, "wasmactors_guest_wait")
	})
	text := w.scrape(t)
	if got := value(text, `wasmactors_turns_total{type="shop"}`); got != "3" {
		t.Errorf("the type's turns are %q", got)
	}
	if got := value(text, `wasmactors_actors{type="shop"}`); got != "0" {
		t.Errorf("%q actors", got)
	}
}

func TestTypesAreBounded(t *testing.T) {
	w := newWorld(t, metrics.Options{})
	nothing := func(*host.Context, host.Message) error { return nil }
	for i := range metrics.MaxTypes + 50 {
		w.spawn(t, "", typed("t"+strconv.Itoa(i), nothing))
	}
	text := w.scrape(t)
	if n := strings.Count(text, "wasmactors_actors{"); n > metrics.MaxTypes+1 {
		t.Errorf("%d types", n)
	}
	other, err := strconv.Atoi(value(text, `wasmactors_actors{type="`+metrics.OtherType+`"}`))
	if err != nil || other < 50 {
		t.Errorf("%d others, %v", other, err)
	}
}

// A counter never goes back, whatever comes and goes while it is read.
func TestCountersNeverGoBack(t *testing.T) {
	w := newWorld(t, metrics.Options{})
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ref, err := w.Spawn("", typed("brief", func(*host.Context, host.Message) error { return nil }))
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				_ = w.Tell(ref, 1)
			}
			_ = w.PoisonPill(ref)
		}
	})
	last := 0.0
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		v, _ := strconv.ParseFloat(value(w.scrape(t), `wasmactors_turns_total{type="brief"}`), 64)
		if v < last {
			t.Fatalf("%v after %v", v, last)
		}
		last = v
	}
	close(stop)
	all.Wait()
	eventually(t, "the actors do not end", func() bool {
		_, err := strconv.ParseFloat(value(w.scrape(t), `wasmactors_turns_total{type="brief"}`), 64)
		return err == nil && value(w.scrape(t), `wasmactors_actors{type="brief"}`) == "0"
	})
	if err := w.Idle(t.Context()); err != nil { // the last one's end is over
		t.Fatal(err)
	}
	want := strconv.FormatUint(w.View().Stats().Types["brief"].Turns, 10)
	if got := value(w.scrape(t), `wasmactors_turns_total{type="brief"}`); got != want {
		t.Errorf("%s turns are shown, there were %s", got, want)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	sys, err := host.New(host.NewConfig("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(t.Context())
	of := observe.New(sys, observe.Options{})
	defer of.Close()
	for path, want := range map[string]string{"/user/a": "", "/system/x/y": "", "/user/pool-*": "pattern", "a": "not the path", "/temp/x": "not the path"} {
		_, err := metrics.New(of, metrics.Options{}.WithActors(path))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := metrics.New(of, metrics.Options{}.WithActors(slices.Repeat([]string{"/user/a"}, metrics.MaxActors+1)...)); err == nil {
		t.Error("too many actors are no error")
	}
}

func TestHTTP(t *testing.T) {
	w := newWorld(t, metrics.Options{})
	for _, c := range []struct {
		method, accept string
		code           int
		zipped         bool
		empty          bool
	}{
		{http.MethodGet, "", 200, false, false}, {http.MethodGet, "br, gzip", 200, true, false}, {http.MethodGet, "gzip;q=0", 200, false, false},
		{http.MethodHead, "", 200, false, true}, {http.MethodPost, "", 405, false, false},
	} {
		q := httptest.NewRequest(c.method, "/metrics", nil)
		q.Header.Set("Accept-Encoding", c.accept)
		r := httptest.NewRecorder()
		w.ServeHTTP(r, q)
		if zipped := r.Header().Get("Content-Encoding") == "gzip"; r.Code != c.code || zipped != c.zipped || (r.Body.Len() == 0) != c.empty {
			t.Errorf("%+v: %d, %v, %d bytes", c, r.Code, r.Header(), r.Body.Len())
		}
		if c.zipped {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(z); err != nil || !bytes.Contains(text, []byte("wasmactors_ready 1")) {
				t.Errorf("%s, %v", text, err)
			}
		}
	}
}

// BenchmarkScrape is a scrape with 10^5 actors and a walk of its own, whose goal is 50 ms.
func BenchmarkScrape(b *testing.B) {
	const sharing = 250 * time.Millisecond
	w := sharedWorld(b, metrics.Options{}.WithActors("/user/n0", "/user/n99999"), sharing)
	nothing := host.Func(func(*host.Context, host.Message) error { return nil })
	for i := range 100_000 {
		w.spawn(b, "n"+strconv.Itoa(i), nothing)
	}
	for b.Loop() {
		b.StopTimer()
		time.Sleep(sharing)
		b.StartTimer()
		w.scrape(b)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/scrape")
}

// The figures of a node of a cluster, with as many links as there are series for.
func TestTheFiguresOfANode(t *testing.T) {
	text := everything(t).scrape(t)
	for series, want := range map[string]string{
		`wasmactors_cluster_acting`: "1", `wasmactors_cluster_lease_left_seconds`: "2.5", `wasmactors_cluster_members`: "3", `wasmactors_cluster_directory_up`: "0",
		`wasmactors_cluster_renewals_total{result="confirmed"}`: "7", `wasmactors_cluster_renewals_total{result="failed"}`: "1", `wasmactors_cluster_directory_seconds_count`: "1",
		`wasmactors_cluster_events_total{event="gone"}`: "1", `wasmactors_cluster_messages_lost_total`: "4",
		`wasmactors_cluster_link_messages_total{node="n1000",direction="sent"}`: "10", `wasmactors_cluster_link_messages_total{node="(other)",direction="received"}`: "60",
		`wasmactors_cluster_link_queue_bytes{node="(other)"}`: "9", `wasmactors_cluster_shards_owned{kind="carts"}`: "5", `wasmactors_cluster_moves_total{kind="carts",result="in"}`: "6",
		`wasmactors_cluster_shards_stolen_total{kind="carts"}`: "1", `wasmactors_cluster_children`: "2",
		`wasmactors_cluster_children_total{result="started"}`: "8", `wasmactors_cluster_children_total{result="refused"}`: "3",
	} {
		if got := value(text, series); got != want {
			t.Errorf("%s is %q, not %s", series, got, want)
		}
	}
	if n := strings.Count(text, "wasmactors_cluster_link_queue_bytes{"); n != metrics.MaxLinks+1 {
		t.Errorf("%d links are shown", n)
	}
}
