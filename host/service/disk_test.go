package service_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/wasmactors/wasmactors/host/service"
)

func TestDiskTrouble(t *testing.T) {
	for err, want := range map[error]string{
		&os.PathError{Op: "open", Path: "/a", Err: syscall.EROFS}:  "the file system is read-only",
		&os.PathError{Op: "open", Path: "/a", Err: syscall.EACCES}: "permission is denied",
		fmt.Errorf("x: %w", syscall.EPERM):                         "permission is denied",
		fmt.Errorf("x: %w", syscall.ENOSPC):                        "the disk is full",
		syscall.EDQUOT:                                             "the disk quota is used up",
		syscall.EMFILE:                                             "the process has too many open files",
		syscall.ENFILE:                                             "the machine has too many open files",
		syscall.EIO:                                                "the device fails",
		os.ErrNotExist:                                             "",
		errors.New("bad checksum"):                                 "",
	} {
		if got := service.DiskTrouble(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
