package wal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A segment is a file of the log. Its first sector is a header; batches follow without gaps between them, and zeros. It ends
// where the next one starts, which may be before what a crash has left of the batch that was being written.
//
//	bytes 0-7    "wasmalog"
//	bytes 8-9    version
//	bytes 10-11  zero
//	bytes 12-15  id of the key, 0: not encrypted
//	bytes 16-23  start: the position of its first batch
//	bytes 24-31  epoch of the writer
//	bytes 32-47  identity of the log
//	bytes 48-79  salt
//
// Its name is start and epoch, in hexadecimal digits: they order the files.
type segment struct {
	name  string
	start Position
	epoch uint64
	id    [16]byte
	salt  [saltSize]byte
	key   uint32
	size  int64 // of the file; of another one than the last: as it was when the log was opened
}

const (
	magic       = "wasmalog"
	suffix      = ".log"
	spareName   = "spare.new"
	fenceName   = "fence"
	headerShift = Position(1) << 63 // in the position of a header's checksum: it is no batch
)

func (s *segment) fileName() string {
	return fmt.Sprintf("%016x-%08x%s", uint64(s.start), s.epoch, suffix)
}

// parseName reverses fileName.
func parseName(name string) (start Position, epoch uint64, ok bool) {
	rest, found := strings.CutSuffix(name, suffix)
	a, b, two := strings.Cut(rest, "-")
	if !found || !two || len(a) != 16 || len(b) < 8 {
		return 0, 0, false
	}
	x, err := strconv.ParseUint(a, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	if epoch, err = strconv.ParseUint(b, 16, 64); err != nil {
		return 0, 0, false
	}
	s := segment{start: Position(x), epoch: epoch}
	return s.start, epoch, s.fileName() == name
}

// IsSegment reports whether a name is that of a file of a log.
func IsSegment(name string) bool { _, _, ok := parseName(name); return ok }

// StartOf is the position from which on a file of a log has records; 0 if it is none.
func StartOf(name string) Position { start, _, _ := parseName(name); return start }

func (s *segment) encode(to []byte) {
	clear(to)
	data := to[1:]
	copy(data, magic)
	binary.LittleEndian.PutUint16(data[8:], Version)
	binary.LittleEndian.PutUint32(data[12:], s.key)
	binary.LittleEndian.PutUint64(data[16:], uint64(s.start))
	binary.LittleEndian.PutUint64(data[24:], s.epoch)
	copy(data[32:], s.id[:])
	copy(data[48:], s.salt[:])
	closeSector(to, s.start|headerShift, markFirst)
}

// decodeSegment reads the header of a file.
func decodeSegment(name string, from []byte, size int64) (*segment, error) {
	start, epoch, ok := parseName(name)
	bad := func(what string) (*segment, error) { return nil, &Damage{File: name, At: start, What: what} }
	if !ok {
		return bad("a name that no file of a log has")
	}
	if len(from) != sectorSize || stateOf(from, start|headerShift) != written || from[0] != markFirst {
		return bad("its header is not what was written")
	}
	data := from[1:]
	s := &segment{name: name, size: size}
	if !bytes.Equal(data[:8], []byte(magic)) {
		return bad("it is no file of a log")
	}
	if v := int(binary.LittleEndian.Uint16(data[8:])); v < 1 || v > Version {
		return nil, &VersionError{File: name, Has: v}
	}
	s.key = binary.LittleEndian.Uint32(data[12:])
	s.start = Position(binary.LittleEndian.Uint64(data[16:]))
	s.epoch = binary.LittleEndian.Uint64(data[24:])
	copy(s.id[:], data[32:])
	copy(s.salt[:], data[48:])
	if s.start != start || s.epoch != epoch || start%sectorSize != 0 || start >= headerShift {
		return bad("its header is that of another file")
	}
	return s, nil
}

// offset is where in the file a position is.
func (s *segment) offset(p Position) int64 { return sectorSize + int64(p-s.start) }

// room is the position behind the last sector of the file.
func (s *segment) room() Position {
	return s.start + Position(max(s.size-sectorSize, 0)/sectorSize*sectorSize)
}

// sortSegments orders them, and checks that they are of one log.
func sortSegments(list []*segment) error {
	slices.SortFunc(list, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.epoch, b.epoch))
	})
	for i, s := range list[:max(len(list)-1, 0)] {
		next := list[i+1]
		if s.id != next.id {
			return &Damage{File: next.name, At: next.start, What: "it belongs to another log than " + s.name}
		}
		if next.epoch < s.epoch {
			return &Damage{File: next.name, At: next.start, What: "its writer is older than that of " + s.name}
		}
	}
	return nil
}
