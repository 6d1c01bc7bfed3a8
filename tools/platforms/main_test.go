package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one platform lacks is found for that platform, in packages and in their tests, and what
// stands outside is read as far as it is needed.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.org/m\n\ngo 1.23\n",
		"m.go":            "package m\n\nimport \"os\"\n\nfunc F() string { return os.TempDir() + suffix }\n",
		"m_unix.go":       "//go:build unix\n\npackage m\n\nconst suffix = \"x\"\n",
		"m_plan9.go":      "package m\n\nconst suffix = 1\n",
		"m_test.go":       "package m\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) { helper(t) }\n",
		"h_linux_test.go": "//go:build !odd\n\npackage m\n\nimport \"testing\"\n\nfunc helper(t *testing.T) { t.Log(F()) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	for target, want := range map[string]string{
		"linux/amd64": "", "linux/arm64": "",
		"linux/amd64+odd": "m_test.go:5:28: undefined: helper",
		"darwin/arm64":    "m_test.go:5:28: undefined: helper",
		"windows/amd64":   "m.go:5:41: undefined: suffix",
		"plan9/amd64":     "m.go:5:26: invalid operation: os.TempDir() + suffix (mismatched types string and untyped int)",
	} {
		p, err := parse(target)
		if err != nil {
			t.Fatal(err)
		}
		n, errs := p.check(dir, []string{"./..."})
		if n == 0 || (want == "") != (len(errs) == 0) || want != "" && !strings.HasSuffix(errs[0].Error(), want) {
			t.Errorf("%s: %d packages, %v, want %q", target, n, errs, want)
		}
	}
	for _, bad := range []string{"", "linux", "/amd64", "linux/"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
