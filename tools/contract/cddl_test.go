package contract

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// What the generator writes as CDDL is read by a parser of others, the npm package cddl, if there is one: CDDL_CLI
// names its program, or it is in the PATH.
func TestCDDLIsReadByOthers(t *testing.T) {
	program := os.Getenv("CDDL_CLI")
	if program == "" {
		var err error
		if program, err = exec.LookPath("cddl"); err != nil {
			t.Skip("no parser of CDDL: npm install -g cddl, or let CDDL_CLI name it")
		}
	}
	files := []string{"host/typed/testdata/mapped/types.cddl", "host/typed/testdata/mapped/versions.cddl", "host/typed/testdata/bank/messages.cddl"}
	numbered := regexp.MustCompile(`(?m)^  (\? )?-?[0-9]+: .*\n`)
	for _, name := range files {
		text, err := os.ReadFile(root + name)
		if err != nil {
			t.Fatal(err)
		}
		// That parser does not know integers as keys, which RFC 8610 has (memberkey = value ":").
		copied := filepath.Join(t.TempDir(), "copy.cddl")
		if err := os.WriteFile(copied, numbered.ReplaceAll(text, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "validate", copied).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.cddl")
	if err := os.WriteFile(bad, []byte("a = {\"b\": \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "validate", bad).CombinedOutput(); err == nil {
		t.Errorf("the parser reads anything:\n%s", out)
	}
}
