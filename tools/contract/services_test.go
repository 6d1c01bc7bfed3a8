package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageBlock  = regexp.MustCompile("(?sm)^```(go|yaml)\n(.*?)^```$")
	linkedFile = regexp.MustCompile(`\]\(\.\./\.\./([\w./-]+\.(?:go|ya?ml))\)`)
)

// Every piece of Go and of a manifest on the pages of services is a part of the file that is linked
// before it, as it stands there: those files are built and run by tests.
func TestServicePagesAreTestedFiles(t *testing.T) {
	pages, err := filepath.Glob(root + "docs/services/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		if strings.HasSuffix(page, "/http.md") || strings.HasSuffix(page, "/gateway.md") {
			continue // httpclient.TestPage and gateway.TestThePage compare the pieces of theirs
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range pageBlock.FindAllSubmatchIndex(text, -1) {
			code := string(text[at[4]:at[5]])
			files := linkedFile.FindAllSubmatch(text[:at[0]], -1)
			if len(files) == 0 {
				t.Errorf("%s: no file is linked before\n%s", page, code)
				continue
			}
			name := string(files[len(files)-1][1])
			file, err := os.ReadFile(root + name)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if !strings.Contains(string(file), code) {
				t.Errorf("%s: this is not in %s:\n%s", page, name, code)
			}
		}
	}
}
