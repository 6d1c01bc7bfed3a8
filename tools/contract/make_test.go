package contract

import (
	"os/exec"
	"strings"
	"testing"
)

// `make test` tests every module, also after one that fails, and fails then.
func TestMakeTestGoesOn(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	run := func(compiler string) (string, error) {
		cmd := exec.Command("make", "test", "GO="+compiler, "GOTEST="+compiler, "MODULES=abi guest-sdk samples/hello")
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("false")
	if err == nil || !strings.Contains(out, "== samples/hello") || !strings.Contains(out, "failed in: abi guest-sdk samples/hello") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("true"); err != nil || strings.Contains(out, "failed in") {
		t.Errorf("%v\n%s", err, out)
	}
}
