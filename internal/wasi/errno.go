package wasi

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errno is an error number of WASI preview 1.
type errno uint32

const (
	errnoSuccess     errno = 0
	errnoAcces       errno = 2
	errnoBadf        errno = 8
	errnoBusy        errno = 10
	errnoDquot       errno = 19
	errnoExist       errno = 20
	errnoFault       errno = 21
	errnoFbig        errno = 22
	errnoIlseq       errno = 25
	errnoInval       errno = 28
	errnoIO          errno = 29
	errnoIsdir       errno = 31
	errnoLoop        errno = 32
	errnoMfile       errno = 33
	errnoNametoolong errno = 37
	errnoNfile       errno = 41
	errnoNoent       errno = 44
	errnoNospc       errno = 51
	errnoNosys       errno = 52
	errnoNotdir      errno = 54
	errnoNotempty    errno = 55
	errnoNotsup      errno = 58
	errnoOverflow    errno = 61
	errnoPerm        errno = 63
	errnoSpipe       errno = 70
	errnoXdev        errno = 75
	errnoNotcapable  errno = 76
)

// errnoOf translates what the os package returns. A refusal of os.Root itself,
// that a path leads out of the directory, has no number of the system.
func errnoOf(err error) errno {
	if err == nil {
		return errnoSuccess
	}
	var number syscall.Errno
	if !errors.As(err, &number) {
		switch {
		case errors.Is(err, os.ErrClosed):
			return errnoBadf
		case errors.Is(err, fs.ErrInvalid):
			return errnoInval
		}
		var path *fs.PathError
		var link *os.LinkError
		if errors.As(err, &path) || errors.As(err, &link) {
			return errnoNotcapable
		}
		return errnoIO
	}
	switch number {
	case syscall.ENOTDIR:
		return errnoNotdir
	case syscall.ENOTEMPTY:
		return errnoNotempty
	case syscall.EISDIR:
		return errnoIsdir
	case syscall.ELOOP:
		return errnoLoop
	case syscall.ENAMETOOLONG:
		return errnoNametoolong
	case syscall.EMFILE:
		return errnoMfile
	case syscall.ENFILE:
		return errnoNfile
	case syscall.ENOSPC:
		return errnoNospc
	case syscall.EINVAL:
		return errnoInval
	case syscall.EPERM:
		return errnoPerm
	case syscall.EXDEV:
		return errnoXdev
	case syscall.EFBIG:
		return errnoFbig
	case syscall.EBADF:
		return errnoBadf
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errnoNoent
	case errors.Is(err, fs.ErrExist):
		return errnoExist
	case errors.Is(err, fs.ErrPermission):
		return errnoAcces
	}
	return errnoIO
}
