package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host/scenario"
	"github.com/wasmactors/wasmactors/host/simulate"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// returned guards the bundles that jobs give back.
var returned sync.Mutex

// simulationReport says how simulations end: for people, as JSON, or for JUnit.
type simulationReport struct {
	w       io.Writer
	bundle  string
	json    bool
	verbose bool
	began   time.Time
	err     error

	runs, failed int
	virtual      time.Duration
	now          *simulatedCase
	cases        []*simulatedCase
}

// simulatedCase is a scenario in the report for JUnit.
type simulatedCase struct {
	name  string
	began time.Time
	took  time.Duration
	runs  int
	fails []string
}

func newSimulationReport(w io.Writer, bundle string, asJSON, verbose bool) *simulationReport {
	return &simulationReport{w: w, bundle: bundle, json: asJSON, verbose: verbose, began: time.Now()}
}

// simulationLine is a line of JSON.
type simulationLine struct {
	Action   string          `json:"action"` // run, pass, fail, shrunk; pass or fail with bundle is the last line
	Bundle   string          `json:"bundle,omitempty"`
	Host     string          `json:"host"`
	Scenario string          `json:"scenario,omitempty"`
	Seed     *uint64         `json:"seed,omitempty"`
	Chain    string          `json:"chain,omitempty"`
	Records  uint64          `json:"records,omitempty"`
	Rule     string          `json:"rule,omitempty"`
	What     string          `json:"what,omitempty"`
	At       *float64        `json:"at_seconds,omitempty"` // virtual
	Error    string          `json:"error,omitempty"`
	Plan     *simulate.Plan  `json:"plan,omitempty"`
	Command  string          `json:"command,omitempty"`
	Case     string          `json:"case,omitempty"`
	Before   []string        `json:"before,omitempty"`
	Runs     int             `json:"runs,omitempty"`
	Failed   int             `json:"failed,omitempty"`
	Virtual  *float64        `json:"virtual_seconds,omitempty"`
	Seconds  *float64        `json:"seconds,omitempty"`
	Shrunk   *simulationLine `json:"shrunk,omitempty"`
	Crash    string          `json:"crash_file,omitempty"` // wasmactors replay steps through it
}

func inSeconds(d time.Duration) *float64 { s := d.Seconds(); return &s }

func (r *simulationReport) line(l simulationLine) {
	l.Host = simulate.Version()
	out, err := json.Marshal(l)
	if err == nil {
		_, err = r.w.Write(append(printable.JSON(out), '\n'))
	}
	r.keep(err)
}

func (r *simulationReport) keep(err error) {
	if err != nil && r.err == nil {
		r.err = err
	}
}

func (r *simulationReport) printf(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = strings.ReplaceAll(printable.Text(s), "\n", " ")
		}
	}
	_, err := fmt.Fprintf(r.w, format, args...)
	r.keep(err)
}

func (r *simulationReport) note(format string, args ...any) {
	if !r.json {
		r.printf("note: "+format+"\n", args...)
	}
}

// begins says that the seeds of a scenario are next.
func (r *simulationReport) begins(s *scenario.Scenario) {
	if r.now != nil {
		r.now.took = time.Since(r.now.began)
	}
	r.now = &simulatedCase{name: s.ID(), began: time.Now()}
	r.cases = append(r.cases, r.now)
	switch {
	case r.json:
		r.line(simulationLine{Action: "run", Scenario: s.ID()})
	case r.verbose:
		r.printf("=== RUN   %s\n", s.ID())
	}
}

// outcome reports how a seed has ended.
func (r *simulationReport) outcome(s *scenario.Scenario, o *simulate.Outcome) {
	r.runs++
	r.now.runs++
	r.virtual += o.Virtual
	if o.Failed() {
		r.failed++
		return
	}
	switch {
	case !r.verbose:
	case r.json:
		r.line(simulationLine{Action: "pass", Scenario: s.ID(), Seed: &o.Plan.Seed, Chain: o.Chain, Records: o.Records, Virtual: inSeconds(o.Virtual), Seconds: inSeconds(o.Took)})
	default:
		r.printf("    seed %-6d ok    %s %6d records, %v of virtual time, %.1f ms\n", o.Plan.Seed, o.Chain[:16], o.Records, o.Virtual, o.Took.Seconds()*1000)
	}
}

// violated says what is wrong with an outcome.
func violated(o *simulate.Outcome) (rule, what string, at time.Duration) {
	if v := o.Violation; v != nil {
		return v.Rule, v.What, v.At
	}
	return "the run", o.Err.Error(), o.Virtual
}

