package contract

import (
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlocks are the pieces of Go in a page.
func goBlocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(root + page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(text), "\n```go\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if !ok {
			t.Fatalf("%s: a block of code has no end", page)
		}
		blocks = append(blocks, block+"\n")
	}
	return blocks
}

// workshop is a directory with a guest's module.
type workshop struct {
	t   *testing.T
	dir string
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const sdk = "github.com/wasmactors/wasmactors/"
	w := workshop{t, t.TempDir()}
	w.write("go.mod", "module guest\n\ngo 1.23\n\nrequire (\n"+sdk+"abi v0.1.0\n"+sdk+"guest-sdk v0.1.0\n)\n\nreplace (\n"+
		sdk+"abi => "+here+"/abi\n"+sdk+"guest-sdk => "+here+"/guest-sdk\n)\n")
	return w
}

func (w workshop) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w workshop) run(target string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if _, err := os.Stat(filepath.Join(w.dir, "go.work")); err == nil {
		cmd.Env = append(cmd.Env, "GOWORK=") // the repository itself
	}
	if target == "wasm" {
		cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("%s go %v: %v\n%s", target, args, err, out)
	}
}

var fileName = regexp.MustCompile(`^// (\w+\.go)\n`)

// The guest of docs/guests.md is generated, built for wasm, vetted and tested as
// the page says.
func TestGuidesGuestWorks(t *testing.T) {
	w := newWorkshop(t)
	for _, block := range goBlocks(t, "docs/guests.md") {
		name := fileName.FindStringSubmatch(block)
		if name == nil {
			t.Fatalf("a block does not begin with its file's name:\n%s", block)
		}
		if tidy, err := format.Source([]byte(block)); err != nil || string(tidy) != block {
			t.Errorf("%s is not as gofmt has it: %v\n%s", name[1], err, tidy)
		}
		w.write(name[1], block)
	}
	w.run("", "generate", ".")
	w.run("wasm", "build", "-buildmode=c-shared", "-o", "guest.wasm", ".")
	w.run("wasm", "vet", ".")
	w.run("", "vet", ".")
	w.run("", "test", ".")
	if _, err := os.Stat(filepath.Join(w.dir, "messages_cbor.go")); err != nil {
		t.Error(err)
	}
}

// The README has a guest, and the statements of a program that embeds the host.
func TestReadmeCompiles(t *testing.T) {
	blocks := goBlocks(t, "README.md")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	w := newWorkshop(t)
	w.write("main.go", blocks[0])
	w.run("wasm", "vet", ".")

	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	program := "package main\n\nimport (\n\"context\"\n\"fmt\"\n\"log\"\n\"os\"\n\n" +
		"\"github.com/wasmactors/wasmactors/host\"\n\"github.com/wasmactors/wasmactors/runtime\"\n)\n\nfunc main() {\n" + blocks[1] + "}\n"
	if _, err := parser.ParseFile(token.NewFileSet(), "main.go", program, 0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	workshop{t, dir}.run("", "vet", file)
}

// Other pages have no Go, or a test of their own is due.
func TestNoOtherPageHasGo(t *testing.T) {
	tested := map[string]bool{"README.md": true, "docs/guests.md": true, "docs/extending.md": true, "docs/tutorial.md": true}
	for _, guide := range []string{"asking", "circuit-breaker", "elsewhere", "event-sourcing", "events", "extensions", "flow", "fsm", "interceptors", "keyed", "mailboxes", "messages", "reliable", "routers", "scenarios", "simulate", "testing", "throttler", "timers"} {
		tested["docs/guide/"+guide+".md"] = true
	}
	pages := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "samples/*/*.md"} {
		files, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			pages++
			page := strings.TrimPrefix(filepath.ToSlash(file), root)
			if strings.HasPrefix(page, "docs/services/") {
				continue // TestServicePagesAreTestedFiles
			}
			if !tested[page] && len(goBlocks(t, page)) > 0 {
				t.Errorf("%s has Go that no test compiles", page)
			}
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages were looked at", pages)
	}
}
