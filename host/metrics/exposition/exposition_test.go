package exposition

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

// Prometheus' own parser reads back what was written, whatever is in labels and helps.
func TestPrometheusReadsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', '\n', ' ', '{', 'ü', '#'}))
		help, label := text.Draw(t, "help"), text.Draw(t, "label")
		v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, -1, 1e15, math.Inf(1), math.Inf(-1), math.MaxFloat64})).Draw(t, "value")
		h := Family{Name: "h", Kind: Histogram, Series: []Series{{Labels: []Label{{"l", label}}, Value: v, Count: 5, Buckets: []Bucket{{0.5, 1}, {2, 3}}}}}
		g := Family{Name: "g", Help: help, Kind: Gauge, Series: []Series{{Labels: []Label{{"l", label}, {"m", "x"}}, Value: v}, {Labels: []Label{{"l", label + "2"}, {"m", "x"}}, Value: 1}}}
		var b strings.Builder
		if err := Write(&b, []Family{h, {Name: "empty", Kind: Gauge}, g}); err != nil {
			t.Fatal(err)
		}
		p := expfmt.NewTextParser(model.UTF8Validation)
		got, err := p.TextToMetricFamilies(strings.NewReader(b.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		gauge := got["g"].GetMetric()[0]
		if len(got) != 2 || gauge.GetGauge().GetValue() != v || gauge.GetLabel()[0].GetValue() != label || strings.TrimSpace(got["g"].GetHelp()) != strings.TrimSpace(help) {
			t.Fatalf("%v\n%s", got, b.String())
		}
		hist := got["h"].GetMetric()[0].GetHistogram()
		if hist.GetSampleCount() != 5 || hist.GetSampleSum() != v || len(hist.GetBucket()) != 3 || hist.GetBucket()[1].GetCumulativeCount() != 3 {
			t.Fatalf("%v", hist)
		}
	})
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1 << 52: "4503599627370496", 0.1: "0.1", -3: "-3", 1e20: "1e+20", math.Inf(1): "+Inf", math.Inf(-1): "-Inf"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
	if got := number(math.NaN()); got != "NaN" {
		t.Error(got)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestAWriterThatIsGone(t *testing.T) {
	if err := Write(broken{}, []Family{{Name: "g", Kind: Gauge, Series: []Series{{}}}}); err == nil {
		t.Error("no error")
	}
}
