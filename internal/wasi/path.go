package wasi

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxPath is the largest length of a path, in bytes.
const maxPath = 4096

// Flags of path_open and of the look-up of paths.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8

	followSymlink = 1
)

// path reads a path, relative to a directory, with slashes. What it means is up
// to os.Root, which lets nothing escape; what is clearly out of bounds is refused
// here with the proper number.
func (m memory) path(offset, n uint64) (string, errno) {
	if n&0xffffffff > maxPath {
		return "", errnoNametoolong
	}
	p, ok := m.bytes(offset, n)
	switch {
	case !ok:
		return "", errnoFault
	case len(p) == 0:
		return "", errnoNoent
	case !utf8.Valid(p):
		return "", errnoIlseq
	}
	path := string(p)
	if strings.ContainsRune(path, 0) {
		return "", errnoInval
	}
	path = filepath.FromSlash(path)
	if !filepath.IsLocal(path) {
		return "", errnoNotcapable
	}
	return path, errnoSuccess
}

// pathIn is the directory of a descriptor and a path in it. With change set the
// directory must not be granted for reading only.
func pathIn(h Host, m memory, fd, offset, n uint64, change bool) (*entry, string, errno) {
	d, no := h.Files().dir(uint32(fd))
	if no != errnoSuccess {
		return nil, "", no
	}
	path, no := m.path(offset, n)
	if no != errnoSuccess {
		return nil, "", no
	}
	if change && d.readOnly {
		return nil, "", errnoNotcapable
	}
	return d, path, errnoSuccess
}

// pathOpen opens a file or a directory. Only regular files and directories can be
// opened: a named pipe would block the host, and a device is not a file.
func pathOpen(h Host, m memory, s []uint64) errno {
	lookup, how, rights, flags := uint32(s[1]), uint32(s[4]), s[5], uint32(s[7])
	write := rights&rightWrite != 0
	change := write || how&(openCreate|openTruncate) != 0
	d, path, no := pathIn(h, m, s[0], s[2], s[3], change)
	if no != errnoSuccess {
		return no
	}
	if _, ok := m.bytes(s[8], 4); !ok {
		return errnoFault
	}
	if how >= 1<<4 || flags >= 1<<5 || how&openDirectory != 0 && how&openCreate != 0 {
		return errnoInval
	}
	t := h.Files()
	if no := t.reserve(); no != errnoSuccess {
		return no
	}
	opened, no := d.openCounted(h, path, how&openCreate != 0, func() (*entry, errno) {
		return openIn(d, path, lookup&followSymlink != 0, how, rights, flags)
	})
	if no != errnoSuccess {
		t.release()
		return no
	}
	return m.put32(s[8], t.put(opened))
}

func openIn(d *entry, path string, follow bool, how uint32, rights uint64, flags uint32) (*entry, errno) {
	write := rights&rightWrite != 0
	exclusive := how&openCreate != 0 && how&openExclusive != 0
	if !exclusive {
		look := d.root.Stat
		if !follow {
			look = d.root.Lstat
		}
		info, err := look(path)
		switch {
		case err != nil:
			if no := errnoOf(err); no != errnoNoent || how&openCreate == 0 {
				return nil, no
			}
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errnoLoop
		case info.IsDir():
			if write || how&(openCreate|openTruncate) != 0 {
				return nil, errnoIsdir
			}
			root, err := d.root.OpenRoot(path)
			if err != nil {
				return nil, errnoOf(err)
			}
			return &entry{root: root, readOnly: d.readOnly}, errnoSuccess
		case how&openDirectory != 0:
			return nil, errnoNotdir
		case !info.Mode().IsRegular():
			return nil, errnoAcces
		}
	}
	mode := os.O_RDONLY
	read := rights&rightRead != 0 || !write
	if write {
		mode = os.O_WRONLY
		if read {
			mode = os.O_RDWR
		}
	}
	if how&openCreate != 0 {
		mode |= os.O_CREATE
	}
	if exclusive {
		mode |= os.O_EXCL
	}
	if how&openTruncate != 0 {
		mode |= os.O_TRUNC
	}
	if flags&flagAppend != 0 {
		mode |= os.O_APPEND
	}
	if flags&(flagDsync|flagRsync|flagSync) != 0 {
		mode |= os.O_SYNC
	}
	file, err := d.root.OpenFile(path, mode, 0o644)
	if err != nil {
		return nil, errnoOf(err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errnoAcces
	}
	return &entry{file: file, readable: read, writable: write, appends: flags&flagAppend != 0}, errnoSuccess
}

// pathFilestatGet describes a file by its path.
func pathFilestatGet(h Host, m memory, s []uint64) errno {
	d, path, no := pathIn(h, m, s[0], s[2], s[3], false)
	if no != errnoSuccess {
		return no
	}
	if uint32(s[1])&followSymlink != 0 {
		info, err := d.root.Stat(path)
		return putInfo(m, s[4], info, err)
	}
	info, err := d.root.Lstat(path)
	return putInfo(m, s[4], info, err)
}

func pathCreateDirectory(h Host, m memory, s []uint64) errno {
	d, path, no := pathIn(h, m, s[0], s[1], s[2], true)
	if no != errnoSuccess {
		return no
	}
	return d.mkdir(h, path)
}

func pathRemoveDirectory(h Host, m memory, s []uint64) errno {
	return remove(h, m, s, true)
}

func pathUnlinkFile(h Host, m memory, s []uint64) errno {
	return remove(h, m, s, false)
}

func remove(h Host, m memory, s []uint64, directory bool) errno {
	d, path, no := pathIn(h, m, s[0], s[1], s[2], true)
	if no != errnoSuccess {
		return no
	}
	return d.remove(path, directory)
}

// pathRename renames within one directory's descriptor; between two of them it is
// as between two devices.
func pathRename(h Host, m memory, s []uint64) errno {
	from, old, no := pathIn(h, m, s[0], s[1], s[2], true)
	if no != errnoSuccess {
		return no
	}
	to, path, no := pathIn(h, m, s[3], s[4], s[5], true)
	if no != errnoSuccess {
		return no
	}
	if from != to {
		return errnoXdev
	}
	return from.rename(old, path)
}

// pathReadlink tells what a symbolic link says, cut off at the buffer's end.
func pathReadlink(h Host, m memory, s []uint64) errno {
	d, path, no := pathIn(h, m, s[0], s[1], s[2], false)
	if no != errnoSuccess {
		return no
	}
	p, ok := m.bytes(s[3], s[4])
	if !ok {
		return errnoFault
	}
	if _, ok := m.bytes(s[5], 4); !ok {
		return errnoFault
	}
	target, err := d.root.Readlink(path)
	if err != nil {
		return errnoOf(err)
	}
	return m.put32(s[5], uint32(copy(p, filepath.ToSlash(target))))
}
