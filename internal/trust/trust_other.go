//go:build !unix

package trust

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// The owner of a folder cannot be found here in the same way, so everything is trusted: in the
// profile of a user others have no access.

// OpenFlags are nothing here.
const OpenFlags = 0

// PrivateFile accepts every file.
func PrivateFile(*os.File) error { return nil }

// Single says yes.
func Single(fs.FileInfo) bool { return true }

// Owner is a user's number.
func Owner(uid uint32) string { return "user " + strconv.FormatUint(uint64(uid), 10) }

// Folder is the folder's absolute path.
func Folder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotFolder}
	}
	return path, err
}
