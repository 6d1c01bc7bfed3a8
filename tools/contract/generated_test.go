package contract

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var directive = regexp.MustCompile(`(?m)^//go:generate go .*\./gen|^//go:generate go run .*guest-sdk/gen`)

// The generated files in the tree are what the generator writes today.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	gen := filepath.Join(t.TempDir(), "gen.exe")
	build := exec.Command("go", "build", "-o", gen, "./gen")
	build.Dir = root + "guest-sdk"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{"host/typed/testdata/mapped/types.go", "host/typed/testdata/mapped/versions.go", "samples/ledger/guest/transfer.go", "samples/flaky/guest/messages.go", "samples/crawler/guest/messages.go", "samples/webhooks/guest/args.go", "samples/webhooks/guest/messages.go", "host/typed/testdata/bank/messages.go", "docs/examples/orders/orders.go", "docs/examples/orders/guest/messages.go"} {
		text, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		line := ""
		for _, l := range strings.Split(string(text), "\n") {
			if directive.MatchString(l) {
				line = l
			}
		}
		_, types, ok := strings.Cut(line, "-type ")
		if !ok {
			t.Fatalf("%s does not say how it is generated: %q", file, line)
		}
		dir, err := filepath.Abs(filepath.Dir(root + file))
		if err != nil {
			t.Fatal(err)
		}
		output := strings.TrimSuffix(filepath.Base(file), ".go") + "_cbor.go"
		words := strings.Fields(types)
		cddl := filepath.Join(t.TempDir(), "now.cddl")
		cmd := exec.Command(gen, "-dir", dir, "-output", "-", "-type", words[0], "-cddl", cddl)
		cmd.Env = append(os.Environ(), "GOFILE="+filepath.Base(file))
		if strings.Contains(file, "testdata/bank") || strings.Contains(file, "examples") && strings.Contains(file, "guest") {
			cmd.Env = append(cmd.Env, "GOWORK=off") // it is no part of the workspace
		}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		now, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		if had, err := os.ReadFile(filepath.Join(dir, output)); err != nil || !bytes.Equal(had, now) {
			t.Errorf("%s is not current: run go generate in %s (%v)", output, filepath.Dir(file), err)
		}
		if len(words) == 3 && words[1] == "-cddl" {
			now, err := os.ReadFile(cddl)
			if had, err2 := os.ReadFile(filepath.Join(dir, words[2])); err != nil || err2 != nil || !bytes.Equal(had, now) {
				t.Errorf("%s is not current: run go generate in %s (%v, %v)", words[2], filepath.Dir(file), err, err2)
			}
		}
	}
}
