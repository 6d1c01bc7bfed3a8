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
	"sync"
)

// A journal is a file of records: a head with the version, then records of length, checksum
// (CRC-32C) and payload. Records are appended, many with one fsync; when most of them are
// obsolete, a new file replaces the old one. A partial record at the end, from a crash, is cut
// off; a corrupt record is an error.

const (
	journalName = "entries"
	journalHead = "wasmactors schedule 1\n"
	recordHead  = 8
	maxRecord   = 1 << 20
	maxJournal  = 1 << 30
)

// ErrCorrupt is wrapped by the error about a corrupt journal.
var ErrCorrupt = errors.New("it has changed since it was written")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal appends to the file. It is safe for concurrent use.
type journal struct {
	path string
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

// openJournal reads the records in a folder and makes the file if there is none. cut is how many
// bytes of a partial record were cut off.
func openJournal(dir string, each func(payload []byte) error) (j *journal, cut int64, err error) {
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
	whole, err := readRecords(data, each)
	if err != nil {
		return nil, 0, err
	}
	j.size = int64(whole)
	if whole < len(journalHead) { // it is new, or its first write was cut short
		return j, 0, j.write([]byte(journalHead), true)
	}
	cut = int64(len(data) - whole)
	if cut > 0 {
		if err := file.Truncate(j.size); err != nil {
			return nil, 0, err
		}
	}
	_, err = file.Seek(j.size, io.SeekStart)
	return j, cut, err
}

// readRecords calls each for the records and returns the length of the valid part.
func readRecords(data []byte, each func(payload []byte) error) (whole int, err error) {
	if len(data) < len(journalHead) && string(data) == journalHead[:len(data)] {
		return 0, nil
	}
	if len(data) < len(journalHead) || string(data[:len(journalHead)]) != journalHead {
		return 0, fmt.Errorf("it is not of this version, which begins with %q: %w", journalHead[:len(journalHead)-1], ErrCorrupt)
	}
	at := len(journalHead)
	for at < len(data) {
		payload, ok := recordAt(data, at)
		if !ok {
			for later := at + 1; later < len(data); later++ {
				if _, ok := recordAt(data, later); ok {
					return 0, fmt.Errorf("byte %d: %w, and there is more after it", at, ErrCorrupt)
				}
			}
			return at, nil
		}
		if err := each(payload); err != nil {
			return 0, fmt.Errorf("byte %d: %w: %w", at, ErrCorrupt, err)
		}
		at += recordHead + len(payload)
	}
	return at, nil
}

func recordAt(data []byte, at int) (payload []byte, ok bool) {
	if len(data)-at < recordHead {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint32(data[at:]))
	if n == 0 || n > maxRecord || n > len(data)-at-recordHead {
		return nil, false
	}
	payload = data[at+recordHead : at+recordHead+n]
	return payload, crc32.Checksum(payload, castagnoli) == binary.LittleEndian.Uint32(data[at+4:])
}

func appendRecord(dst, payload []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(payload, castagnoli))
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
		j.buf = appendRecord(j.buf, payload)
	}
	return b
}

// replace replaces all records appended so far.
func (j *journal) replace(records []byte) *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.join()
	if b.err == nil {
		j.next, j.buf = append([]byte(journalHead), records...), j.buf[:0]
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
		go j.flush()
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
