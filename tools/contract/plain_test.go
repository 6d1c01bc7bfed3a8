package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longestCell bounds a cell of a table, in characters. Cells that only name tests may be longer.
const longestCell = 200

// retired are words that the pages no longer use, with the plain form.
var retired = []struct {
	word  *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the reader, sender or actor"},
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody)\b`), "no actor, another actor, every client"},
	{regexp.MustCompile(`(?i)\bmeanwhile\b`), "until then, during the delay"},
	{regexp.MustCompile(`(?i)\b(of late|lately)\b`), "recently"},
	{regexp.MustCompile(`(?i)\ball the same\b`), "anyway, still"},
	{regexp.MustCompile(`(?i)\bbut for\b`), "except"},
	{regexp.MustCompile(`(?i)\bbesides\b`), "in addition to, also"},
	{regexp.MustCompile(`(?i)\bhears? of\b`), "is notified"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "endlessly"},
	{regexp.MustCompile(`(?i)\b(verdict|quantum|injector|successor)\b`), "directive, time slice, global queue, next incarnation"},
	{regexp.MustCompile(`(?i)\b(gives?|given) (its|their) instances? back\b`), "releases its instance"},
}

// allowed are how many violations a page may have. These numbers only go down.
var allowed = map[string]int{
	"docs/architecture/metering-lab.md": 60,
}

// The pages are in plain English as far as a machine can tell: short cells, at most one semicolon in a sentence, no
// retired words. Code and generated figures are exempt.
func TestPagesArePlain(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 40 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	for _, page := range pages {
		name := strings.TrimPrefix(page, root)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := unplain(string(text))
		if len(found) <= allowed[name] {
			continue
		}
		for _, f := range found {
			t.Errorf("%s:%d: %s", name, f.line, f.why)
		}
	}
}

var (
	figures    = regexp.MustCompile(`(?ms)^<!-- figures: begin.*?^<!-- figures: end`)
	target     = regexp.MustCompile(`\]\([^)]*\)`)
	testNames  = regexp.MustCompile("^([a-z]+\\.)?`?(Test|Fuzz|Benchmark)\\w+`?$")
	delimiter  = regexp.MustCompile(`^:?-+:?$`)
	sentence   = regexp.MustCompile(`[.!?:]\s+`)
	escapedBar = regexp.MustCompile(`\\\|`)
)

type finding struct {
	line int
	why  string
}

// unplain are the violations of a page.
func unplain(text string) (found []finding) {
	text = fenced.ReplaceAllStringFunc(figures.ReplaceAllStringFunc(text, onlyLines), onlyLines)
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "    ") {
			continue // code
		}
		parts := []string{line}
		if strings.HasPrefix(line, "|") {
			parts = cells(escapedBar.ReplaceAllString(line, "/"))
		}
		for _, part := range parts {
			if delimiter.MatchString(part) || areTests(part) {
				continue
			}
			if n := len([]rune(part)); strings.HasPrefix(line, "|") && n > longestCell {
				found = append(found, finding{i + 1, "a cell is longer than 200 characters: move the reasons below the table"})
			}
			prose := inCode.ReplaceAllString(target.ReplaceAllString(part, "]"), "x")
			for _, s := range sentence.Split(prose, -1) {
				if strings.Count(s, ";") > 1 {
					found = append(found, finding{i + 1, "a sentence has two semicolons: " + s})
				}
			}
			for _, r := range retired {
				if w := r.word.FindString(prose); w != "" {
					found = append(found, finding{i + 1, "a retired word: " + w + "; use: " + r.plain})
				}
			}
		}
	}
	return found
}

// onlyLines keeps the numbers of the lines behind a piece that is left out.
func onlyLines(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }

// areTests reports whether a cell has nothing but names of tests.
func areTests(cell string) bool {
	for _, name := range strings.Split(cell, ", ") {
		if !testNames.MatchString(name) {
			return false
		}
	}
	return true
}

func TestUnplain(t *testing.T) {
	long := strings.Repeat("word ", 41)
	for text, want := range map[string]int{
		"plain words; one semicolon. Two; sentences.": 0,
		"one; two; three":                                       1,
		"`a; b; c` is code":                                     0,
		"```\nmeanwhile\n```\n":                                 0,
		"a message that nobody waits for":                       1,
		"| a | " + long + " |":                                  1,
		"| a | " + strings.Repeat("TestLong, ", 30) + "Test1 |": 0,
		"It comes lately. Meanwhile it waits":                   2,
	} {
		if found := unplain(text); len(found) != want {
			t.Errorf("%.40q: %v", text, found)
		}
	}
}

var (
	question      = regexp.MustCompile(`(?m)^## (.*)$`)
	contentsEntry = regexp.MustCompile(`(?m)^- \[(.*)\]\(#(.*)\)$`)
)

// The contents of RATIONALE.md are its headings, in their order, and its lines have at most 100 characters.
func TestContentsOfRationale(t *testing.T) {
	text, err := os.ReadFile(root + "RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	var headed []string
	for _, m := range question.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "Contents" {
			headed = append(headed, m[1])
		}
	}
	entries := contentsEntry.FindAllStringSubmatch(string(text), -1)
	if len(headed) < 50 || len(entries) != len(headed) {
		t.Errorf("%d headings, %d entries in the contents", len(headed), len(entries))
	}
	for i := range min(len(headed), len(entries)) {
		if entries[i][1] != headed[i] {
			t.Errorf("the contents have %q where the heading is %q", entries[i][1], headed[i])
			break
		}
	}
	for i, line := range lines(t, root+"RATIONALE.md") {
		if n := len([]rune(line)); n > 100 && !contentsEntry.MatchString(line) && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "    ") {
			t.Errorf("RATIONALE.md:%d: %d characters", i+1, n)
		}
	}
}
