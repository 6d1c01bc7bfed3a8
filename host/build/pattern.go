package build

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: most runs build nothing, and to compile all of
// them takes half a millisecond of every start.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
