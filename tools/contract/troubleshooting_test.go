package contract

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	symptom     = regexp.MustCompile("(?m)^\\| (`[^|]*?) \\|")
	quoted      = regexp.MustCompile("`([^`]+)`")
	placeholder = regexp.MustCompile(`\b[A-Z]{3,}\b|\.\.\.|\bm:`)
)

// What docs/troubleshooting.md quotes as a message or a kind stands in the code of the product.
func TestSymptomsAreWhatTheProgramSays(t *testing.T) {
	page, err := os.ReadFile(root + "docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	said := productTexts(t)
	n := 0
	for _, row := range symptom.FindAllSubmatch(page, -1) {
		for _, q := range quoted.FindAllSubmatch(row[1], -1) {
			if strings.HasPrefix(string(q[1]), "run ") {
				continue // a command
			}
			n++
			for _, part := range placeholder.Split(string(q[1]), -1) {
				if part = strings.Trim(part, " :;"); len(part) > 2 && !strings.Contains(said, part) {
					t.Errorf("no code says %q", part)
				}
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d texts were found", n)
	}
}

// productTexts is all Go code of the product, without tests.
func productTexts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"abi", "cmd", "host", "internal", "runtime", "supervision"} {
		err := filepath.WalkDir(root+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
