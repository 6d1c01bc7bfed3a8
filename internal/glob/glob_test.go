package glob

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A pattern means what the obvious regular expression means.
func TestMatchesLikeARegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*?]{0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab]{0,10}`).Draw(t, "text")
		expr := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".").Replace(pattern) + "$")
		if got, want := Match(pattern, text), expr.MatchString(text); got != want {
			t.Fatalf("Match(%q, %q) = %v", pattern, text, got)
		}
	})
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"/user/a", "user/a", true}, {"/user/a", "user/a/b", false}, {"/user/*", "user/a", true}, {"/user/*", "user", false},
		{"/user/**", "user/a/b/c", true}, {"/user/**", "user", true}, {"/user/**", "system/a", false}, {"/**", "system/a", true},
		{"/user/*/x", "user/a/x", true}, {"/user/*/x", "user/a/y", false}, {"/user/w-?", "user/w-1", true}, {"/user/w-?", "user/w-10", false},
		{"/user/**/x", "user/a/x", true}, // not at the end it is an element like '*'
	} {
		if got := CompilePath(c.pattern).Match(strings.Split(c.path, "/")); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.path, got)
		}
	}
	p := CompilePath("/user/w*")
	for i, want := range []string{"user", "w*", ""} {
		if got, ok := p.At(i); got != want || ok != (i < 2) {
			t.Errorf("the element %d is %q, %v", i, got, ok)
		}
	}
	if got, ok := CompilePath("/user/**").At(7); got != "*" || !ok {
		t.Errorf("below it is %q, %v", got, ok)
	}
	if p := SelectPath([]string{"user", "**"}); !p.Match([]string{"user", "a"}) || p.Match([]string{"user", "a", "b"}) || p.Match([]string{"user"}) {
		t.Error("a selection goes below")
	}
	if MatchAnyPath(nil, []string{"user"}) || !MatchAnyPath(CompilePaths([]string{"/x", "/user"}), []string{"user"}) {
		t.Error("any of several")
	}
	if MatchAny(nil, "a") || !MatchAny([]string{"b", "a*"}, "ab") || HasMeta("a.b") || !HasMeta("a?") {
		t.Error("any of several, or what a pattern is")
	}
}

// Two patterns that a text matches overlap.
func TestOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := rapid.StringMatching(`[ab*?]{0,5}`).Draw(t, "p"), rapid.StringMatching(`[ab*?]{0,5}`).Draw(t, "q")
		text := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "text")
		if Match(p, text) && Match(q, text) && !(Overlap(p, q) && Overlap(q, p)) {
			t.Fatalf("%q matches %q and %q", text, p, q)
		}
	})
	for _, c := range []struct {
		capability, selection string
		want                  bool
	}{
		{"/user/a*", "user/b*", false}, {"/user/a*", "user/ab*", true}, {"/user/*a", "user/*b", false}, {"/user/a", "user/?", true}, {"/user/a", "user/b*", false},
		{"/user/*", "user/*/*", false}, {"/user/**", "user/*/*", true}, {"/user/**", "user", true}, {"/user/*/x", "user/*/y", false}, {"/user/*/x", "user/*", false}, {"/**", "*/a?", true},
	} {
		if got := CompilePath(c.capability).Overlap(strings.Split(c.selection, "/")); got != c.want {
			t.Errorf("%s and %s: %v", c.capability, c.selection, got)
		}
	}
}
