//go:build !unix

package endpoint

import (
	"io/fs"
	"os"
	"path/filepath"
)

// fallback is a folder in the user's profile, which others have no access to.
func fallback() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "wasmactors", "run")
}

func ours(fs.FileInfo) bool { return true }

func secluded(string) error { return nil }

// alive reports whether there is a process of that number.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
