// Package state is the folder that a bundle's services keep their state in: one process at a
// time uses it.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
	"github.com/wasmactors/wasmactors/host/service"
)

// ErrInUse says that another process uses the folder.
var ErrInUse = errors.New("another run uses it")

// lockName is the file in the folder that is locked.
const lockName = "lock"

// Folder is the state of one bundle. Nothing of it is made before a service asks for it. The
// zero value, and nil, keep nothing. It is safe for concurrent use.
type Folder struct {
	path string

	mu   sync.Mutex
	lock *flock.Flock // nil: nobody has asked yet
}

// At is the state in a folder; "" keeps nothing.
func At(path string) *Folder { return &Folder{path: path} }

// Path is the folder, "" for none.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// Of is the folder of one service, for service.Env: made, 0700, and locked for this process.
// The error is service.ErrNoState if nothing is kept, and wraps ErrInUse if another process
// uses the folder.
func (f *Folder) Of(name string) (string, error) {
	if f.Path() == "" {
		return "", service.ErrNoState
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := filepath.Join(f.path, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the folder for state: %w", err)
	}
	if f.lock != nil {
		return dir, nil
	}
	lock := flock.New(filepath.Join(f.path, lockName), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	switch {
	case err != nil:
		return "", fmt.Errorf("the folder for state cannot be locked: %w", err)
	case !ok:
		return "", fmt.Errorf("the folder for state, %s: %w; end it, or give one of them another folder", f.path, ErrInUse)
	}
	f.lock = lock
	return dir, nil
}

// Close lets others use the folder.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	err := f.lock.Unlock()
	f.lock = nil
	return err
}
