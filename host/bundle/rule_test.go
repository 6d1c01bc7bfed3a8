package bundle

import (
	"regexp"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/internal/grammar"
)

// rules are all patterns of the grammar.
func rules(s *shape, seen map[*shape]bool, add func(*grammar.Rule)) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.Match != nil {
		add(s.Match)
	}
	if s.Key != nil {
		add(s.Key)
	}
	if s.Self != nil {
		rules(s.Self(), seen, add)
	}
	rules(s.Of, seen, add)
	for _, f := range s.Fields {
		rules(f.Shape, seen, add)
	}
}

// TestRules: what is checked is what the schema says.
func TestRules(t *testing.T) {
	n := 0
	texts := []string{"", "a", "A_1.~-", "ä", "a b", "a/b", "/user", "/user/a", "/user/a/**", "/data", "_X", "1X", "a\n", "\na"}
	for _, size := range []int{63, 64, 65, 192, 193, 194, 254, 255, 256, 1000} {
		texts = append(texts, strings.Repeat("x", size), strings.Repeat("ä", size))
	}
	rules(plain, map[*shape]bool{}, func(r *grammar.Rule) {
		n++
		re := regexp.MustCompile(r.String())
		for _, text := range texts {
			if r.MatchString(text) != re.MatchString(text) {
				t.Errorf("%s: %.40q is judged otherwise", r, text)
			}
		}
	})
	if n < 6 {
		t.Errorf("only %d rules", n)
	}
}
