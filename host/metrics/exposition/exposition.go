// Package exposition writes metrics in the text format of Prometheus, version 0.0.4.
package exposition

import (
	"bufio"
	"io"
	"math"
	"strconv"
)

// ContentType is what the text is served as.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is what a metric is.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota + 1
	Gauge
	Histogram
)

var kindNames = [...]string{"untyped", "counter", "gauge", "histogram"}

// String is the name in the format.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// KindOf is the inverse of String.
func KindOf(name string) (Kind, bool) {
	for k := Counter; k <= Histogram; k++ {
		if kindNames[k] == name {
			return k, true
		}
	}
	return 0, false
}

// Family is a metric with all its series.
type Family struct {
	Name   string
	Help   string
	Kind   Kind
	Series []Series
}

// Series is one series. For a histogram Value is the sum of what was observed.
type Series struct {
	Labels  []Label
	Value   float64
	Buckets []Bucket // histogram, by their bounds, without that of infinity
	Count   uint64   // histogram
}

// Label is a label. Names are not checked.
type Label struct{ Name, Value string }

// Bucket counts values up to its bound, including those of smaller buckets.
type Bucket struct {
	Bound float64
	Count uint64
}

// Write writes families in their order. Those without series are left out.
func Write(w io.Writer, families []Family) error {
	b := &writer{Writer: bufio.NewWriterSize(w, 16<<10)}
	for i := range families {
		if len(families[i].Series) > 0 {
			b.family(&families[i])
		}
	}
	return b.Flush()
}

type writer struct {
	*bufio.Writer
	buf []byte
}

func (w *writer) family(f *Family) {
	if f.Help != "" {
		w.text("# HELP ", f.Name, " ")
		w.escaped(f.Help, false)
		w.text("\n")
	}
	w.text("# TYPE ", f.Name, " ", f.Kind.String(), "\n")
	for i := range f.Series {
		s := &f.Series[i]
		if f.Kind != Histogram {
			w.sample(f.Name, "", s.Labels, "", s.Value)
			continue
		}
		for _, b := range s.Buckets {
			w.sample(f.Name, "_bucket", s.Labels, number(b.Bound), float64(b.Count))
		}
		w.sample(f.Name, "_bucket", s.Labels, "+Inf", float64(s.Count))
		w.sample(f.Name, "_sum", s.Labels, "", s.Value)
		w.sample(f.Name, "_count", s.Labels, "", float64(s.Count))
	}
}

func (w *writer) sample(name, suffix string, labels []Label, bound string, v float64) {
	w.text(name, suffix)
	open := "{"
	label := func(name, value string) {
		w.text(open, name, `="`)
		w.escaped(value, true)
		w.text(`"`)
		open = ","
	}
	for _, l := range labels {
		label(l.Name, l.Value)
	}
	if bound != "" {
		label("le", bound)
	}
	if open == "," {
		w.text("}")
	}
	w.text(" ")
	w.buf = appendNumber(w.buf[:0], v)
	_, _ = w.Write(w.buf)
	w.text("\n")
}

func (w *writer) text(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

// escaped writes a text; quoted ones have their quotes escaped, too.
func (w *writer) escaped(s string, quoted bool) {
	from := 0
	for i := range len(s) {
		esc := ""
		switch s[i] {
		case '\\':
			esc = `\\`
		case '\n':
			esc = `\n`
		case '"':
			if quoted {
				esc = `\"`
			}
		}
		if esc != "" {
			w.text(s[from:i], esc)
			from = i + 1
		}
	}
	w.text(s[from:])
}

func number(v float64) string { return string(appendNumber(nil, v)) }

func appendNumber(dst []byte, v float64) []byte {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(dst, int64(v), 10)
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	case math.IsInf(v, -1):
		return append(dst, "-Inf"...)
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}
