package grammar

import (
	"fmt"
	"strings"
)

// Nearest is the candidate that is most like a name; "" if none is similar enough.
func Nearest(name string, candidates []string) string {
	best, at := max(2, len(name)/3)+1, ""
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < best {
			best, at = d, c
		}
	}
	return at
}

// Suggest is the end of an error about a name that does not exist: "; did you mean ...?", or the list of what would be valid.
func Suggest(name string, candidates []string) string {
	if c := Nearest(name, candidates); c != "" {
		return fmt.Sprintf("; did you mean %q?", c)
	}
	if len(candidates) == 0 || len(candidates) > 24 {
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
