package schedule

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host/internal/executor"
)

// A journal is a file of records: a head with the version and a random mark, then records of length,
// checksum (CRC-32C of mark and payload) and payload. Records are appended, many with one fsync; when
// most of them are obsolete, a new file replaces the old one. A partial record at the end, from a crash,
// is cut off. A corrupt record that others follow is an error; the mark tells these from what a guest has
// put into its payload. Files of version 1 have no mark; they are replaced when they are opened.

const (
	journalName = "entries"
	journalHead = "wasmactors schedule 2\n" // then the mark, and the checksum of both
	firstHead   = "wasmactors schedule 1\n"
	markEnd     = len(journalHead) + len(mark{})
	headSize    = markEnd + 4
	recordHead  = 8
	maxRecord   = 1 << 20
	maxJournal  = 1 << 30
)

// mark is part of the checksums of one file. Guests cannot know it.
type mark [8]byte

// ErrCorrupt is wrapped by the error about a corrupt journal.
var ErrCorrupt = errors.New("it has changed since it was written")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal appends to the file. It is safe for concurrent use.
type journal struct {
	path string
	mark mark
	sync func(*os.File) error // fsync; tests count it, or make it fail

	mu       sync.Mutex
	file     *os.File
	size     int64  // of the valid part of the file
	buf      []byte // not written yet
	waiting  *batch
	next     []byte // a whole new file; nil: none
	flushing bool
	idle     *sync.Cond
	broken   error // writing has failed for good
	closed   bool
}

// batch is what one fsync makes durable.
type batch struct {
	done chan struct{}
	err  error
}

func (b *batch) wait() error {
	if b == nil {
		return nil
	}
	<-b.done
	return b.err
}

// openJournal reads the records in a folder and makes the file if there is none; random makes its mark. cut
// is how many bytes of a partial record were cut off.
func openJournal(dir string, random func([]byte), each func(payload []byte) error) (j *journal, cut int64, err error) {
	path := filepath.Join(dir, journalName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			var path *fs.PathError
			if !errors.As(err, &path) {
				err = fmt.Errorf("%s: %w", file.Name(), err)
			}
		}
	}()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	case info.Size() > maxJournal:
		return nil, 0, fmt.Errorf("%d bytes, at most %d", info.Size(), maxJournal)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, 0, err
	}
	j = &journal{path: path, file: file, sync: (*os.File).Sync}
	j.idle = sync.NewCond(&j.mu)
	random(j.mark[:])
	var all []byte
	m, whole, err := readRecords(data, func(payload []byte) error {
		all = appendRecord(all, j.mark, payload)
		return each(payload)
	})
	if err != nil {
		return nil, 0, err
	}
	if whole == 0 { // it is new, or its first write was cut short
		return j, 0, j.write(j.head(), true)
	}
	cut = int64(len(data) - whole)
	if m == nil {
		return j, cut, j.swap(append(j.head(), all...))
	}
	j.mark, j.size = *m, int64(whole)
	if cut > 0 {
		if err := file.Truncate(j.size); err != nil {
			return nil, 0, err
		}
	}
	_, err = file.Seek(j.size, io.SeekStart)
	return j, cut, err
}

