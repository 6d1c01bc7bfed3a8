// Package metrics shows a system's figures to Prometheus: an http.Handler for /metrics, and in
// host/metrics/prom a collector for an application that has a registry of its own.
//
// The number of series is bounded, whatever guests do: figures are by actor type, which
// modules declare before they are loaded, and by actor only for those that an operator names.
// docs/metrics.md lists the metrics.
package metrics

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/internal/histogram"
)

// Bounds of the number of series.
const (
	MaxTypes  = 200 // further ones are counted together, as OtherType
	MaxActors = 100 // whose own figures are shown
)

// OtherType is the label of the types beyond MaxTypes.
const OtherType = "(other)"

// Options say what is shown. They are immutable: every With method returns a changed copy.
// The zero value is ready.
type Options struct {
	version  string
	actors   []string
	guests   func() []exposition.Family
	services func() []*service.Running
	gateway  func() *gateway.Gateway
	spans    func() Spans
	figures  []figures
	cluster  func() *Cluster
}

// figures are what something counts for itself.
type figures struct {
	of string
	f  func() []service.Figure
}

// Spans is what happened to the spans of traces; see tracing.Stats.
type Spans struct {
	Recorded, Long, Fast uint64
	Traces               int
}

// WithVersion sets the version that wasmactors_build_info states; the default is that of the
// program's main module.
func (o Options) WithVersion(v string) Options { o.version = v; return o }

// WithActors shows the figures of the actors with these paths, such as /user/shop, one by one
// while they live. Patterns are refused: they would let guests, which name their children,
// make any number of series.
func (o Options) WithActors(paths ...string) Options {
	o.actors = append(append([]string(nil), o.actors...), paths...)
	return o
}

// WithGuests shows the figures that guests report themselves; see guests.Service.Families.
func (o Options) WithGuests(f func() []exposition.Family) Options { o.guests = f; return o }

// WithServices shows what services do for actors; see bundle.Bundle.Services.
func (o Options) WithServices(f func() []*service.Running) Options { o.services = f; return o }

// WithFigures shows what something that is no service counts for itself, under a name of small letters, digits and _; such as the streams
// of host/flow: WithFigures("flow", flow.Figures).
func (o Options) WithFigures(of string, f func() []service.Figure) Options {
	o.figures = append(slices.Clone(o.figures), figures{of, f})
	return o
}

// WithGateway shows the requests from outside; see bundle.Bundle.Gateway. f may return nil: there is no gateway.
func (o Options) WithGateway(f func() *gateway.Gateway) Options { o.gateway = f; return o }

// WithSpans shows what happened to spans; see tracing.Tracer.Stats.
func (o Options) WithSpans(f func() Spans) Options { o.spans = f; return o }

// Metrics are the figures of one system. All methods are for any goroutine.
type Metrics struct {
	o  Options
	of *observe.Observer

	mu    sync.Mutex
	types map[string]int // those with series of their own, and where their counters are
	last  [][typeCounters]float64
	sums  []typeSum // of a collection
}

// typeCounters are the counters by type, in the order of the table.
const typeCounters = 4

type typeSum struct {
	actors, asleep, mailbox, held float64
	counters                      [typeCounters]float64
	seen                          bool
}

// New shows the figures of an observer. An error says which path cannot be shown.
func New(of *observe.Observer, o Options) (*Metrics, error) {
	if err := CheckActors(o.actors); err != nil {
		return nil, err
	}
	if o.version == "" {
		o.version = "(devel)"
		if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
			o.version = b.Main.Version
		}
	}
	return &Metrics{o: o, of: of, types: map[string]int{}}, nil
}

// CheckActors says which of the paths of [Options.WithActors] cannot be shown.
func CheckActors(paths []string) error {
	if len(paths) > MaxActors {
		return fmt.Errorf("metrics: %d actors are to be shown, at most %d", len(paths), MaxActors)
	}
	for _, path := range paths {
		if !strings.HasPrefix(path, "/user/") && !strings.HasPrefix(path, "/system/") {
			return fmt.Errorf("metrics: %q is not the path of an actor, such as /user/shop", path)
		}
		if strings.ContainsAny(path, "*?") {
			return fmt.Errorf("metrics: %q is a pattern: actors are shown by their paths, for guests choose the names of their children", path)
		}
	}
	return nil
}

// collector puts families together.
type collector struct {
	families []exposition.Family
	at       [numInfos]int // where each is, from 1
}

func (c *collector) family(which int) *exposition.Family {
	if c.at[which] == 0 {
		c.families = append(c.families, infos[which].family(1))
		c.at[which] = len(c.families)
	}
	return &c.families[c.at[which]-1]
}

