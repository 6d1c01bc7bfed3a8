package main

import (
	"encoding/json"
	"io"
	"math"
	"slices"
)

// figure is one line of the report.
//
// Baseline is the same quantity measured on the naive host in the same run, or
// absent where there is nothing to compare with. Ratio says how many times
// better the product is: baseline/value where less is better, value/baseline
// where more is.
type figure struct {
	Name     string   `json:"name"`
	Value    float64  `json:"value"`
	Unit     string   `json:"unit"`
	Baseline *float64 `json:"baseline"`
	Ratio    *float64 `json:"ratio"`
	Note     string   `json:"note,omitempty"`
}

// reporter writes figures as JSON lines.
type reporter struct{ enc *json.Encoder }

func newReporter(w io.Writer) *reporter {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &reporter{enc}
}

// compare reports value next to baseline; less is better.
func (r *reporter) compare(name, unit string, value, baseline float64, note string) error {
	ratio := round(baseline / value)
	baseline = round(baseline)
	return r.enc.Encode(figure{name, round(value), unit, &baseline, &ratio, note})
}

// alone reports a value that has no baseline.
func (r *reporter) alone(name, unit string, value float64, note string) error {
	return r.enc.Encode(figure{Name: name, Value: round(value), Unit: unit, Note: note})
}

// round keeps four significant digits: what is behind them is noise.
func round(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// median of the samples; it sorts them.
func median(samples []float64) float64 {
	slices.Sort(samples)
	n := len(samples)
	if n == 0 {
		return math.NaN()
	}
	if n%2 == 1 {
		return samples[n/2]
	}
	return (samples[n/2-1] + samples[n/2]) / 2
}
