//go:build unix

package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/wasmactors/wasmactors/internal/trust"
)

// fallback is the folder where there is no session.
func fallback() string {
	return filepath.Join(os.TempDir(), "wasmactors-"+strconv.Itoa(os.Geteuid()))
}

func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// secluded refuses a folder that is another's, or that others can enter.
func secluded(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return nil
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to %s, not to you", dir, trust.Owner(st.Uid))
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %#o, so that others can enter it: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// alive reports whether there is a process of that number.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
