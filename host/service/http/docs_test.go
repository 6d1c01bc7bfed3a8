package httpclient_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/host/service"
	httpclient "github.com/wasmactors/wasmactors/host/service/http"
)

var blocks = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// The page's manifest is one, its code stands in files that are tested, and its tables have every key
// and every test that they name.
func TestPage(t *testing.T) {
	b, err := os.ReadFile("../../../docs/services/http.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	var code strings.Builder
	for _, name := range []string{"example_test.go", "../../../guest-sdk/httpx/example_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(unindented(b))
	}
	for _, m := range blocks.FindAllStringSubmatch(page, -1) {
		switch m[1] {
		case "go":
			if !strings.Contains(code.String(), string(unindented([]byte(m[2])))) {
				t.Errorf("this stands in no file that is tested:\n%s", m[2])
			}
		case "yaml":
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "guest"), 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := bundle.ParseWith(filepath.Join(dir, "wasmactors.yaml"), []byte(m[2]), nil, httpclient.Service); err != nil {
				t.Errorf("%v", err)
			}
			wrong := strings.Replace(m[2], "10.1.0.0/16", "10.1.0.1/16", 1)
			if _, err := bundle.ParseWith(filepath.Join(dir, "wasmactors.yaml"), []byte(wrong), nil, httpclient.Service); err == nil || !strings.Contains(err.Error(), "10.1.0.0/16") {
				t.Errorf("a network with bits behind its length: %v", err)
			}
		}
	}
	for _, s := range []*service.Shape{service.ShapeOf(reflect.TypeFor[httpclient.Grant]()), service.ShapeOf(reflect.TypeFor[httpclient.Settings]()), service.ShapeOf(reflect.TypeFor[service.Bounds]())} {
		for _, f := range s.Fields {
			if !strings.Contains(page, "`"+f.Name+"`") {
				t.Errorf("the key %s is missing", f.Name)
			}
		}
	}
	tests := ""
	for _, pattern := range []string{"*_test.go", "egress/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests += string(b)
		}
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(tests, "func "+name[1]+"(") {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

func unindented(b []byte) []byte {
	return regexp.MustCompile(`(?m)^[\t ]+`).ReplaceAll(b, nil)
}
