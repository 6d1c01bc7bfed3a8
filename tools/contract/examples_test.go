package contract

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/docs/examples/buncher"
)

var exampleFile = regexp.MustCompile(`\]\((examples/[a-z]+/[a-z]+\.go)\)`)

// Every piece of code of docs/extending.md is a part of the file that is named before it,
// as it stands there, and every example is on the page.
func TestExtendingIsTheExamplesCode(t *testing.T) {
	text, err := os.ReadFile(root + "docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n```go\n")
	if len(parts) < 5 {
		t.Fatalf("only %d pieces of code", len(parts)-1)
	}
	for i, part := range parts[1:] {
		code, _, closed := strings.Cut(part, "\n```\n")
		names := exampleFile.FindAllStringSubmatch(parts[i], -1)
		if !closed || len(names) == 0 {
			t.Fatalf("piece %d has no end, or no file is named before it", i+1)
		}
		name := names[len(names)-1][1]
		file, err := os.ReadFile(root + "docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), code+"\n") {
			t.Errorf("this is not in %s:\n%s", name, code)
		}
	}
	dirs, err := filepath.Glob(root + "docs/examples/*")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("%d examples, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		if link := "(examples/" + filepath.Base(dir) + ")"; !strings.Contains(string(text), link) {
			t.Errorf("docs/extending.md has no %s", link)
		}
	}
}

var guideFile = regexp.MustCompile(`\]\(\.\./((?:examples|\.\./samples|\.\./host)/[a-z]+/(?:guest/)?[a-z_]+\.go)\)`)

// Every piece of code of docs/guide/fsm.md is a part of the file that is named before it, and the diagram is
// that of the definition.
func TestGuideToMachinesIsTheExamplesCode(t *testing.T) {
	text := guideIsCode(t, "docs/guide/fsm.md")
	if want := "```mermaid\n" + buncher.Buncher.Mermaid() + "```\n"; !strings.Contains(text, want) {
		t.Errorf("the page does not show\n%s", want)
	}
}

// The code of docs/guide/testing.md is that of the example's tests.
func TestGuideToTestingIsTheExamplesCode(t *testing.T) {
	guideIsCode(t, "docs/guide/testing.md")
}

// The code of the guides is that of their examples, which is run there, and so are the pieces of
// manifests.
func TestGuidesAreTheExamplesCode(t *testing.T) {
	for page, manifest := range map[string]string{
		"docs/guide/asking.md":    "docs/examples/asking/bundle.yaml",
		"docs/guide/elsewhere.md": "docs/examples/crew/bundle.yaml",
		"docs/guide/events.md":    "docs/examples/watch/bundle.yaml",
		"docs/guide/keyed.md":     "docs/examples/sessions/bundle.yaml",
		"docs/guide/mailboxes.md": "docs/examples/urgent/bundle.yaml",
		"docs/guide/messages.md":  "docs/examples/orders/bundle.yaml",
		"docs/guide/routers.md":   "docs/examples/pool/bundle.yaml",
		"docs/guide/timers.md":    "docs/examples/beats/bundle.yaml",
	} {
		t.Run(page, func(t *testing.T) {
			text := guideIsCode(t, page)
			file, err := os.ReadFile(root + manifest)
			if err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(text, "\n```yaml\n")
			if len(parts) < 2 {
				t.Error("there is no manifest")
			}
			for _, part := range parts[1:] {
				code, _, _ := strings.Cut(part, "\n```\n")
				if !strings.Contains(string(file), code+"\n") {
					t.Errorf("this is not in the example's manifest:\n%s", code)
				}
			}
		})
	}
}

// So is that of those whose features have no manifest.
func TestGuidesWithoutManifestsAreTheExamplesCode(t *testing.T) {
	for _, page := range []string{"circuit-breaker", "throttler", "reliable", "interceptors", "extensions", "flow", "event-sourcing", "simulate"} {
		t.Run(page, func(t *testing.T) { guideIsCode(t, "docs/guide/"+page+".md") })
	}
}

// guideIsCode compares the pieces of code of a page with the files that are named before them, and
// returns the page.
func guideIsCode(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(root + page)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "\n```go\n")
	if len(parts) < 2 {
		t.Fatal("there is no code")
	}
	for i, part := range parts[1:] {
		code, _, closed := strings.Cut(part, "\n```\n")
		names := guideFile.FindAllStringSubmatch(parts[i], -1)
		if !closed || len(names) == 0 {
			t.Fatalf("piece %d has no end, or no file is named before it", i+1)
		}
		name := names[len(names)-1][1]
		file, err := os.ReadFile(root + "docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(file), code+"\n") {
			t.Errorf("this is not in %s:\n%s", name, code)
		}
	}
	return string(text)
}

// The examples are made by what anybody can import.
func TestExamplesUseThePublicAPI(t *testing.T) {
	files, err := filepath.Glob(root + "docs/examples/*/*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if strings.Contains(imp.Path.Value, "/internal/") {
				t.Errorf("%s imports %s", file, imp.Path.Value)
			}
		}
	}
}
