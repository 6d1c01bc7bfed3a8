//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that another user owns, or that others can read or write. With shared,
// others may read it.
func private(path string, shared bool) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to user %d, neither to the current user nor to root", path, st.Uid)
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return nil, fmt.Errorf("%s has mode %#o, so that others can change it: chmod 600", path, mode)
	case mode&0o055 != 0 && !shared:
		return nil, fmt.Errorf("%s has mode %#o, so that others can read it: chmod 600, or write shared: true to allow that", path, mode)
	}
	return info, nil
}
