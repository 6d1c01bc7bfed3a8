package grammar

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Rule is a regular expression that a text must match. It is compiled when it is first
// needed, so that starting does not take the time for the patterns of all keys.
type Rule struct {
	text string
	re   func() *regexp.Regexp
	most int // bytes; 0: no limit
}

// NewRule reads a pattern. "{1,N}" at its end, of a class of ASCII characters, is
// checked as a length: as part of the expression it would be compiled to N
// copies of the class.
func NewRule(text string) *Rule {
	r := &Rule{text: text}
	expr := text
	if class, n, ok := strings.Cut(text, "]{1,"); ok {
		if most, err := strconv.Atoi(strings.TrimSuffix(n, "}$")); err == nil {
			r.most, expr = most, class+"]+$"
		}
	}
	r.re = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
	return r
}

// String is the pattern.
func (r *Rule) String() string { return r.text }

// MatchString reports whether a text matches the rule.
func (r *Rule) MatchString(s string) bool {
	return (r.most == 0 || len(s) <= r.most) && r.re().MatchString(s)
}
