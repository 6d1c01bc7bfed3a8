package blob

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockOnly takes an exclusive lock on a file, until it is closed.
func lockOnly(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
}

// canSyncDirs is false: NTFS keeps its own journal of names.
const canSyncDirs = false
