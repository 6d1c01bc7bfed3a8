package kv

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host/service"
)

// A folder that cannot be written is not damaged, neither when the store is opened nor later.
func TestReadOnlyIsNoDamage(t *testing.T) {
	for cause, want := range map[syscall.Errno]string{
		syscall.EROFS: "the file system is read-only", syscall.EACCES: "permission is denied", syscall.EMFILE: "the process has too many open files", syscall.EIO: "the device fails",
	} {
		t.Run(want, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kv")
			fs := newBadFS(vfs.Default)
			s := openOn(t, dir, fs)
			if err := try(s, "first", "v"); err != nil {
				t.Fatal(err)
			}
			fail := func(op string) error {
				if op == "open" || op == "read" {
					return nil
				}
				return &os.PathError{Op: op, Path: filepath.Join(dir, "db"), Err: cause}
			}
			fs.fail.Store(&fail)
			err := try(s, "second", "v")
			if service.CodeOf(err) != service.Unavailable {
				t.Fatal(err)
			}
			if err = try(s, "third", "v"); !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), dir) {
				t.Errorf("while it runs: %v", err)
			}
			_ = s.close()
			e, err := openOnDisk(dir, fs, slog.New(slog.NewTextHandler(io.Discard, nil)))
			if err == nil {
				_ = e.close()
				t.Fatal("it was opened")
			}
			if errors.Is(err, ErrDamaged) || !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
				t.Errorf("at the start: %v", err)
			}
		})
	}
}
