// Package bundle turns a folder with a manifest, bundle.yaml, into a tree of
// actors, and runs it.
//
// [Load] checks a manifest, [Open] builds and loads its modules, [Bundle.Start]
// starts its actors in a system of their own and [Bundle.Spawn] in one that the
// application has made; [Bundle.Run] does all of it for a batch of input, and
// waits until the work is done.
//
// docs/bundle.md describes the manifest; docs/bundle.schema.json is made from the
// same table that manifests are checked against.
package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diagnostic is one thing that is wrong with a manifest.
type Diagnostic struct {
	File         string `json:"file"`
	Line         int    `json:"line"`   // from 1
	Column       int    `json:"column"` // from 1, in bytes
	Message      string `json:"message"`
	DidYouMean   string `json:"did_you_mean,omitempty"` // the nearest valid name
	Instructions string `json:"instructions,omitempty"` // what to do
}

// String is "file:line:column: what is wrong; did you mean ...?; what to do".
func (d Diagnostic) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
	if d.DidYouMean != "" {
		s += fmt.Sprintf("; did you mean %q?", d.DidYouMean)
	}
	if d.Instructions != "" {
		s += "; " + d.Instructions
	}
	return s
}

// Diagnostics is all that is wrong with a manifest, in the order of the file. It
// is an error if it is not empty.
type Diagnostics []Diagnostic

func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// maxDiagnostics bounds how much is reported about one manifest.
const maxDiagnostics = 100

// note is a diagnostic being written.
type note struct{ Diagnostic }

// suggest adds the candidate that is nearest to what was written or, if none is
// near and there are few, all of them.
func (d *note) suggest(written string, candidates []string) *note {
	if c, ok := nearest(written, candidates); ok {
		d.DidYouMean = c
	} else if len(candidates) > 0 && len(candidates) <= 16 {
		d.Instructions = "valid here: " + strings.Join(candidates, ", ")
	}
	return d
}

// hint says what to do.
func (d *note) hint(format string, args ...any) *note {
	if d.Instructions != "" {
		d.Instructions += "; "
	}
	d.Instructions += fmt.Sprintf(format, args...)
	return d
}

// report notes something about a node.
func (c *checker) report(n *yaml.Node, format string, args ...any) *note {
	d := &note{Diagnostic{File: c.file, Line: 1, Column: 1, Message: clip(fmt.Sprintf(format, args...))}}
	if n != nil {
		d.Line, d.Column = max(n.Line, 1), max(n.Column, 1)
	}
	if len(c.found) < maxDiagnostics {
		c.found = append(c.found, d)
	} else {
		c.more++
	}
	return d
}

// wrong is report about a value that later checks must not look at.
func (c *checker) wrong(n *yaml.Node, format string, args ...any) *note {
	c.bad[n] = true
	return c.report(n, format, args...)
}

// diagnostics are what was noted, in the order of the file.
func (c *checker) diagnostics() error {
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b *note) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var ds Diagnostics
	for _, d := range c.found {
		ds = append(ds, d.Diagnostic)
	}
	if last := ds[len(ds)-1]; c.more > 0 {
		ds = append(ds, Diagnostic{File: c.file, Line: last.Line, Column: last.Column, Message: fmt.Sprintf("and %d more", c.more)})
	}
	return ds
}

// clip bounds a message, which may quote what is in the file, and keeps it in
// one line.
func clip(s string) string {
	const most = 400
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// nearest is the candidate that is most like name, if any is like it at all.
func nearest(name string, candidates []string) (string, bool) {
	best, at := max(2, len(name)/3)+1, ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < best && d < max(len(name), len(c)) {
			best, at = d, c
		}
	}
	return at, at != ""
}

// distance is Levenshtein's, with a transposition of neighbours counting as one.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	older, old := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old = old, row
	}
	return old[len(b)]
}
