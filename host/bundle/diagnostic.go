// Package bundle turns a folder with a manifest, bundle.yaml, into a tree of
// actors, and runs it.
//
// docs/bundle.md describes the manifest; docs/bundle.schema.json is made from the
// same table that the manifest is checked against.
package bundle

import (
	"fmt"
	"strings"
)

// Diagnostic is one thing that is wrong with a manifest.
type Diagnostic struct {
	File         string
	Line, Column int // from 1
	Message      string
}

// String is file:line:column and the message.
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
}

// Diagnostics is all that is wrong with a manifest, in the order of the file.
type Diagnostics []Diagnostic

func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// nearest is the candidate with the least distance to name, if it is small enough.
func nearest(name string, candidates []string) (string, bool) {
	best, at := max(2, len(name)/3)+1, ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < best {
			best, at = d, c
		}
	}
	return at, at != ""
}

// Nearest is the candidate that is most like a name; "" if none is similar enough.
func Nearest(name string, candidates []string) string {
	s, _ := nearest(name, candidates)
	return s
}

// suggestion is "; did you mean ...?", or the list of what would be valid.
func suggestion(name string, candidates []string) string {
	if c, ok := nearest(name, candidates); ok {
		return fmt.Sprintf("; did you mean %q?", c)
	}
	if len(candidates) == 0 || len(candidates) > 16 {
		return ""
	}
	return "; valid here: " + strings.Join(candidates, ", ")
}

// distance is the Levenshtein distance, with a transposition of neighbours as one step.
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
