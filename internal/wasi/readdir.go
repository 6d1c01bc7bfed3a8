package wasi

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

const (
	direntSize = 24
	// costDirEntry pays for reading and sorting one entry of a directory.
	costDirEntry = 2 << 10
)

// fdReaddir lists a directory, sorted by name, beginning at the entry that the
// cookie numbers. The listing is made when the first one is asked for, so it does
// not change between the calls. "." and ".." are not listed.
func fdReaddir(h Host, m memory, s []uint64) errno {
	d, no := h.Files().dir(uint32(s[0]))
	if no != errnoSuccess {
		return no
	}
	p, ok := m.bytes(s[1], s[2])
	if !ok {
		return errnoFault
	}
	if _, ok := m.bytes(s[4], 4); !ok {
		return errnoFault
	}
	if s[3] == 0 || d.list == nil {
		if no := list(h, d); no != errnoSuccess {
			return no
		}
	}
	if s[3] > uint64(len(d.list)) {
		return errnoInval
	}
	used := 0
	for i := int(s[3]); i < len(d.list) && used < len(p); i++ {
		name := d.list[i].Name()
		var head [direntSize]byte
		binary.LittleEndian.PutUint64(head[:], uint64(i)+1)
		binary.LittleEndian.PutUint32(head[16:], uint32(len(name)))
		head[20] = typeOf(d.list[i].Type())
		// What does not fit is cut off: a full buffer tells the guest to come
		// again with the last complete entry's cookie.
		used += copy(p[used:], head[:])
		used += copy(p[used:], name)
	}
	h.Charge(uint64(used))
	return m.put32(s[4], uint32(used))
}

// list reads the directory, a piece at a time so that each is paid for.
func list(h Host, d *entry) errno {
	h.Charge(costFile)
	d.list = nil
	dir, err := d.root.Open(".")
	if err != nil {
		return errnoOf(err)
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	entries := []fs.DirEntry{}
	for {
		part, err := dir.ReadDir(256)
		entries = append(entries, part...)
		if len(entries) > MaxDirEntries {
			return errnoOverflow
		}
		h.Charge(uint64(len(part)) * costDirEntry)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errnoOf(err)
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	d.list = entries
	return errnoSuccess
}
