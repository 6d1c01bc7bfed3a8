//go:build !linux

package wal

import (
	"os"
	"runtime"
)

// SyncData implements File.
func (f osFile) SyncData() error { return f.Sync() }

func (f folder) SyncFolder() error {
	if runtime.GOOS == "windows" { // its folders cannot be synced; renaming is journaled
		return nil
	}
	d, err := os.Open(string(f))
	if err != nil {
		return err
	}
	err = d.Sync()
	if other := d.Close(); err == nil {
		err = other
	}
	return err
}