// failure reports a seed that has failed, and what was made of it.
func (r *simulationReport) failure(s *scenario.Scenario, o *simulate.Outcome, shrunk *simulate.Shrunk, file, command, path, flags, crash string) {
	rule, what, at := violated(o)
	small := o
	if shrunk != nil {
		small = shrunk.Outcome
	}
	byCase := fmt.Sprintf("wasmactors simulate %s --case %s%s", quoted(path), quoted(file), flags)
	if r.json {
		l := simulationLine{
			Action: "fail", Scenario: s.ID(), Seed: &o.Plan.Seed, Rule: rule, What: what, At: inSeconds(at), Plan: &o.Plan, Chain: o.Chain, Records: o.Records,
			Command: command, Before: o.Tail, Crash: crash,
		}
		if shrunk != nil {
			rule, what, at := violated(small)
			l.Shrunk = &simulationLine{
				Action: "shrunk", Host: simulate.Version(), Rule: rule, What: what, At: inSeconds(at), Plan: &small.Plan, Case: file, Command: byCase, Before: small.Tail, Runs: shrunk.Runs,
			}
		}
		r.line(l)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %v after the beginning\n", rule, what, at)
	fmt.Fprintf(&b, "    host:    %s\n    options: %s\n    repeat:  %s\n", o.Plan.Host, planText(&o.Plan), command)
	if shrunk != nil {
		switch {
		case o.Violation == nil:
			fmt.Fprintf(&b, "    it was not shrunk: no rule is violated\n")
		case shrunk.Drawn:
			fmt.Fprintf(&b, "    it was not shrunk: with the same faults as data it does not fail\n")
		default:
			fmt.Fprintf(&b, "    shrunk in %d runs from %d faults and %d messages to %d and %d:\n", shrunk.Runs, len(o.Faults), o.Messages,
				len(small.Plan.Faults), sentOf(small))
			for _, f := range small.Plan.Faults {
				fmt.Fprintf(&b, "        %s at %s, opportunity %d\n", f.Class, f.Place, f.N)
			}
		}
		fmt.Fprintf(&b, "    repeat:  %s\n", byCase)
	}
	if crash != "" {
		fmt.Fprintf(&b, "    step:    %s\n", stepCommand(crash))
	}
	fmt.Fprintf(&b, "    what happened before:\n")
	for _, l := range small.Tail {
		fmt.Fprintf(&b, "        %s\n", l)
	}
	r.printf("--- FAIL: %s, seed %d\n", s.ID(), o.Plan.Seed)
	for _, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		r.printf("    %s\n", l)
	}
	r.now.fails = append(r.now.fails, fmt.Sprintf("seed %d: %s", o.Plan.Seed, b.String()))
}

// sentOf is how many messages from outside a run has sent.
func sentOf(o *simulate.Outcome) uint64 {
	left, _ := slices.BinarySearch(o.Plan.Skip, o.Messages) // after its end there may be more
	return o.Messages - uint64(left)
}

// stepCommand steps through a crash file, from the failure on.
func stepCommand(file string) string { return "wasmactors replay --step " + quoted(near(file)) }

// planText is the options of a seed, in a line.
func planText(p *simulate.Plan) string {
	var parts []string
	for _, c := range p.On() {
		switch {
		case c == simulate.Order:
			parts = append(parts, "order "+string(p.Prefer))
		case c == simulate.Asleep:
			parts = append(parts, fmt.Sprintf("asleep, but %d", p.Awake))
		case p.Rates[c] > 0:
			parts = append(parts, fmt.Sprintf("%s %.3f", c, p.Rates[c]))
		default:
			parts = append(parts, string(c))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("spells of %d", p.Spell)), ", ")
}

// end reports the outcome of all.
func (r *simulationReport) end() {
	took := time.Since(r.began)
	if r.now != nil {
		r.now.took = time.Since(r.now.began)
	}
	if r.json {
		action := "pass"
		if r.failed > 0 {
			action = "fail"
		}
		r.line(simulationLine{Action: action, Bundle: r.bundle, Runs: r.runs, Failed: r.failed, Virtual: inSeconds(r.virtual), Seconds: inSeconds(took)})
		return
	}
	word := "ok  "
	if r.failed > 0 {
		word = "FAIL"
	}
	r.printf("%s\t%s\t%.3fs\t%d runs, %v of virtual time, host %s\n", word, r.bundle, took.Seconds(), r.runs, r.virtual.Round(time.Millisecond), simulate.Version())
}

type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Time     float64     `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Time     float64        `xml:"time,attr"`
		Failures []junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junit writes the report for JUnit: a test case is a scenario with all its seeds.
func (r *simulationReport) junit(path string) error {
	s := junitSuite{Name: r.bundle, Tests: len(r.cases), Time: time.Since(r.began).Seconds()}
	for _, c := range r.cases {
		x := junitCase{Class: r.bundle, Name: c.name, Time: c.took.Seconds()}
		for _, f := range c.fails {
			text := printable.Text(f)
			first, _, _ := strings.Cut(text, "\n")
			x.Failures = append(x.Failures, junitFailure{first, text})
		}
		if len(x.Failures) > 0 {
			s.Failures++
		}
		s.Cases = append(s.Cases, x)
	}
	out, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(out, '\n')...), 0o644)
}
