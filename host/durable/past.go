package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/internal/regular"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// What a checkpoint has made unneeded is kept for Options.Keep, in the folder past: files of the log, and modules. With them a copy of the
// store can be made as it was at any time since then (ExportAll, ImportAt). A start does not read them.
//
// The file marks has the checkpoints from which such a copy can begin: for each its position and its time, 8 bytes each, big endian.
const (
	pastFolder = "past"
	logFolder  = "log"
	marksFile  = "marks"
	pastShare  = 4    // a quarter of Options.Size
	pastSteps  = 1000 // checkpoints that are noted in the time of Options.Keep, at most; about
)

// Bounds of [Options.Keep].
const (
	MinKeep = time.Minute
	MaxKeep = 10 * 365 * 24 * time.Hour
)

// past is what is kept. A nil pointer keeps nothing.
type past struct {
	dir   string
	keep  time.Duration
	limit int64 // bytes

	mu    sync.Mutex
	marks []pastMark // in their order
}

// pastMark is a checkpoint: its mark, and when it was complete.
type pastMark struct {
	at   wal.Position
	time int64 // ns since 1970
}

// openPast reads what is there. The rest of the size is the store's.
func (o *Options) openPast() (*past, error) {
	if o.Keep == 0 || o.FS != nil || o.Sim != nil {
		return nil, nil
	}
	if o.Keep < MinKeep || o.Keep > MaxKeep {
		return nil, fmt.Errorf("durable: the past is kept for %v: between %v and %v", o.Keep, MinKeep, MaxKeep)
	}
	p := &past{dir: filepath.Join(o.Dir, pastFolder), keep: o.Keep, limit: o.Size / pastShare}
	o.Size -= p.limit
	b, err := regular.ReadFile(filepath.Join(p.dir, marksFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	whole := len(b)%16 == 0
	for ; len(b) >= 16 && err == nil && whole; b = b[16:] {
		m := pastMark{wal.Position(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
		whole = len(p.marks) == 0 || m.at > p.marks[len(p.marks)-1].at
		p.marks = append(p.marks, m)
	}
	if !whole { // it is damaged: the past begins with the next checkpoint
		p.marks = nil
	}
	return p, err
}

// keepingFS is the folder of a log whose files are kept.
type keepingFS struct {
	wal.FS
	from string
	past *past
}

// Remove implements wal.FS. A file that cannot be kept is removed all the same, since the past must not fill the store. What is
// kept from before it is given up, too: there must be no gap between the past and the log.
func (f *keepingFS) Remove(name string) error {
	if !wal.IsSegment(name) {
		return f.FS.Remove(name)
	}
	if err := f.past.take(filepath.Join(f.from, name), filepath.Join(logFolder, name)); err != nil {
		_ = os.RemoveAll(filepath.Join(f.past.dir, logFolder))
		return f.FS.Remove(name)
	}
	return nil
}

// noPast gives back what is kept of a store that does not keep it any more.
func (s *Store) noPast() error {
	if s.opt.FS != nil || s.opt.Sim != nil {
		return nil
	}
	return os.RemoveAll(filepath.Join(s.opt.Dir, pastFolder))
}

// take moves a file into the folder.
func (p *past) take(file, name string) error {
	to := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(file, to)
}

// takeModule moves a module; now is for how long it is kept.
func (p *past) takeModule(file, name string, now time.Time) error {
	if err := os.Chtimes(file, now, now); err != nil {
		return err
	}
	return p.take(file, filepath.Join(moduleFiles, name))
}

// note says that a checkpoint is complete which needs the log from at on, and gives up what is too old, or too much. The store's own log
// begins at first.
func (p *past) note(at, first wal.Position, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	noted := len(p.marks) == 0
	if !noted { // the clock may have been set back
		since := now.UnixNano() - p.marks[len(p.marks)-1].time
		noted = since < 0 || since >= int64(p.keep)/pastSteps
	}
	if noted && (len(p.marks) == 0 || at > p.marks[len(p.marks)-1].at) {
		p.marks = append(p.marks, pastMark{at, now.UnixNano()})
	}
	until := now.Add(-p.keep).UnixNano()
	for len(p.marks) > 1 && p.marks[1].time <= until { // a time after it may begin from the one before
		p.marks = p.marks[1:]
	}
	return p.trim(first)
}

// trim removes what is before the first mark, and then the oldest files until the rest fits. The store's own log begins at first, if
// nothing is kept. The caller holds the lock.
func (p *past) trim(first wal.Position) error {
	files, err := p.segments()
	if err != nil {
		return err
	}
	sum := int64(0)
	for i := range files {
		sum += files[i].size
	}
	modules, err := p.modules()
	if err != nil {
		return err
	}
	for _, m := range modules {
		sum += m.size
	}
	gone := 0
	for gone < len(files) && (sum > p.limit || gone+1 < len(files) && files[gone+1].start <= p.marks[0].at) {
		sum -= files[gone].size
		gone++
	}
	for _, f := range files[:gone] { // from the first one: a crash leaves files without gaps
		if err := os.Remove(f.path); err != nil {
			return err
		}
	}
	if gone < len(files) {
		first = files[gone].start
	}
	p.marks = slices.DeleteFunc(p.marks, func(m pastMark) bool { return m.at < first })
	for _, m := range modules {
		if len(p.marks) > 0 && m.time.UnixNano() < p.marks[0].time || sum > p.limit {
			sum -= m.size
			if err := os.Remove(m.path); err != nil {
				return err
			}
		}
	}
	b := make([]byte, 0, 16*len(p.marks))
	for _, m := range p.marks {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(m.at)), uint64(m.time))
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	return writeFile(filepath.Join(p.dir, marksFile), b)
}

// pastFile is a file of the folder.
type pastFile struct {
	path, name string
	start      wal.Position // of a file of the log
	size       int64
	time       time.Time
}

func (p *past) segments() ([]pastFile, error) {
	all, err := listPast(filepath.Join(p.dir, logFolder))
	all = slices.DeleteFunc(all, func(f pastFile) bool { return !wal.IsSegment(f.name) })
	for i := range all {
		all[i].start = wal.StartOf(all[i].name)
	}
	return all, err // the names order them
}

func (p *past) modules() ([]pastFile, error) { return listPast(filepath.Join(p.dir, moduleFiles)) }

// listPast are the files of a folder, in the order of their names.
func listPast(dir string) (all []pastFile, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		info, gone := e.Info()
		if gone == nil && info.Mode().IsRegular() && !strings.HasSuffix(e.Name(), ".new") {
			all = append(all, pastFile{path: filepath.Join(dir, e.Name()), name: e.Name(), size: info.Size(), time: info.ModTime()})
		}
	}
	return all, err
}

// back is the time from which on a copy can be made, and the bytes that are kept for that; the time is zero if there is none.
func (p *past) back() (t time.Time, bytes int64) {
	if p == nil {
		return t, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) > 0 {
		t = time.Unix(0, p.marks[0].time)
	}
	files, _ := p.segments()
	modules, _ := p.modules()
	for _, f := range append(files, modules...) {
		bytes += f.size
	}
	return t, bytes
}