// head is what the file begins with.
func (j *journal) head() []byte {
	b := append([]byte(journalHead), j.mark[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readRecords calls each for the records and returns the file's mark, nil for one of version 1, and the length of
// the valid part, 0 if the head is not whole.
func readRecords(data []byte, each func(payload []byte) error) (m *mark, whole int, err error) {
	at := headSize
	switch {
	case len(data) >= headSize && crc32.Checksum(data[:markEnd], castagnoli) == binary.LittleEndian.Uint32(data[markEnd:]) && strings.HasPrefix(string(data[:markEnd]), journalHead):
		m = (*mark)(data[len(journalHead):markEnd])
	case len(data) >= len(firstHead) && string(data[:len(firstHead)]) == firstHead:
		at = len(firstHead)
	case len(data) < headSize && (strings.HasPrefix(journalHead, string(data)) || strings.HasPrefix(string(data), journalHead)):
		return nil, 0, nil
	default:
		return nil, 0, fmt.Errorf("its head is not of this version, which begins with %q: %w", journalHead[:len(journalHead)-1], ErrCorrupt)
	}
	for at < len(data) {
		payload, ok := recordAt(data, m, at)
		if !ok {
			for later := at + 1; later < len(data); later++ {
				if _, ok := recordAt(data, m, later); ok {
					return m, 0, fmt.Errorf("byte %d: %w, and there is more after it", at, ErrCorrupt)
				}
			}
			return m, at, nil
		}
		if err := each(payload); err != nil {
			return m, 0, fmt.Errorf("byte %d: %w: %w", at, ErrCorrupt, err)
		}
		at += recordHead + len(payload)
	}
	return m, at, nil
}

func recordAt(data []byte, m *mark, at int) (payload []byte, ok bool) {
	if len(data)-at < recordHead {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(data[at:]))
	if n == 0 || n > maxRecord || n > len(data)-at-recordHead {
		return nil, false
	}
	payload = data[at+recordHead : at+recordHead+n]
	return payload, checksum(m, payload) == binary.LittleEndian.Uint32(data[at+4:])
}

func checksum(m *mark, payload []byte) uint32 {
	sum := uint32(0)
	if m != nil {
		sum = crc32.Checksum(m[:], castagnoli)
	}
	return crc32.Update(sum, castagnoli, payload)
}

func appendRecord(dst []byte, m mark, payload []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint32(dst, checksum(&m, payload))
	return append(dst, payload...)
}

// append takes a record; it is durable when the batch is done. A nil journal stores nothing.
func (j *journal) append(payload []byte) *batch {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.join()
	if b.err == nil {
		j.buf = appendRecord(j.buf, j.mark, payload)
	}
	return b
}

// replace replaces all records appended so far.
func (j *journal) replace(records []byte) *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.join()
	if b.err == nil {
		j.next, j.buf = append(j.head(), records...), j.buf[:0]
	}
	return b
}

// join returns the batch for new records.
func (j *journal) join() *batch {
	if j.broken != nil || j.closed {
		b := &batch{done: make(chan struct{}), err: j.broken}
		if b.err == nil {
			b.err = fs.ErrClosed
		}
		close(b.done)
		return b
	}
	if j.waiting == nil {
		j.waiting = &batch{done: make(chan struct{})}
	}
	if !j.flushing {
		j.flushing = true
		executor.Go(executor.Machine, j.flush)
	}
	return j.waiting
}

// flush writes until no batch is left.
func (j *journal) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.waiting != nil {
		buf, next, b := j.buf, j.next, j.waiting
		j.buf, j.next, j.waiting = nil, nil, nil
		j.mu.Unlock()
		if next != nil {
			b.err = j.swap(next)
		}
		if b.err == nil && len(buf) > 0 {
			b.err = j.write(buf, true)
		}
		close(b.done)
		j.mu.Lock()
	}
	j.flushing = false
	j.idle.Broadcast()
}

// write appends to the file. A partial write is cut off again; if that fails, too, nothing more
// is written.
func (j *journal) write(b []byte, durable bool) error {
	_, err := j.file.WriteAt(b, j.size)
	if err == nil && durable {
		err = j.sync(j.file)
	}
	if err == nil {
		j.size += int64(len(b))
		return nil
	}
	if cut := j.file.Truncate(j.size); cut != nil {
		j.mu.Lock()
		j.broken = errors.Join(err, cut)
		j.mu.Unlock()
	}
	return err
}

// swap replaces the file with a new one.
func (j *journal) swap(data []byte) error {
	temp := j.path + ".new"
	file, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(data); err == nil {
		err = j.sync(file)
	}
	if err == nil {
		err = os.Rename(temp, j.path)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(temp)
		return err
	}
	_ = j.file.Close()
	j.file, j.size = file, int64(len(data))
	return syncFolder(filepath.Dir(j.path))
}

// syncFolder makes a rename durable. Systems that cannot open folders for it do so themselves.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}

// close writes the rest and closes the file.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for j.flushing {
		j.idle.Wait()
	}
	return j.file.Close()
}
