package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Markers between which the tables of docs/benchmarks.md are written.
const (
	tableBegin = "<!-- figures: begin, written by make bench -->"
	tableEnd   = "<!-- figures: end -->"
)

// table writes the figures of a run into the documentation, and the chart beside it.
func table(args []string) error {
	flags := flag.NewFlagSet("table", flag.ExitOnError)
	docs := flags.String("docs", filepath.Join(sourceDir(), "..", "docs", "benchmarks.md"), "file to change; - prints")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("table takes one file of JSON lines")
	}
	records, err := readRecords(flags.Arg(0))
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return fmt.Errorf("%s: no records", flags.Arg(0))
	}
	var w bytes.Buffer
	writeTables(&w, records)
	if *docs == "-" {
		_, err := os.Stdout.Write(w.Bytes())
		return err
	}
	text, err := os.ReadFile(*docs)
	if err != nil {
		return err
	}
	changed, err := between(text, tableBegin, tableEnd, w.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", *docs, err)
	}
	if err := os.WriteFile(*docs, changed, 0o644); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(*docs, ".md")+".svg", chart(records), 0o644)
}

// between replaces what is between two lines.
func between(text []byte, begin, end string, with []byte) ([]byte, error) {
	i := bytes.Index(text, []byte(begin+"\n"))
	j := bytes.Index(text, []byte(end+"\n"))
	if i < 0 || j < i {
		return nil, fmt.Errorf("no lines %q and %q", begin, end)
	}
	return slices.Concat(text[:i+len(begin)+1], []byte("\n"), with, []byte("\n"), text[j:]), nil
}

func index(records []record) map[string]record {
	m := map[string]record{}
	for _, r := range records {
		m[r.key()] = r
	}
	return m
}

func writeTables(w *bytes.Buffer, records []record) {
	by := index(records)
	writeRun(w, records)
	fmt.Fprint(w, "### Goals\n\n| | goal | figure | |\n|---|---|---|---|\n")
	for i := range goals {
		g := &goals[i]
		figure, met := g.reached(by)
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", g.what, g.aim, figure, met)
	}
	fmt.Fprint(w, "\n### Ours\n\nMedian, and least to greatest of the rounds.\n\n")
	writeMatrix(w, by, contestants()[:4])
	fmt.Fprint(w, "\n### Other actor systems\n\n")
	writeMatrix(w, by, contestants()[4:10])
	fmt.Fprint(w, "\n### Other ways to run wasm\n\n")
	writeMatrix(w, by, contestants()[10:])
	writeOthers(w, records)
	writeMissing(w, by)
}

// writeRun says what the figures are of.
func writeRun(w *bytes.Buffer, records []record) {
	r := records[0]
	procs, samples := 0, 0
	for _, x := range records {
		procs, samples = max(procs, x.Procs), max(samples, len(x.Samples))
	}
	fmt.Fprintf(w, "Run of %s at commit %s: %v, %v cores, %v %v, %s, GOMAXPROCS %d unless a row says otherwise, up to %d rounds.", r.Date.Format("2006-01-02"), r.Commit,
		r.Machine["cpu"], r.Machine["cores"], r.Machine["os"], r.Machine["kernel"], r.Go, procs, samples)
	if r.Quick {
		fmt.Fprint(w, " **A quick run: to see that it works, not to be quoted.**")
	}
	fmt.Fprint(w, "\n\n")
	var versions []string
	for _, c := range contestants()[4:] {
		for _, x := range records {
			if x.Who == c.name && x.Version != "" {
				versions = append(versions, c.title+" "+x.Version)
				break
			}
		}
	}
	fmt.Fprintf(w, "Versions: %s.\n\n", strings.Join(versions, ", "))
}

func writeMatrix(w *bytes.Buffer, by map[string]record, who []*contestant) {
	fmt.Fprint(w, "| |")
	for _, c := range who {
		fmt.Fprintf(w, " %s |", strings.TrimPrefix(c.title, "ours: "))
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(who)))
	for _, b := range slices.Concat(benchmarks, counted) {
		fmt.Fprintf(w, "| %s, %s |", b.title, b.unit)
		for _, c := range who {
			fmt.Fprintf(w, " %s |", cell(by, b.name, c.name))
		}
		fmt.Fprintln(w)
	}
}

func cell(by map[string]record, bench, who string) string {
	r, ok := by[bench+"\x00"+who]
	if !ok || r.Missing != "" {
		return "-"
	}
	s := number4(r.Median)
	if len(r.Samples) > 1 {
		s += fmt.Sprintf(" <sub>%s..%s</sub>", number4(r.Min), number4(r.Max))
	}
	if r.Note != "" {
		s += " (" + r.Note + ")"
	}
	return s
}

// number4 writes a figure with three significant digits and commas in thousands.
func number4(x float64) string {
	switch {
	case x >= 1000:
		s := strconv.FormatFloat(x, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// writeOthers is what is compared with something else than contestants.
func writeOthers(w *bytes.Buffer, records []record) {
	by := index(records)
	fmt.Fprint(w, "\n### More\n\n| | figure | baseline | |\n|---|---|---|---|\n")
	for _, r := range records {
		if r.Who != "ours" {
			continue
		}
		baseline := "-"
		if b, ok := by[r.Bench+"\x00baseline"]; ok {
			baseline = number4(b.Median) + " " + b.Unit
		}
		figure, note := number4(r.Median)+" "+r.Unit, r.Note
		if r.Missing != "" {
			figure, note = "-", oneLine(r.Missing)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.Bench, figure, baseline, note)
	}
}

// writeMissing says who does not do what, and why.
func writeMissing(w *bytes.Buffer, by map[string]record) {
	fmt.Fprint(w, "\n### Missing figures and why\n\n| | benchmarks | why |\n|---|---|---|\n")
	for _, c := range contestants() {
		var reasons []string
		which := map[string][]string{}
		for _, b := range slices.Concat(benchmarks, counted) {
			r, ok := by[b.name+"\x00"+c.name]
			if !ok || r.Missing == "" {
				continue
			}
			why := oneLine(r.Missing)
			if which[why] == nil {
				reasons = append(reasons, why)
			}
			which[why] = append(which[why], b.name)
		}
		for _, why := range reasons {
			fmt.Fprintf(w, "| %s | %s | %s |\n", c.title, strings.Join(which[why], ", "), why)
		}
	}
}

// oneLine is a text as a cell of a table.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "|", "/")), " ")
}
