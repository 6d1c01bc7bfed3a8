package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// ErrCrashFolder reports that another run keeps its crash reports in the folder.
var ErrCrashFolder = errors.New("observe: another run keeps its crash reports in this folder")

// CrashFolder keeps crash reports on disk: one [CrashReport] a line in the file crashes.ndjson,
// at most about twice the bytes that an observer keeps. A report is written within a second. A
// torn line is ignored when the file is read.
type CrashFolder struct {
	path   string
	lock   *flock.Flock
	failed func(error)
	file   *os.File
	size   int
	saving sync.Mutex    // held while reports are written
	kept   []*crashEntry // that were read, until an observer takes them
}

// Bounds of the file.
const (
	crashFile       = "crashes.ndjson"
	crashFileMost   = 64 << 20 // of a file that is read
	crashSaveEvery  = time.Second
	crashSaveAtOnce = 64 << 10 // bytes of reports that are saved at once: a loop of failures does not fill the disk's queue
)

// OpenCrashFolder opens, or makes, a folder with mode 0700 for the crash reports of one run at a
// time, and reads those of earlier runs. failed is told, once, when reports cannot be saved.
func OpenCrashFolder(dir string, failed func(error)) (*CrashFolder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &CrashFolder{path: filepath.Join(dir, crashFile), failed: failed}
	f.lock = flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	switch ok, err := f.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("observe: the folder for crash reports cannot be locked: %w", err)
	case !ok:
		return nil, fmt.Errorf("%w: %s; end it, or choose another folder", ErrCrashFolder, dir)
	}
	text, err := regular.Read(context.Background(), f.path, crashFileMost)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		f.kept = readCrashes(text)
		f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err == nil && len(text) > 0 && text[len(text)-1] != '\n' { // the rest of a torn line
		_, err = f.file.WriteString("\n")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	f.size = len(text)
	return f, nil
}

// readCrashes reads the lines that are whole.
func readCrashes(text []byte) (list []*crashEntry) {
	for line := range bytes.Lines(text) {
		var r CrashReport
		if json.Unmarshal(line, &r) != nil || r.Crash.ID == "" || len(r.Report) == 0 {
			continue
		}
		list = append(list, &crashEntry{Crash: r.Crash, raw: r.Report, bytes: 400 + len(r.Report), saved: true})
	}
	return list
}

// Close lets other runs use the folder. It is for the end of the observer, or of an error before.
func (f *CrashFolder) Close() error {
	if f == nil {
		return nil
	}
	var err error
	if f.file != nil {
		err = errors.Join(f.file.Sync(), f.file.Close())
		f.file = nil
	}
	return errors.Join(err, f.lock.Unlock())
}

// save writes reports that are not in the file yet; all: also more than are saved at once.
func (c *crashes) save(all bool) {
	if f := c.folder; f != nil {
		f.saving.Lock()
		defer f.saving.Unlock()
		c.write(f, all)
	}
}

// write is save. f.saving is held.
func (c *crashes) write(f *CrashFolder, all bool) {
	if f.file == nil {
		return
	}
	c.mu.Lock()
	if !c.unsaved {
		c.mu.Unlock()
		return
	}
	list := c.toSave(all)
	c.mu.Unlock()
	if f.size > 2*c.most {
		f.rewrite(c)
	}
	var b bytes.Buffer
	for _, e := range list {
		e.line(&b)
	}
	n, err := f.file.Write(b.Bytes())
	f.size += n
	f.tell(err)
}

// toSave are reports for the file, in the order in which they came. If there are too many, each
// cause saves its newest ones. c.mu is held.
func (c *crashes) toSave(all bool) (list []*crashEntry) {
	c.unsaved = false
	var rest [][]*crashEntry // of each cause
	for _, t := range c.types {
		for _, cause := range t.causes {
			rest = append(rest, cause.entries)
		}
	}
	for bytes := 0; len(rest) > 0; {
		more := rest[:0]
		for _, entries := range rest {
			last := len(entries) - 1
			if e := entries[last]; !e.saved {
				if bytes >= crashSaveAtOnce && !all {
					c.unsaved = true
					break
				}
				e.saved = true
				bytes += e.bytes
				list = append(list, e)
			}
			if last > 0 {
				more = append(more, entries[:last])
			}
		}
		if rest = more; c.unsaved {
			break
		}
	}
	slices.SortFunc(list, byNumber)
	return list
}

// line appends the line of the report in the file.
func (e *crashEntry) line(b *bytes.Buffer) {
	raw, err := e.json()
	if err != nil {
		return
	}
	text, err := json.Marshal(CrashReport{Version: Version, Crash: e.Crash, Report: raw})
	if err != nil {
		return
	}
	b.Write(text)
	b.WriteByte('\n')
}

// rewrite replaces the file by one with the saved reports that are still kept, as far as the bound goes.
func (f *CrashFolder) rewrite(c *crashes) {
	c.mu.Lock()
	all := c.all()
	c.mu.Unlock()
	var b bytes.Buffer
	first := len(all)
	for size := 0; first > 0; first-- {
		if size += all[first-1].bytes; size > c.most {
			break
		}
	}
	for _, e := range all[first:] {
		if e.saved && b.Len() < 2*c.most {
			e.line(&b)
		}
	}
	temp := f.path + ".new"
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		f.tell(err)
		return
	}
	_, err = file.Write(b.Bytes())
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		_ = f.file.Close() // Windows does not replace a file that is open
		err = os.Rename(temp, f.path)
		var again error
		f.file, again = os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		err = errors.Join(err, again)
	}
	if err == nil {
		f.size = b.Len()
	}
	f.tell(err)
}

// tell reports the first error.
func (f *CrashFolder) tell(err error) {
	if err != nil && f.failed != nil {
		f.failed(fmt.Errorf("crash reports are not saved: %w", err))
		f.failed = nil
	}
}
