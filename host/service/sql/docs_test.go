package sql

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
)

// TestDocs: the manifest of docs/services/sql.md is one, and its pieces of code stand in files that tests
// run.
func TestDocs(t *testing.T) {
	read := func(file string) string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(b), "\r\n", "\n")
	}
	const manifest = "testdata/bundle.yaml"
	page := read("../../../docs/services/sql.md")
	sources := map[string]string{"yaml": read(manifest), "go": read("../testdata/guest/sql.go") + read("example_test.go")}
	for lang, source := range sources {
		parts := strings.Split(page, "\n```"+lang+"\n")[1:]
		if len(parts) == 0 {
			t.Errorf("there is no %s", lang)
		}
		for _, part := range parts {
			block, _, ok := strings.Cut(part, "```\n")
			if !ok || !strings.Contains(source, block) {
				t.Errorf("this is not in a file that tests run:\n%s", block)
			}
		}
	}
	m, err := bundle.ParseWith(manifest, []byte(sources["yaml"]), nil, Service)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Services) != 1 || m.Services[0].Kind.Name() != "sql" {
		t.Errorf("%+v", m.Services)
	}
	// Every key is in the page.
	for _, f := range append(Service.GrantShape().Fields, Service.SettingsShape().Fields...) {
		if !strings.Contains(page, "`"+f.Name+"`") && !strings.Contains(page, "services.sql."+f.Name) {
			t.Errorf("the page does not tell about %s", f.Name)
		}
	}
}
