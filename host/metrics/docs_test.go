package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/metrics"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"go.yaml.in/yaml/v3"
)

const docs = "../../docs/"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(docs + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var tableRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([a-z, ]*) \\| (.*) \\| ([a-z]*) \\|$")

// The table of the page is the metrics, in their order, with their helps.
func TestThePageHasTheMetrics(t *testing.T) {
	rows := tableRow.FindAllStringSubmatch(read(t, "metrics.md"), -1)
	table := metrics.Table()
	if len(rows) != len(table) {
		t.Errorf("%d rows, %d metrics", len(rows), len(table))
	}
	for i := range min(len(rows), len(table)) {
		m := table[i]
		if got, want := rows[i][1:], []string{m.Name, m.Kind.String(), strings.Join(m.Labels, ", "), m.Help, m.Choice}; !slices.Equal(got, want) {
			t.Errorf("the page has %q, it is %q", got, want)
		}
	}
}

// known are the names that a query may use, with the labels of their series.
func known() map[string][]string {
	all := map[string][]string{}
	for _, m := range metrics.Table() {
		all[m.Name] = m.Labels
		if m.Kind == exposition.Histogram {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[m.Name+suffix] = m.Labels
			}
		}
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(wasmactors|go|process)_[a-z_]+`)
	matchers   = regexp.MustCompile(`\b((?:wasmactors|go|process)_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	groups     = regexp.MustCompile(`by \(([a-z, ]+)\) \((.*)`)
	legends    = regexp.MustCompile(`\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}`)
)

// checkQuery complains about what does not exist in a query and in what is shown of it.
func checkQuery(t *testing.T, where, query, legend string) {
	t.Helper()
	all := known()
	names := metricName.FindAllString(query, -1)
	if len(names) == 0 {
		t.Errorf("%s: %s names no metric", where, query)
	}
	var labels []string
	for _, name := range names {
		has, ok := all[name]
		if strings.HasSuffix(name, "_bucket") {
			has = append(slices.Clone(has), "le")
		}
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		labels = append(labels, has...)
	}
	labels = append(labels, "instance", "job") // Prometheus' own
	for _, m := range matchers.FindAllStringSubmatch(query, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(append([]string{"instance", "job"}, all[m[1]]...), l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
		}
	}
	for _, g := range groups.FindAllStringSubmatch(query, -1) {
		for _, l := range strings.Split(g[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(l)) {
				t.Errorf("%s: %s: nothing has the label %s", where, query, l)
			}
		}
	}
	for _, l := range legends.FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(labels, l[1]) {
			t.Errorf("%s: %q: nothing has the label %s", where, legend, l[1])
		}
	}
}

// The dashboard asks for what exists, and for every metric that has a rate or a state worth a
// look.
func TestTheDashboardNamesWhatExists(t *testing.T) {
	text := read(t, "grafana/wasmactors.json")
	var d struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Query any }
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the number %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkQuery(t, p.Title, target.Expr, target.LegendFormat)
		}
	}
	for _, name := range metricName.FindAllString(text, -1) {
		if _, ok := known()[name]; !ok {
			t.Errorf("there is no metric %s", name)
		}
	}
	for _, m := range metrics.Table() {
		seldom := []string{"wasmactors_build_info", "wasmactors_start_time_seconds", "wasmactors_actors_limit", "wasmactors_actor_incarnation", "wasmactors_actor_crashes_total",
			"wasmactors_actor_fuel_total", "wasmactors_actor_mailbox_oldest_seconds"}
		if !strings.Contains(text, m.Name) && !slices.Contains(seldom, m.Name) {
			t.Errorf("%s is not on the dashboard", m.Name)
		}
	}
}

func TestTheAlertsNameWhatExists(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	states := regexp.MustCompile(`state="([a-z]+)"`)
	reasons := regexp.MustCompile(`reason=~?"([a-z_|]+)"`)
	text := everything(t).scrape(t)
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			n++
			checkQuery(t, r.Alert, r.Expr, r.Annotations["summary"])
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s lacks a severity or a summary", r.Alert)
			}
			for _, m := range states.FindAllStringSubmatch(r.Expr, -1) {
				if !strings.Contains(text, `state="`+m[1]+`"`) {
					t.Errorf("%s: there is no state %s", r.Alert, m[1])
				}
			}
			for _, m := range reasons.FindAllStringSubmatch(r.Expr, -1) {
				for _, reason := range strings.Split(m[1], "|") {
					if !strings.Contains(text, `reason="`+reason+`"`) {
						t.Errorf("%s: there is no reason %s", r.Alert, reason)
					}
				}
			}
		}
	}
	if n < 5 {
		t.Errorf("%d alerts", n)
	}
	var scrape struct {
		Configs []struct {
			Job string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
		Rules []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus/prometheus.yml")), &scrape); err != nil || len(scrape.Configs) == 0 || scrape.Rules[0] != "alerts.yml" {
		t.Errorf("%+v, %v", scrape, err)
	}
}
