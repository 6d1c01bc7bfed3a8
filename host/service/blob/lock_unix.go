//go:build !windows

package blob

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockOnly takes an exclusive lock on a file, until it is closed.
func lockOnly(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

const canSyncDirs = true
