package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// SyncData implements File.
func (f osFile) SyncData() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func (f folder) SyncFolder() error { return syncFolder(string(f)) }

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if other := d.Close(); err == nil {
		err = other
	}
	return err
}