// add adds a series; the values of its labels are in the order of the table.
func (c *collector) add(which int, v float64, labels ...string) {
	f := c.family(which)
	s := exposition.Series{Value: v}
	for i, value := range labels {
		s.Labels = append(s.Labels, exposition.Label{Name: infos[which].Labels[i], Value: value})
	}
	f.Series = append(f.Series, s)
}

// Families are the figures as they are now, without those of the process.
func (m *Metrics) Families() []exposition.Family {
	begin := time.Now()
	c := &collector{}
	s := m.of.System()
	m.system(c, &s)
	m.byType(c, &s)
	m.turns(c)
	m.byState(c, &s)
	m.byActor(c)
	if m.o.spans != nil {
		x := m.o.spans()
		c.add(spans, float64(x.Recorded))
		c.add(spansDropped, float64(x.Long), "trace")
		c.add(spansDropped, float64(x.Fast), "rate")
		c.add(traces, float64(x.Traces))
	}
	if m.o.guests != nil {
		c.families = append(c.families, m.o.guests()...)
	}
	if s.Store != nil {
		m.store(c, s.Store)
	}
	if m.o.services != nil {
		m.services(c)
	}
	for _, x := range m.o.figures {
		c.figures(x.of, x.f())
	}
	if m.o.gateway != nil {
		if g := m.o.gateway(); g != nil {
			requests(c, g.Figures())
		}
	}
	if m.o.cluster != nil {
		if x := m.o.cluster(); x != nil {
			c.cluster(x)
		}
	}
	c.add(scrapeSeconds, time.Since(begin).Seconds())
	return c.families
}

// histogram adds a series of durations.
func (c *collector) histogram(which int, counts histogram.Counts, labels ...string) {
	c.add(which, counts.Sum.Seconds(), labels...)
	f := c.family(which)
	s := &f.Series[len(f.Series)-1]
	for i, bound := range histogram.Bounds() {
		s.Count += counts.Buckets[i]
		s.Buckets = append(s.Buckets, exposition.Bucket{Bound: bound.Seconds(), Count: s.Count})
	}
	s.Count += counts.Buckets[len(counts.Buckets)-1]
}

// turns shows how long turns took, of the types that have counters of their own; the others are added up.
func (m *Metrics) turns(c *collector) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.of.TurnTimes()
	var others histogram.Counts
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, own := m.types[name]; own && name != OtherType {
			c.histogram(turnSeconds, all[name], name)
		} else {
			others.Add(all[name])
		}
	}
	if others.N() > 0 {
		c.histogram(turnSeconds, others, OtherType)
	}
}

func requests(c *collector, f gateway.Figures) {
	c.add(httpOpen, float64(f.Open))
	c.add(httpConnections, float64(f.Connections))
	c.add(httpAccepted, float64(f.Accepted))
	c.add(httpWebSockets, float64(f.WebSockets))
	for _, r := range f.Routes {
		for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
			text := "other"
			if status != gateway.OtherStatus {
				text = strconv.Itoa(status)
			}
			c.add(httpRequests, float64(r.Statuses[status]), r.Route, text)
		}
		if r.Times.N() > 0 {
			c.histogram(httpSeconds, r.Times, r.Route)
		}
	}
}

func (m *Metrics) system(c *collector, s *observe.System) {
	c.add(buildInfo, 1, s.Name, s.Bundle, m.o.version, runtime.Version())
	c.add(startTime, float64(s.Started.UnixNano())/1e9)
	c.add(ready, truth(s.Ready))
	c.add(actorsLimit, float64(s.ActorLimit))
	c.add(mailboxBytes, float64(s.MailboxBytes))
	c.add(mailboxOldest, float64(s.OldestNS)/1e9)
	c.add(systemHeld, float64(s.Held))
	c.add(systemHeldLimit, float64(s.HeldLimit))
	c.add(workers, float64(s.Workers))
	for _, r := range host.DeadReasons() {
		c.add(deadLetters, float64(s.DeadReasons[r.Name()]), r.Name())
	}
}

func (m *Metrics) store(c *collector, s *observe.Store) {
	c.add(storeBytes, float64(s.Bytes))
	c.add(storeLimit, float64(s.Limit))
	c.add(storeUp, truth(!s.Full && s.Failed == ""))
	c.add(storeRecords, float64(s.Records))
	c.add(storeWritten, float64(s.Written))
	c.add(storeRefused, float64(s.Refused))
	c.add(storeWaiting, float64(s.Waiting))
	c.add(storeSince, float64(s.Since))
	c.add(storeRepeat, float64(s.RepeatNS)/1e9)
	c.add(storeCheckpoints, float64(s.Checkpoints), "made")
	c.add(storeCheckpoints, float64(s.CheckpointsFailed), "failed")
	c.add(storeCheckpointBytes, float64(s.CheckpointBytes))
	c.add(storePause, float64(s.PauseNS)/1e9)
}

