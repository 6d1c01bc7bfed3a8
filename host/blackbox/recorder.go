package blackbox

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// Defaults of [Config].
const (
	DefaultBytes      = 64 << 20
	DefaultActorBytes = 256 << 10
	DefaultKeep       = 20
	// Every is how long no second file is written for the same type of actor and kind of failure.
	Every = time.Minute
)

// Config says what a recorder keeps.
type Config struct {
	// Dir is the folder for crash files. It is made, with mode 0700, if it is missing.
	Dir string
	// Bytes is the most that is kept of all actors, ActorBytes that of one: of its snapshot, and of what it was sent since.
	// 0 means DefaultBytes and DefaultActorBytes.
	Bytes, ActorBytes int64
	// Keep is how many files the folder has at most; the oldest are removed. 0 means DefaultKeep.
	Keep int
	// Version is that of the host, for people.
	Version string
	// Module, if set, is asked for the module with a hash, which is put into the file. It is called on a goroutine of the
	// recorder's.
	Module func(sum [32]byte) ([]byte, error)
	// Failed, if set, is told of files that could not be written. It is called on a goroutine of the recorder's, or of a
	// worker's.
	Failed func(path string, err error)
}

// Recorder keeps the black boxes of a system's guests, and writes crash files. Its methods are safe for concurrent use.
type Recorder struct {
	cfg  Config
	room atomic.Int64 // bytes left

	mu    sync.Mutex
	last  map[cause]int64 // when a file was written, ns since 1970
	count uint64
	queue chan job
	ended bool
	done  chan struct{}
}

type cause struct {
	typ  string
	kind abi.FailureKind
}

type job struct {
	path string
	file *File
	wait chan struct{} // instead: it is closed when all before it is written
}

// Of files.
const (
	prefix = "crash-"
	// Suffix is what the names of crash files end with.
	Suffix     = ".wacrash"
	mostQueued = 4
	mostCauses = 1024
)

// Open makes a recorder, and its folder.
func Open(cfg Config) (*Recorder, error) {
	cfg.Bytes, cfg.ActorBytes, cfg.Keep = cmp.Or(cfg.Bytes, DefaultBytes), cmp.Or(cfg.ActorBytes, DefaultActorBytes), cmp.Or(cfg.Keep, DefaultKeep)
	switch {
	case cfg.Dir == "":
		return nil, errors.New("blackbox: no folder is given for crash files")
	case cfg.Bytes < 0 || cfg.ActorBytes < 0 || cfg.Keep < 0:
		return nil, errors.New("blackbox: a bound is negative")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("blackbox: %w", err)
	}
	r := &Recorder{cfg: cfg, last: map[cause]int64{}, queue: make(chan job, mostQueued), done: make(chan struct{})}
	r.room.Store(cfg.Bytes)
	go r.writeAll()
	return r, nil
}

// Close writes what is left, and ends the recorder. It is called when the system is closed; what fails afterwards is not
// written.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.ended {
		r.ended = true
		close(r.queue)
	}
	r.mu.Unlock()
	<-r.done
}

// Flush waits until the files of all failures so far are written.
func (r *Recorder) Flush() {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		<-r.done
		return
	}
	wait := make(chan struct{})
	r.queue <- job{wait: wait} // the writer does not need the lock
	r.mu.Unlock()
	<-wait
}

// Held is how many bytes are kept of all actors.
func (r *Recorder) Held() int64 { return r.cfg.Bytes - r.room.Load() }

func (r *Recorder) take(n int64) bool {
	if r.room.Add(-n) >= 0 {
		return true
	}
	r.room.Add(n)
	return false
}

func (r *Recorder) give(n int64) { r.room.Add(n) }

// name is the path of the file of a failure; empty if there is to be none.
func (r *Recorder) name(typ string, f *Failure) string {
	c := cause{typ, f.Failure.Kind}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.last[c]; r.ended || len(r.queue) == mostQueued || ok && f.Time-at < int64(Every) && f.Time >= at {
		return ""
	}
	if len(r.last) >= mostCauses {
		for k, at := range r.last {
			if f.Time-at >= int64(Every) {
				delete(r.last, k)
			}
		}
		if len(r.last) >= mostCauses {
			return ""
		}
	}
	r.last[c] = f.Time
	r.count++
	h := fnv.New32a()
	fmt.Fprint(h, r.count, os.Getpid(), f.Time, typ)
	at := time.Unix(0, f.Time).UTC().Format("20060102-150405.000000")
	return filepath.Join(r.cfg.Dir, prefix+at+"-"+plain(typ)+"-"+hex.EncodeToString(h.Sum(nil))+Suffix)
}

// plain is a type's name for a file's name.
func plain(typ string) string {
	name := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' {
			return c
		}
		return '_'
	}, typ)
	return name[:min(len(name), 40)]
}

func (r *Recorder) write(path string, f *File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	select {
	case r.queue <- job{path: path, file: f}:
	default: // others came since it got its name
		r.failed(path, errors.New("too many crash files are being written"))
	}
}

func (r *Recorder) failed(path string, err error) {
	if r.cfg.Failed != nil {
		r.cfg.Failed(path, err)
	}
}

func (r *Recorder) writeAll() {
	defer close(r.done)
	for j := range r.queue {
		if j.wait != nil {
			close(j.wait)
			continue
		}
		if r.cfg.Module != nil && j.file.Inexact == "" {
			wasm, err := r.cfg.Module(j.file.Image.Module)
			if err != nil {
				r.failed(j.path, fmt.Errorf("the module is not in it: %w", err))
			}
			j.file.Module = wasm
		}
		err := r.makeRoom()
		if err == nil {
			err = regular.Replace(j.path, j.file.Append(nil), 0o600)
		}
		if err != nil {
			r.failed(j.path, err)
		}
	}
}

// makeRoom removes the oldest files, so that there is room for one.
func (r *Recorder) makeRoom() error {
	entries, err := os.ReadDir(r.cfg.Dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), Suffix) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names) // by their times
	for len(names) >= r.cfg.Keep {
		err = errors.Join(err, os.Remove(filepath.Join(r.cfg.Dir, names[0])))
		names = names[1:]
	}
	return err
}
