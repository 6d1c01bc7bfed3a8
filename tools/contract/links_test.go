package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	inCode  = regexp.MustCompile("`[^`\n]*`")
)

// Links between pages lead to files, and to headings that are there.
func TestLinksLead(t *testing.T) {
	n := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "samples/*/*.md"} {
		pages, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range mdLink.FindAllSubmatch(inCode.ReplaceAll(fenced.ReplaceAll(text, nil), nil), -1) {
				link := string(m[1])
				if strings.Contains(link, "://") {
					continue
				}
				n++
				path, anchor, _ := strings.Cut(link, "#")
				to := page
				if path != "" {
					to = filepath.Join(filepath.Dir(page), path)
				}
				if _, err := os.Stat(to); err != nil {
					t.Errorf("%s: %s leads nowhere", strings.TrimPrefix(page, root), link)
					continue
				}
				if anchor != "" && strings.HasSuffix(to, ".md") && !headings(t, to)[anchor] {
					t.Errorf("%s: %s: there is no such heading", strings.TrimPrefix(page, root), link)
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d links were found", n)
	}
}

// headings are the anchors of a page: lower case, without punctuation, a dash for each blank.
func headings(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
		name := dropped.ReplaceAllString(strings.ToLower(string(m[1])), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}
