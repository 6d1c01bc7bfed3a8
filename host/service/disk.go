package service

import (
	"errors"
	"io/fs"
	"syscall"
)

// troubles are the problems of a disk whose files are intact, in words for operators.
var troubles = []struct {
	cause error
	text  string
}{
	{syscall.ENOSPC, "the disk is full"},
	{syscall.EDQUOT, "the disk quota is used up"},
	{syscall.EROFS, "the file system is read-only"},
	{fs.ErrPermission, "permission is denied"},
	{syscall.EMFILE, "the process has too many open files"},
	{syscall.ENFILE, "the machine has too many open files"},
	{syscall.EIO, "the device fails"},
}

// DiskTrouble says what keeps files from being read or written that may be whole: a full disk, a file system that is
// read-only, permissions. It is "" for every other error, such as damage. The text names no files: guests may
// read it.
func DiskTrouble(err error) string {
	for _, x := range troubles {
		if errors.Is(err, x.cause) {
			return x.text
		}
	}
	return ""
}
