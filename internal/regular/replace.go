package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file, which is there as a whole or not at all. What has the name before is replaced: a link, too, and what it leads to stays
// as it is.
func Replace(path string, b []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
