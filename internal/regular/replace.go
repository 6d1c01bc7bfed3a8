package regular

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// Replace writes a file, which is there as a whole or not at all, with a mode as os.WriteFile has it. What has the name before is replaced: a link,
// too, and what it leads to stays as it is.
func Replace(path string, b []byte, mode fs.FileMode) error {
	name := filepath.Join(filepath.Dir(path), ".new-"+strconv.FormatUint(rand.Uint64(), 36))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
