package contract

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command of docs/abi.md builds the guest in C, and the host checks what it has built.
func TestTheCommandForC(t *testing.T) {
	for _, name := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sh\nclang ")
	command, _, ok := strings.Cut(rest, "\n```\n")
	if !ok || strings.ContainsAny(command, "\n;|&$") {
		t.Fatalf("docs/abi.md has no command of one line that begins with clang: %q", command)
	}
	dir := t.TempDir()
	code, err := os.ReadFile("../../abi/testdata/guests/counter.c")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "counter.c"), code, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "clang", strings.Fields(command)...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("clang %s: %v\n%s", command, err, text)
	}
	root, err := filepath.Abs(testdata)
	file := ""
	if err == nil {
		file, err = filepath.Rel(root, filepath.Join(dir, "counter.wasm"))
	}
	if err != nil {
		t.Fatal(err)
	}
	counts(t, load(t, file))
}
