//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package cache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockShared waits for the moment that another process takes to evict.
func lockShared(f *os.File) error { return flock(f, syscall.LOCK_SH) }

// lockAlone takes the exclusive lock of an entry if it is not in use; release releases it.
func lockAlone(uses string) (release func(), ok bool) {
	f, err := openPlain(uses, os.O_RDWR, 0)
	if errors.Is(err, errNotPlain) {
		return func() {}, true // not an entry of the cache
	}
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, true // not used yet, or its maker was killed
	}
	if err != nil {
		return nil, false
	}
	if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil, false
	}
	return func() { _ = f.Close() }, true
}

// flock locks until the file is closed or the process ends, however it ends.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS):
			return nil // such as on some network file systems: eviction then goes by age alone
		default:
			return err
		}
	}
}
