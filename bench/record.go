package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// record is one measurement: a line of JSON.
type record struct {
	Bench   string         `json:"bench"`
	Who     string         `json:"who"`
	Unit    string         `json:"unit"`
	Better  string         `json:"better"` // less or more
	Median  float64        `json:"median"`
	Min     float64        `json:"min"`
	Max     float64        `json:"max"`
	Samples []float64      `json:"samples,omitempty"`
	N       int            `json:"n,omitempty"`     // operations a sample
	Procs   int            `json:"procs,omitempty"` // GOMAXPROCS, or Erlang's schedulers
	Note    string         `json:"note,omitempty"`
	Missing string         `json:"missing,omitempty"` // why there is no figure
	Version string         `json:"version,omitempty"`
	Go      string         `json:"go"`
	Commit  string         `json:"commit"`
	Quick   bool           `json:"quick,omitempty"`
	Date    time.Time      `json:"date"`
	Machine map[string]any `json:"machine"`
}

func (r *record) key() string { return r.Bench + "\x00" + r.Who }

// fill sets the statistics of the samples.
func (r *record) fill(samples []float64) {
	for _, s := range samples {
		r.Samples = append(r.Samples, round(s))
	}
	sorted := slices.Sorted(slices.Values(samples))
	r.Median, r.Min, r.Max = round(median(sorted)), round(sorted[0]), round(sorted[len(sorted)-1])
}

// readRecords reads JSON lines. The last of those that measure the same counts.
func readRecords(path string) ([]record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []record
	at := map[string]int{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for line := 1; s.Scan(); line++ {
		var r record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		if i, ok := at[r.key()]; ok {
			list[i] = r
			continue
		}
		at[r.key()] = len(list)
		list = append(list, r)
	}
	return list, s.Err()
}

// reporter writes records.
type reporter struct {
	enc   *json.Encoder
	base  record
	human io.Writer
}

func newReporter(w io.Writer, quick bool) *reporter {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &reporter{enc: enc, human: os.Stderr, base: record{
		Go: goVersion(), Commit: commit(), Quick: quick, Date: time.Now().UTC().Truncate(time.Second), Machine: machine(),
	}}
}

// write completes the record with what is the same for all.
func (r *reporter) write(x record) error {
	x.Go, x.Commit, x.Quick, x.Date, x.Machine = r.base.Go, r.base.Commit, r.base.Quick, r.base.Date, r.base.Machine
	if x.Better == "" {
		x.Better = "less"
	}
	who := x.Who
	switch who {
	case ourFigure:
		who = x.Bench
	case theBaseline:
		who = "  the baseline"
	}
	if x.Missing != "" {
		fmt.Fprintf(r.human, "  %-28s -  (%s)\n", who, x.Missing)
	} else {
		fmt.Fprintf(r.human, "  %-28s %10.4g %-14s %.4g..%.4g  %s\n", who, x.Median, x.Unit, x.Min, x.Max, x.Note)
	}
	return r.enc.Encode(x)
}

// compare reports ours next to a baseline.
func (r *reporter) compare(name, unit string, value, baseline float64, note string) error {
	return r.pair(name, unit, []float64{value}, []float64{baseline}, note)
}

func (r *reporter) pair(name, unit string, values, baselines []float64, note string) error {
	x := record{Bench: name, Who: "ours", Unit: unit, Note: note}
	x.fill(values)
	if err := r.write(x); err != nil {
		return err
	}
	y := record{Bench: name, Who: "baseline", Unit: unit}
	y.fill(baselines)
	return r.write(y)
}

// more is compare where more is better.
func (r *reporter) more(name, unit string, value, baseline float64, note string) error {
	for _, x := range []record{{Who: ourFigure, Note: note, Median: value}, {Who: theBaseline, Median: baseline}} {
		y := record{Bench: name, Who: x.Who, Unit: unit, Better: "more", Note: x.Note}
		y.fill([]float64{x.Median})
		if err := r.write(y); err != nil {
			return err
		}
	}
	return nil
}

// alone reports a value that has no baseline.
func (r *reporter) alone(name, unit string, value float64, note string) error {
	x := record{Bench: name, Who: "ours", Unit: unit, Note: note}
	x.fill([]float64{value})
	return r.write(x)
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
