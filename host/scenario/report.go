package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/printable"
)

// Report writes the outcomes of scenarios of a bundle: in the format of go test, or as JSON, one object per line.
// Texts of guests in it are made safe to show. The first error of writing is kept, see Err.
type Report struct {
	w       io.Writer
	bundle  string
	verbose bool
	json    bool
	near    func(string) string // how a path is shown
	counts  map[Outcome]int
	began   time.Time
	err     error
}

// NewReport is a report of a bundle. near, which may be nil, says how paths of files are shown.
func NewReport(w io.Writer, bundle string, verbose, asJSON bool, near func(string) string) *Report {
	if near == nil {
		near = func(path string) string { return path }
	}
	return &Report{w: w, bundle: bundle, verbose: verbose, json: asJSON, near: near, counts: map[Outcome]int{}, began: time.Now()}
}

// Err is the first error of writing.
func (r *Report) Err() error { return r.err }

// Failed is how many scenarios have failed.
func (r *Report) Failed() int { return r.counts[Failed] }

// Begins says that a scenario begins.
func (r *Report) Begins(s *Scenario) {
	switch {
	case r.json:
		r.line(told{Action: "run", Scenario: s.ID(), File: r.near(s.File), Line: s.Line, Column: s.Column})
	case r.verbose:
		r.printf("=== RUN   %s\n", s.ID())
	}
}

// Ended reports its outcome.
func (r *Report) Ended(x Result) {
	r.counts[x.Outcome]++
	s := x.Scenario
	if r.json {
		r.line(told{
			Action: string(x.Outcome), Scenario: s.ID(), File: r.near(s.File), Line: s.Line, Column: s.Column, Seconds: seconds(x.Took),
			Virtual: seconds(x.Passed), Skip: s.Skip, Failure: r.failure(x.Failure),
		})
		return
	}
	switch {
	case x.Outcome == Failed:
		r.printf("--- FAIL: %s (%.2fs)\n", s.ID(), x.Took.Seconds())
		r.print(x.Failure)
	case r.verbose && x.Outcome == Skipped:
		r.printf("--- SKIP: %s (0.00s)\n    %s\n", s.ID(), s.Skip)
	case r.verbose:
		r.printf("--- PASS: %s (%.2fs, %v of virtual time)\n", s.ID(), x.Took.Seconds(), x.Passed)
	}
}

// End reports the outcome of all.
func (r *Report) End() {
	took := time.Since(r.began)
	ran := r.counts[Passed] + r.counts[Failed] + r.counts[Skipped]
	if r.json {
		action := Passed
		if r.Failed() > 0 {
			action = Failed
		}
		r.line(summary{string(action), r.bundle, r.counts[Passed], r.counts[Failed], r.counts[Skipped], took.Seconds()})
		return
	}
	switch {
	case r.Failed() > 0:
		r.printf("FAIL\nFAIL\t%s\t%.3fs\n", r.bundle, took.Seconds())
	case ran == 0:
		r.printf("ok  \t%s\t%.3fs [no scenarios to run]\n", r.bundle, took.Seconds())
	case r.verbose:
		r.printf("PASS\nok  \t%s\t%.3fs\n", r.bundle, took.Seconds())
	default:
		r.printf("ok  \t%s\t%.3fs\n", r.bundle, took.Seconds())
	}
}

// print writes why a scenario has failed.
func (r *Report) print(f *Failure) {
	verb := f.Verb
	if verb == "" {
		verb = "it could not begin"
	}
	r.printf("    %s:%d:%d: %s: %s\n", r.near(f.File), f.Line, f.Column, verb, f.What)
	for _, x := range []struct{ name, text string }{{"expected", f.Want}, {"got", f.Got}, {"note", f.Hint}} {
		if x.text != "" {
			r.printf("        %-9s %s\n", x.name+":", x.text)
		}
	}
	if len(f.Before) > 0 {
		r.printf("        what happened before:\n")
		for _, l := range f.Before {
			r.printf("            %s\n", l)
		}
	}
}

func (r *Report) printf(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = strings.ReplaceAll(printable.Text(s), "\n", " ")
		}
	}
	if _, err := fmt.Fprintf(r.w, format, args...); err != nil && r.err == nil {
		r.err = err
	}
}

// told is a line of JSON about a scenario.
type told struct {
	Action   string       `json:"action"` // run, pass, fail, skip
	Scenario string       `json:"scenario"`
	File     string       `json:"file"`
	Line     int          `json:"line"`
	Column   int          `json:"column"`
	Seconds  *float64     `json:"seconds,omitempty"`         // of real time
	Virtual  *float64     `json:"virtual_seconds,omitempty"` // of virtual time
	Skip     string       `json:"skip,omitempty"`
	Failure  *toldFailure `json:"failure,omitempty"`
}

type toldFailure struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Step     int      `json:"step"`
	Verb     string   `json:"verb,omitempty"`
	Message  string   `json:"message"`
	Expected string   `json:"expected,omitempty"`
	Got      string   `json:"got,omitempty"`
	Note     string   `json:"note,omitempty"`
	Before   []string `json:"before,omitempty"`
}

// summary is the last line of JSON.
type summary struct {
	Action  string  `json:"action"` // pass, fail
	Bundle  string  `json:"bundle"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
	Seconds float64 `json:"seconds"`
}

func seconds(d time.Duration) *float64 { s := d.Seconds(); return &s }

func (r *Report) failure(f *Failure) *toldFailure {
	if f == nil {
		return nil
	}
	return &toldFailure{r.near(f.File), f.Line, f.Column, f.Step, f.Verb, f.What, f.Want, f.Got, f.Hint, f.Before}
}

func (r *Report) line(v any) {
	out, err := json.Marshal(v)
	if err == nil {
		_, err = r.w.Write(append(printable.JSON(out), '\n'))
	}
	if err != nil && r.err == nil {
		r.err = err
	}
}
