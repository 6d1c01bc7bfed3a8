package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// codeDir is the entry's machine code: a folder as wazero wants it, with one file
// somewhere in it, and beside that codeSum, which says what the file must be.
const (
	codeDir = "code"
	codeSum = "sum"
)

// wazero's own checksum covers the instructions, but not the table that says
// where each function begins. A flipped bit there would be a jump into the middle
// of another function, so the whole file is checked before wazero sees it. The
// sum is one that the processor computes: 8 MB are read at every start.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Code is machine code that was checked.
type Code struct {
	Dir  string // for wazero.NewCompilationCacheWithDir
	file string
	info fs.FileInfo
}

// Code finds and checks the machine code. The error is or wraps ErrMissing or
// ErrDamaged, or is the system's.
func (e *Entry) Code() (*Code, error) {
	dir := filepath.Join(e.dir, codeDir)
	sealed, err := os.ReadFile(filepath.Join(dir, codeSum))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, ErrMissing
		}
		return nil, errors.Join(ErrDamaged, e.DropCode())
	}
	if err != nil {
		return nil, err
	}
	if sum, ok := unseal(e.key, codeSum, sealed); ok {
		if file, err := onlyFile(dir); err == nil {
			is, info, err := sumOf(dir, file)
			if err != nil {
				return nil, err
			}
			if bytes.Equal(is, sum) {
				return &Code{dir, file, info}, nil
			}
		}
	}
	return nil, errors.Join(ErrDamaged, e.DropCode())
}

// Used reports whether the folder is as it was: wazero has read the file that
// was checked, and has neither replaced it nor put another one beside it.
func (c *Code) Used() bool {
	file, err := onlyFile(c.Dir)
	if err != nil || file != c.file {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && os.SameFile(info, c.info) && info.Size() == c.info.Size() && info.ModTime().Equal(c.info.ModTime())
}

// StoreCode takes over a folder with one file in it, made in TempDir. Code that
// another process has stored meanwhile is as good and stays.
func (e *Entry) StoreCode(dir string) error {
	file, err := onlyFile(dir)
	if err != nil {
		return err
	}
	sum, info, err := sumOf(dir, file)
	if err != nil || info.Size() > e.c.maxBytes {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, codeSum), seal(e.key, codeSum, sum), 0o600); err != nil {
		return err
	}
	to := filepath.Join(e.dir, codeDir)
	if err := os.Rename(dir, to); err == nil {
		return nil
	}
	if _, err := e.Code(); err == nil {
		return nil
	}
	return os.Rename(dir, to)
}

// DropCode removes the machine code, because it could not be used.
func (e *Entry) DropCode() error { return e.Drop(codeDir) }

// MoveCode puts the only file below one folder in the place of the only file
// below another.
func MoveCode(from, to string) error {
	a, err := onlyFile(from)
	if err != nil {
		return err
	}
	b, err := onlyFile(to)
	if err != nil {
		return err
	}
	return os.Rename(a, b)
}

var errNotOne = errors.New("cache: the folder of machine code does not hold exactly one file")

func onlyFile(dir string) (file string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || path == filepath.Join(dir, codeSum):
			return nil
		case file != "" || !d.Type().IsRegular():
			return errNotOne
		}
		file = path
		return nil
	})
	if err == nil && file == "" {
		err = errNotOne
	}
	return file, err
}

// sumOf is what tells the file from others: where it is, its size and checksum.
func sumOf(dir, file string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		return nil, nil, err
	}
	h := crc32.New(castagnoli)
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	if err != nil {
		return nil, nil, err
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(n))
	b = binary.LittleEndian.AppendUint32(b, h.Sum32())
	return append(b, filepath.ToSlash(rel)...), info, nil
}
