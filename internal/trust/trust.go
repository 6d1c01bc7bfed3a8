// Package trust says which files and folders are the user's own, so that no other user can read
// them or has put there what is in them.
package trust

import (
	"errors"
	"io/fs"
	"os"
)

// Self is the user whose folders are trusted, in addition to root's; -1 where there are no numbers. Tests change it.
var Self = os.Geteuid()

// ErrNotFolder is a path that leads to something else than a folder.
var ErrNotFolder = errors.New("not a folder")

// MakeFolder makes a folder where it is missing, with mode 0700, and checks it and all
// above it, before and after. It returns the real path.
func MakeFolder(dir string) (string, error) {
	real, err := Folder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			real, err = Folder(dir)
		}
	}
	return real, err
}
