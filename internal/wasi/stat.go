package wasi

import (
	"encoding/binary"
	"io/fs"
)

// File types.
const (
	typeUnknown = 0
	typeChar    = 2
	typeDir     = 3
	typeRegular = 4
	typeSymlink = 7
)

// Rights of descriptors. They are told, since C libraries look at them; what a
// descriptor can really do is decided by how it was opened and granted.
const (
	rightRead         = 1 << 1
	rightWrite        = 1 << 6
	rightPollAndStdio = 1<<3 | 1<<21 | 1<<27
	rightsAll         = 1<<28 - 1
	rightsOfChange    = 1<<0 | rightWrite | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12 |
		1<<16 | 1<<17 | 1<<19 | 1<<20 | 1<<22 | 1<<23 | 1<<24 | 1<<25 | 1<<26
)

func typeOf(mode fs.FileMode) byte {
	switch {
	case mode.IsRegular():
		return typeRegular
	case mode.IsDir():
		return typeDir
	case mode&fs.ModeSymlink != 0:
		return typeSymlink
	}
	return typeUnknown
}

// fdFdstatGet describes a descriptor: its type, flags and rights, 24 bytes.
func fdFdstatGet(h Host, m memory, s []uint64) errno {
	var flags uint16
	var kind byte
	var rights, inherited uint64
	switch fd := uint32(s[0]); fd {
	case 0:
		// Without the right to seek it is taken for a terminal: C libraries then
		// write line by line, which is what a log wants.
		kind, rights = typeChar, rightRead|rightPollAndStdio
	case 1, 2:
		kind, rights = typeChar, rightWrite|rightPollAndStdio
	default:
		e := h.Files().get(fd)
		if e == nil {
			return errnoBadf
		}
		rights = rightsAll
		if e.root != nil {
			kind = typeDir
			if e.readOnly {
				rights &^= rightsOfChange
			}
			inherited = rights
			rights &^= rightRead | rightWrite
		} else {
			kind = typeRegular
			if e.appends {
				flags = flagAppend
			}
			if !e.writable {
				rights &^= rightsOfChange
			}
			if !e.readable {
				rights &^= rightRead
			}
		}
	}
	p, ok := m.bytes(s[1], 24)
	if !ok {
		return errnoFault
	}
	clear(p)
	p[0] = kind
	binary.LittleEndian.PutUint16(p[2:], flags)
	binary.LittleEndian.PutUint64(p[8:], rights)
	binary.LittleEndian.PutUint64(p[16:], inherited)
	return errnoSuccess
}

// fdFdstatSetFlags accepts flags that change nothing here: nothing ever blocks,
// and synchronous writing must be asked for when a file is opened.
func fdFdstatSetFlags(h Host, _ memory, s []uint64) errno {
	flags := uint32(s[1])
	if flags >= 1<<5 {
		return errnoInval
	}
	fd := uint32(s[0])
	if fd <= 2 {
		return errnoSuccess
	}
	e := h.Files().get(fd)
	if e == nil {
		return errnoBadf
	}
	if e.appends != (flags&flagAppend != 0) || flags&(flagDsync|flagRsync|flagSync) != 0 {
		return errnoNotsup
	}
	return errnoSuccess
}

// fdFilestatGet describes an open file, 64 bytes.
func fdFilestatGet(h Host, m memory, s []uint64) errno {
	fd := uint32(s[0])
	if fd <= 2 {
		return putFilestat(m, s[1], typeChar, 0, 0)
	}
	e := h.Files().get(fd)
	if e == nil {
		return errnoBadf
	}
	h.Charge(costFile)
	var info fs.FileInfo
	var err error
	if e.root != nil {
		info, err = e.root.Stat(".")
	} else {
		info, err = e.file.Stat()
	}
	return putInfo(m, s[1], info, err)
}

func putInfo(m memory, to uint64, info fs.FileInfo, err error) errno {
	if err != nil {
		return errnoOf(err)
	}
	return putFilestat(m, to, typeOf(info.Mode()), info.Size(), info.ModTime().UnixNano())
}

// putFilestat writes a description. Device and inode are 0: the host's are none
// of a guest's business. The time of the last change stands for all times.
func putFilestat(m memory, to uint64, kind byte, size, changed int64) errno {
	p, ok := m.bytes(to, 64)
	if !ok {
		return errnoFault
	}
	clear(p)
	p[16] = kind
	binary.LittleEndian.PutUint64(p[24:], 1)
	binary.LittleEndian.PutUint64(p[32:], uint64(max(size, 0)))
	for _, at := range []int{40, 48, 56} {
		binary.LittleEndian.PutUint64(p[at:], uint64(max(changed, 0)))
	}
	return errnoSuccess
}

// fdPrestatGet tells of a granted directory how long its name is. Guests ask for
// 3, 4, ... until the answer is EBADF.
func fdPrestatGet(h Host, m memory, s []uint64) errno {
	e := h.Files().get(uint32(s[0]))
	if e == nil || e.guest == "" {
		return errnoBadf
	}
	p, ok := m.bytes(s[1], 8)
	if !ok {
		return errnoFault
	}
	binary.LittleEndian.PutUint32(p, 0) // the only kind: a directory
	binary.LittleEndian.PutUint32(p[4:], uint32(len(e.guest)))
	return errnoSuccess
}

// fdPrestatDirName tells the name.
func fdPrestatDirName(h Host, m memory, s []uint64) errno {
	e := h.Files().get(uint32(s[0]))
	if e == nil || e.guest == "" {
		return errnoBadf
	}
	if s[2]&0xffffffff < uint64(len(e.guest)) {
		return errnoNametoolong
	}
	if !m.WriteString(uint32(s[1]), e.guest) {
		return errnoFault
	}
	return errnoSuccess
}
