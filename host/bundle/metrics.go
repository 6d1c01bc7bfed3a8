package bundle

import (
	"slices"
	"strconv"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"go.yaml.in/yaml/v3"
)

var metricShape = object("a metric that the actor counts itself; it is shown as "+guests.Prefix+"NAME",
	required("kind", enum("a counter grows, its name ends with _total; a gauge is set; a histogram observes", exposition.Counter.String(), exposition.Gauge.String(), exposition.Histogram.String())),
	optional("help", text(none, "what it is, for people")),
	optional("buckets", list("histogram: the bounds, ascending; default: for times in seconds, from 1 ms to 10 s", number("a bound", -guests.MaxValue, guests.MaxValue))),
)

// metrics are those that an actor may report. Metrics of the same name must be the same in the
// whole manifest.
func (c *checker) metrics(v view) []guests.Metric {
	var out []guests.Metric
	v.pairs(func(key *yaml.Node, m view) {
		kind, _ := exposition.KindOf(m.text("kind"))
		x := guests.Metric{Name: key.Value, Kind: kind, Help: m.text("help")}
		for _, b := range m.items("buckets") {
			f, _ := strconv.ParseFloat(b.n.Value, 64)
			x.Buckets = append(x.Buckets, f)
		}
		if err := x.Check(); err != nil {
			c.At(key, "capabilities.metrics: %v", err)
			return
		}
		if at := slices.IndexFunc(c.granted, func(o guests.Metric) bool { return o.Name == x.Name }); at < 0 {
			c.granted = append(c.granted, x)
		} else if err := guests.Agree(&x, &c.granted[at]); err != nil {
			c.At(key, "capabilities.metrics: %v", err)
		}
		if len(out) == guests.MaxMetrics {
			c.At(key, "capabilities.metrics: an actor has at most %d metrics of its own", guests.MaxMetrics)
		}
		out = append(out, x)
	})
	return out
}

// grantsOf is the metrics that actors may report, by their paths.
func grantsOf(m *Manifest) map[string][]guests.Metric {
	grants := map[string][]guests.Metric{}
	m.Walk(func(path string, a *Actor) {
		if len(a.Metrics) > 0 {
			grants[path] = a.Metrics
		}
	})
	return grants
}

// startMetrics starts the service for the figures that actors report themselves, if any may.
func (b *Bundle) startMetrics(sys *host.System) error {
	grants := grantsOf(b.Manifest)
	if len(grants) == 0 {
		return nil
	}
	service, err := guests.New(grants)
	if err != nil {
		return err
	}
	b.counted.Store(service)
	_, err = sys.SpawnService(guests.Name, service.Props())
	return err
}

// Metrics are the figures that the actors of the system that was started last report themselves; see
// metrics.Options.WithGuests. Any goroutine may call it.
func (b *Bundle) Metrics() []exposition.Family { return b.counted.Load().Families() }
