package wasi

import (
	"errors"
	"io"
)

// Flags of descriptors.
const (
	flagAppend   = 1
	flagDsync    = 2
	flagNonblock = 4
	flagRsync    = 8
	flagSync     = 16
)

// fdClose closes what the guest has opened. The standard streams stay open
// whatever the guest does, and so do the granted directories (ENOTSUP).
func fdClose(h Host, _ memory, s []uint64) errno {
	fd := uint32(s[0])
	if fd <= 2 {
		return errnoSuccess
	}
	return h.Files().close(fd)
}

// fdWrite writes to the log or to a file.
func fdWrite(h Host, m memory, s []uint64) errno {
	fd := uint32(s[0])
	if fd == 0 {
		return errnoBadf
	}
	if fd <= 2 {
		return writeLog(h, m, fd, s)
	}
	e, no := h.Files().regular(fd)
	if no != errnoSuccess {
		return no
	}
	if !e.writable {
		return errnoBadf
	}
	v, no := prepare(h, m, s[1], s[2], s[3])
	if no != errnoSuccess {
		return no
	}
	at, err := e.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return errnoOf(err)
	}
	if at = max(at, sizeIfAppending(e)); at > MaxFileSize-int64(v.total) {
		return errnoFbig
	}
	return e.grow(h, at+int64(v.total), func() errno { return transfer(m, v, s[3], e.file.Write) })
}

// writeLog hands the guest's own memory to the host, which copies what it keeps.
func writeLog(h Host, m memory, fd uint32, s []uint64) errno {
	v, no := m.vectors(s[1], s[2])
	if no != errnoSuccess {
		return no
	}
	h.Charge(uint64(v.total) / bytesPerUnitLog)
	if no := m.put32(s[3], uint32(v.total)); no != errnoSuccess {
		return no
	}
	for p := v.next(); p != nil; p = v.next() {
		if fd == 1 {
			h.Stdout(p)
		} else {
			h.Stderr(p)
		}
	}
	return errnoSuccess
}

// fdRead reads from a file. Standard input is at its end.
func fdRead(h Host, m memory, s []uint64) errno {
	fd := uint32(s[0])
	if fd == 0 {
		if _, no := m.vectors(s[1], s[2]); no != errnoSuccess {
			return no
		}
		return m.put32(s[3], 0)
	}
	e, no := h.Files().regular(fd)
	if no != errnoSuccess {
		return no
	}
	if !e.readable {
		return errnoBadf
	}
	v, no := prepare(h, m, s[1], s[2], s[3])
	if no != errnoSuccess {
		return no
	}
	return transfer(m, v, s[3], e.file.Read)
}

// fdPread reads from a place in a file without moving its position.
func fdPread(h Host, m memory, s []uint64) errno {
	e, no := h.Files().regular(uint32(s[0]))
	if no != errnoSuccess {
		return no
	}
	if !e.readable {
		return errnoBadf
	}
	place := int64(s[3])
	if place < 0 || place > 1<<62 {
		return errnoInval
	}
	v, no := prepare(h, m, s[1], s[2], s[4])
	if no != errnoSuccess {
		return no
	}
	return transfer(m, v, s[4], func(p []byte) (int, error) {
		n, err := e.file.ReadAt(p, place)
		place += int64(n)
		return n, err
	})
}

// fdPwrite writes to a place in a file without moving its position.
func fdPwrite(h Host, m memory, s []uint64) errno {
	e, no := h.Files().regular(uint32(s[0]))
	if no != errnoSuccess {
		return no
	}
	if !e.writable {
		return errnoBadf
	}
	place := int64(s[3])
	if place < 0 || e.appends {
		return errnoInval
	}
	v, no := prepare(h, m, s[1], s[2], s[4])
	if no != errnoSuccess {
		return no
	}
	if place > MaxFileSize-int64(v.total) {
		return errnoFbig
	}
	return e.grow(h, place+int64(v.total), func() errno {
		return transfer(m, v, s[4], func(p []byte) (int, error) {
			n, err := e.file.WriteAt(p, place)
			place += int64(n)
			return n, err
		})
	})
}

// prepare checks the buffers and the place for the result, before anything
// happens to the file, and has the transfer paid for.
func prepare(h Host, m memory, list, n, result uint64) (vectors, errno) {
	if _, ok := m.bytes(result, 4); !ok {
		return vectors{}, errnoFault
	}
	v, no := m.vectors(list, n)
	if no == errnoSuccess {
		h.Charge(costFile + uint64(v.total)/bytesPerUnitFile)
	}
	return v, no
}

// transfer moves buffer after buffer until one is not done completely, and writes
// how many bytes it was. An error counts only if nothing was moved before.
func transfer(m memory, v vectors, result uint64, move func([]byte) (int, error)) errno {
	total := 0
	for p := v.next(); p != nil; p = v.next() {
		n, err := move(p)
		total += n
		if err != nil && !errors.Is(err, io.EOF) && total == 0 {
			return errnoOf(err)
		}
		if err != nil || n < len(p) {
			break
		}
	}
	return m.put32(result, uint32(total))
}

// sizeIfAppending is where a write begins if it goes to the end.
func sizeIfAppending(e *entry) int64 {
	if !e.appends {
		return 0
	}
	info, err := e.file.Stat()
	if err != nil {
		return MaxFileSize
	}
	return info.Size()
}

// fdSeek moves a file's position.
func fdSeek(h Host, m memory, s []uint64) errno {
	return seek(h, m, uint32(s[0]), int64(s[1]), uint32(s[2]), s[3])
}

// fdTell tells a file's position.
func fdTell(h Host, m memory, s []uint64) errno {
	return seek(h, m, uint32(s[0]), 0, io.SeekCurrent, s[1])
}

func seek(h Host, m memory, fd uint32, offset int64, whence uint32, result uint64) errno {
	if fd <= 2 {
		return errnoSpipe
	}
	e, no := h.Files().regular(fd)
	if no != errnoSuccess {
		return no
	}
	if whence > io.SeekEnd {
		return errnoInval
	}
	if _, ok := m.bytes(result, 8); !ok {
		return errnoFault
	}
	h.Charge(costFile)
	at, err := e.file.Seek(offset, int(whence))
	if err != nil {
		return errnoOf(err)
	}
	return m.put64(result, uint64(at))
}

// fdSync waits until what was written is on the disk.
func fdSync(h Host, _ memory, s []uint64) errno {
	e, no := h.Files().regular(uint32(s[0]))
	if no == errnoIsdir {
		return errnoSuccess
	}
	if no != errnoSuccess {
		return no
	}
	h.Charge(costSync)
	return errnoOf(e.file.Sync())
}

// fdAdvise takes note of nothing.
func fdAdvise(h Host, _ memory, s []uint64) errno {
	if uint32(s[3]) > 5 {
		return errnoInval
	}
	_, no := h.Files().regular(uint32(s[0]))
	return no
}

// fdFilestatSetSize cuts a file off or lengthens it with zeros.
func fdFilestatSetSize(h Host, _ memory, s []uint64) errno {
	e, no := h.Files().regular(uint32(s[0]))
	if no != errnoSuccess {
		return no
	}
	if !e.writable {
		return errnoBadf
	}
	if s[1] > MaxFileSize {
		return errnoFbig
	}
	h.Charge(costFile)
	return e.grow(h, int64(s[1]), func() errno { return errnoOf(e.file.Truncate(int64(s[1]))) })
}
