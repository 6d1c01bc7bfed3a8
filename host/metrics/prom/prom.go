// Package prom gives a system's metrics to a registry of Prometheus' own library, for an
// application that has one.
package prom

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
)

// Collector is a prometheus.Collector of what [metrics.Metrics] shows, without figures of the
// process. It describes nothing: which series there are depends on what runs.
func Collector(m *metrics.Metrics) prometheus.Collector { return collector{m} }

type collector struct{ metrics *metrics.Metrics }

func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, f := range c.metrics.Families() {
		for _, s := range f.Series {
			var names, values []string
			for _, l := range s.Labels {
				names, values = append(names, l.Name), append(values, l.Value)
			}
			out <- metricOf(&f, &s, prometheus.NewDesc(f.Name, f.Help, names, nil), values)
		}
	}
}

func metricOf(f *exposition.Family, s *exposition.Series, desc *prometheus.Desc, values []string) prometheus.Metric {
	var m prometheus.Metric
	var err error
	switch f.Kind {
	case exposition.Counter:
		m, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, s.Value, values...)
	case exposition.Histogram:
		buckets := map[float64]uint64{}
		for _, b := range s.Buckets {
			buckets[b.Bound] = b.Count
		}
		m, err = prometheus.NewConstHistogram(desc, s.Count, s.Value, buckets, values...)
	default:
		m, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.Value, values...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}