func (m *Metrics) services(c *collector) {
	for _, s := range m.o.services() {
		c.add(serviceOpen, float64(s.Open()), s.Name())
		c.add(serviceWaiting, float64(s.Waiting()), s.Name())
		_, down := s.Outage()
		c.add(serviceUp, truth(!down), s.Name())
		for _, n := range s.Counts() {
			code := "ok"
			if n.Code != "" {
				code = string(n.Code)
			}
			c.add(serviceRequests, float64(n.N), s.Name(), n.Op, code)
		}
		c.figures(s.Name(), s.Figures())
		for _, x := range s.Times() {
			c.histogram(serviceSeconds, x.Counts, s.Name(), x.Op)
		}
	}
}

func (c *collector) figures(of string, all []service.Figure) {
	for _, f := range all {
		if name, grows := strings.CutSuffix(f.Name, "_total"); grows {
			c.add(serviceFigureTotal, f.Value, of, name)
		} else {
			c.add(serviceFigure, f.Value, of, name)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// byType shows the types, the first MaxTypes each by itself. A counter never
// goes back: an actor that is ending is in no sum for a moment.
func (m *Metrics) byType(c *collector, s *observe.System) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.sums {
		m.sums[i] = typeSum{}
	}
	for i := range s.Types {
		t := &s.Types[i]
		at := m.place(t.Name)
		x := &m.sums[at]
		x.seen = true
		x.actors += float64(t.Actors)
		x.asleep += float64(t.Asleep)
		x.mailbox += float64(t.Mailbox)
		x.held += float64(t.Held)
		for k, v := range [typeCounters]uint64{t.Turns, t.Crashes, t.Restarts, t.Fuel} {
			x.counters[k] += float64(v)
		}
	}
	names := make([]string, len(m.sums))
	for name, at := range m.types {
		names[at] = name
	}
	for at, name := range names {
		x := &m.sums[at]
		if !x.seen {
			continue
		}
		c.add(actors, x.actors, name)
		c.add(actorsAsleep, x.asleep, name)
		c.add(mailboxMessages, x.mailbox, name)
		c.add(heldBytes, x.held, name)
		for k, which := range [typeCounters]int{turns, crashes, restarts, fuel} {
			m.last[at][k] = max(m.last[at][k], x.counters[k])
			c.add(which, m.last[at][k], name)
		}
	}
}

// place is where the sums of a type are.
func (m *Metrics) place(name string) int {
	if _, known := m.types[name]; !known && len(m.types) >= MaxTypes {
		name = OtherType
	}
	at, known := m.types[name]
	if !known {
		at = len(m.sums)
		m.types[name] = at
		m.sums = append(m.sums, typeSum{})
		m.last = append(m.last, [typeCounters]float64{})
	}
	return at
}

// byState shows all states, including those that no actor is in.
func (m *Metrics) byState(c *collector, s *observe.System) {
	for _, state := range observe.States() {
		c.add(actorsIn, float64(s.States[state]), string(state))
	}
}

// byActor shows the actors that were chosen, while they live.
func (m *Metrics) byActor(c *collector) {
	if len(m.o.actors) == 0 {
		return
	}
	page, err := m.of.Actors(observe.Query{Select: observe.Select{Paths: m.o.actors}, Limit: MaxActors})
	if err != nil {
		return
	}
	for i := range page.Actors {
		a := &page.Actors[i]
		add := func(which int, v float64) { c.add(which, v, a.Path, a.Type) }
		add(actorIncarnation, float64(a.Incarnation))
		add(actorTurns, float64(a.Turns))
		add(actorCrashes, float64(a.Crashes))
		add(actorRestarts, float64(a.Restarts))
		add(actorFuel, float64(a.Fuel))
		add(actorMailbox, float64(a.Mailbox))
		add(actorOldest, float64(a.OldestNS)/1e9)
		add(actorHeld, float64(a.Held))
	}
}

// ServeHTTP implements http.Handler: the figures, and those of the process.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are read with GET", http.StatusMethodNotAllowed)
		return
	}
	families := append(m.Families(), processFamilies()...)
	w.Header().Set("Content-Type", exposition.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept-Encoding")
	var out io.Writer = w
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		out = z
	}
	if r.Method == http.MethodHead {
		return
	}
	_ = exposition.Write(out, families) // who has gone need not be told
}

func acceptsGzip(header string) bool {
	for _, part := range strings.Split(header, ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.ReplaceAll(quality, " ", "")
			return q != "q=0" && q != "q=0.0"
		}
	}
	return false
}
