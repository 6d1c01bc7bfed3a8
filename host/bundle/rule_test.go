package bundle

import (
	"regexp"
	"strings"
	"testing"
)

// rules are all patterns of the grammar.
func rules(s *shape, seen map[*shape]bool, add func(*rule)) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.match != nil {
		add(s.match)
	}
	if s.key != nil {
		add(s.key)
	}
	if s.self != nil {
		rules(s.self(), seen, add)
	}
	rules(s.of, seen, add)
	for _, f := range s.fields {
		rules(f.shape, seen, add)
	}
}

// TestRules: what is checked is what the schema says.
func TestRules(t *testing.T) {
	n := 0
	texts := []string{"", "a", "A_1.~-", "ä", "a b", "a/b", "/user", "/user/a", "/user/a/**", "/data", "_X", "1X", "a\n", "\na"}
	for _, size := range []int{63, 64, 65, 192, 193, 194, 254, 255, 256, 1000} {
		texts = append(texts, strings.Repeat("x", size), strings.Repeat("ä", size))
	}
	rules(grammar, map[*shape]bool{}, func(r *rule) {
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
