// Package durable keeps actors beyond the end of the process: what they take in is written to a log before anything of it
// takes effect, and repeated when the next process starts. See docs/guide/durable.md for what is promised.
package durable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/dormant"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/wal"
	"github.com/wasmactors/wasmactors/runtime"
)

// Sync says what a turn of a durable actor waits for before it takes effect.
type Sync = wal.Sync

const (
	// Always: its record would survive a power failure.
	Always = wal.Always
	// Interval: its record would survive the end of the process. A power failure takes what was recorded within
	// Options.Interval.
	Interval = wal.Interval
	// Never: as Interval, but the operating system decides how much a power failure takes.
	Never = wal.Never
)

// Bounds of [Options.Size].
const (
	MinSize     = 64 << 20
	DefaultSize = 10 << 30
	// MinRecovery is the least that Options.Recovery can be.
	MinRecovery = 10 * time.Millisecond
)

// Options of a store.
type Options struct {
	// Dir is its folder, which is made if it is missing, for its owner alone.
	Dir string
	// Sync and Interval; the default is Always.
	Sync     Sync
	Interval time.Duration // 10 ms if it is 0
	// Size bounds the files, in bytes; DefaultSize if it is 0, at least MinSize. What is sent to durable actors is refused
	// when three quarters of it are used.
	Size int64
	// Recovery is how long it may take to repeat what came after a checkpoint; about twice as often there is one.
	// DefaultRecovery if it is 0, at least MinRecovery.
	Recovery time.Duration
	// Lazy has durable actors below /user that have nothing under way stay in the checkpoint until a message, a signal or an order comes
	// for them: a start does not wait for them, and they take about 100 bytes until then. What cannot be read then fails the store.
	Lazy bool
	// Keep is how long what is not needed any more is kept, so that a copy can be made of the store as it was: see Store.ExportAll. It has
	// a quarter of Size. 0: not at all; else between MinKeep and MaxKeep. A store that is not in a folder keeps nothing.
	Keep time.Duration
	// Key encrypts the log, with AES-256-GCM; nil or 32 bytes.
	Key []byte
	// Clock is that of Interval; nil: the machine's.
	Clock host.Clock
	// FS is where the log is, for tests; nil: the folder log of Dir.
	FS wal.FS
	// Index is where the index of events is, for tests; nil: the folder events of Dir.
	Index vfs.FS
	// Code loads code that the store has kept ([Store.Keep]), for actors that do not run that of their module. nil: a start is refused
	// that needs some.
	Code func(fingerprint []byte, m *Module) (*runtime.Image, error)
	// Sim makes the store one of a simulation; nil: it is none.
	Sim *Sim

	until wal.Position // the log ends there; 0: where it does
	space *space       // nil: the usual one
}

// Errors of a store; those of its log are from package wal.
var (
	// ErrFull: Options.Size has to be raised.
	ErrFull error = fullError{}
	// ErrClosing: the process ends, and the turn will be taken in the next one.
	ErrClosing = errors.New("the store is closing")
	// ErrFailed: a write or a sync has failed, so nothing durable goes on in this process.
	ErrFailed = errors.New("the store has failed")
	// ErrLocked: another process uses the store.
	ErrLocked = wal.ErrLocked
)

type fullError struct{}

func (fullError) Error() string { return "the store is full: raise store.size" }

// ManifestKey is for dead letters.
func (fullError) ManifestKey() string { return "store.size" }

// Store is the log of a system's durable actors. It is safe for concurrent use.
type Store struct {
	opt    Options
	size   int64  // Options.Size
	roomy  int64  // three quarters of it: beyond that messages are refused
	past   *past  // nil: nothing is kept
	fs     wal.FS // of the log
	logged wal.Options
	log    *wal.Log
	secret host.Secret
	failed func(error)

	frozen  atomic.Bool
	failing atomic.Bool // err is set
	idle    atomic.Bool // one of these is: nothing is written any more
	refused atomic.Uint64
	noted   atomic.Uint64 // records
	bytes   atomic.Uint64
	held    atomic.Int64 // bytes that wait for the disk
	since   since        // what would have to be repeated
	due     atomic.Int64 // with so many bytes a checkpoint is due

	shared  shared  // with the log's lock: what the records of a batch have in common
	spans   spans   // with the log's lock
	touched touched // with the log's lock

	ending func() // in a simulation: what is still to be done because the store has failed

	mu      sync.Mutex
	waiting []waiting // what leaves the process, by position; from next on
	next    int
	leaving bool // one of them leaves
	err     error
	broke   time.Time // when err was set

	system  *host.System // from Starting.Release on
	last    Checkpointed
	wanted  chan struct{} // a checkpoint
	stop    context.Context
	end     context.CancelFunc // of stop
	kept    chan struct{}      // nobody makes checkpoints any more; nil: nobody has
	writing sync.Mutex         // a checkpoint is being made

	// Starting and checkpoints have these.
	book   *dormant.Book      // of the last checkpoint
	chain  chain              // that it is the end of
	shelf  *shelf             // reads the parts
	away   *dormant.Actors    // that have not returned; nil: there are none
	untold map[abi.Ref]uint64 // that were touched before the mark of a checkpoint that was given up
	all    bool               // the next checkpoint has the parts of all actors
	space  space

	probation *record.Probation // that was remembered last; nil: none was

	modules modules

	opening sync.Mutex
	events  atomic.Pointer[persist.Journal] // nil: there are none
}

type waiting struct {
	after wal.Position
	bytes int
	f     func(error)
}

// There reports whether a folder has a store, or a part of one. [Open] makes one where there is none.
func There(dir string) bool {
	for _, name := range []string{logFolder, "secret"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}

// Open opens the store of a folder, or makes it. The caller closes it.
func Open(o Options) (*Store, error) {
	if o.Size == 0 {
		o.Size = DefaultSize
	}
	if o.Size < MinSize {
		return nil, fmt.Errorf("durable: a store of %d bytes: at least %d", o.Size, MinSize)
	}
	if o.Clock == nil {
		o.Clock = host.RealClock()
	}
	if o.Recovery == 0 {
		o.Recovery = DefaultRecovery
	}
	if o.Recovery < MinRecovery {
		return nil, fmt.Errorf("durable: a recovery of %v: at least %v", o.Recovery, MinRecovery)
	}
	if err := ownFiles(o.Dir); err != nil {
		return nil, err
	}
	size := o.Size
	kept, err := o.openPast()
	if err != nil {
		return nil, err
	}
	s := &Store{opt: o, size: size, roomy: o.Size / 4 * 3, past: kept, wanted: make(chan struct{}, 1), space: usualSpace}
	if o.space != nil {
		s.space = *o.space
	}
	s.begin(dormant.NewBook(), chain{})
	s.due.Store(min(leastDue, o.Size/8))
	s.stop, s.end = context.WithCancel(context.Background())
	fs := o.FS
	if fs == nil {
		folder := filepath.Join(o.Dir, logFolder)
		if fs, err = wal.Folder(folder); err != nil {
			return nil, err
		}
		if kept != nil && o.until == 0 {
			fs = &keepingFS{fs, folder, kept}
		}
	}
	w := wal.Options{
		FS: fs, Sync: o.Sync, Interval: o.Interval, Rand: rand.Reader, Segment: 16 << 20, Limit: o.Size, Record: largestRecord, Pending: mostPending,
		After: func(d time.Duration, f func()) func() bool { return o.Clock.AfterFunc(d, f).Stop }, Progress: s.progress, End: o.until,
	}
	o.Sim.configure(&w)
	if o.Key != nil {
		w.Key, w.KeyID = o.Key, keyID(o.Key)
	}
	log, err := wal.Open(w)
	if err != nil {
		return nil, err
	}
	s.fs, s.log, s.logged = fs, log, w
	if err := s.openModules(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if o.Sim != nil {
		s.secret = o.Sim.Secret
	} else if s.secret, err = readSecret(o.Dir, s.empty); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if o.Sim != nil && o.Sim.Opened != nil {
		o.Sim.Opened(s)
	}
	return s, nil
}

// begin has the store go on from a book. There is no system that runs.
func (s *Store) begin(b *dormant.Book, c chain) {
	s.book, s.chain, s.shelf, s.away = b, c, &shelf{store: s, book: b}, nil
}

// A record has one message at most, and headers. What waits for the disk may have several.
const (
	largestRecord = 12 << 20
	mostPending   = 256 << 20
	fullPending   = mostPending / 4
)

// ownFiles refuses a store with anything but files and folders of its own: what is written behind a symbolic link is somewhere else, and
// nobody has agreed to that. The folder itself may be a link, and what it has beside the store is not looked at.
func ownFiles(dir string) error {
	for _, name := range slices.Concat(folders, []string{pastFolder, "secret", "secret.new"}) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue // it is made, or that fails
		}
		if err := filepath.WalkDir(path, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !e.Type().IsRegular() {
				err = fmt.Errorf("%q is no file and no folder: a store has nothing else; move it away, or what it stands for to its place", path)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether the log has no records.
func (s *Store) empty() (bool, error) {
	for _, err := range s.log.Read(0) {
		return false, err
	}
	return true, nil
}

// readSecret is the system's secret, which is made with the store.
func readSecret(dir string, empty func() (bool, error)) (s host.Secret, err error) {
	path := filepath.Join(dir, "secret")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if fresh, err := empty(); err != nil || !fresh {
			return s, errors.Join(err, fmt.Errorf("%s is missing, and the store has records: put it back from where the store was copied, as no actor has its ref without it", path))
		}
		_, _ = rand.Read(s[:])
		return s, writeFile(path, s[:])
	}
	if err != nil {
		return s, err
	}
	if len(b) != len(s) {
		return s, fmt.Errorf("%s has %d bytes instead of %d", path, len(b), len(s))
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		err = fmt.Errorf("%s can be read by others: its mode is %v and has to be 0600", path, info.Mode().Perm())
	}
	copy(s[:], b)
	return s, err
}

// writeFile makes a file that is whole or not there, for its owner alone.
func writeFile(path string, b []byte) (err error) {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && os.PathSeparator == '/' {
		return err
	}
	return nil
}

var _ interface {
	record.Direct
	record.Gate
	record.Outputs
	record.Freezer
	record.Codes
	record.Prober
} = (*Store)(nil)

// Turn implements record.Recorder: the turn goes on at once, and what leaves the process because of it waits.
func (s *Store) Turn(t *record.Turn) {
	if j := s.events.Load(); j != nil {
		if x, ours, err := j.Prepare(t); ours {
			s.turnOfEvents(j, t, &x, err)
			return
		}
	}
	if s.frozen.Load() {
		t.Answer(ErrClosing)
		return
	}
	at, err := s.turned(t)
	if err != nil {
		t.Answer(s.fail(err))
		return
	}
	t.After = uint64(at)
	if s.behind() && s.opt.Sim == nil {
		s.Later(uint64(at), 0, t.Answer)
		return
	}
	t.Answer(nil)
}

// turned writes a turn.
func (s *Store) turned(t *record.Turn) (wal.Position, error) {
	if s.failing.Load() {
		return 0, s.Err()
	}
	var (
		mail [4]uint64
		sums [16]uint32
		room [96]byte
	)
	e := record.EntryOf(t, record.Positions(mail[:0], t), record.Checksums(sums[:0], t))
	o := outcomeOf(room[:0], &e)
	to, first, err := s.log.Begin(entrySize(&e, &o))
	if err != nil {
		return 0, err
	}
	s.begins(first)
	s.touched.add(t.Actor)
	n := len(to)
	to = s.shared.appendEntry(to, t.Actor, t.Time, &e, &o)
	s.count(len(to)-n, time.Duration(t.Worth))
	return s.log.End(to), nil
}

// mostHeld is how many bytes may wait for the disk before turns do.
const mostHeld = 32 << 20

// behind reports whether turns have to wait for the disk: what they lead to is written, too, and there may be much of it, as when
// all that a turn sends is refused.
func (s *Store) behind() bool { return s.held.Load() > mostHeld || s.log.Pending() > fullPending }

// Later implements record.Outputs.
func (s *Store) Later(after uint64, bytes int, f func(error)) {
	s.mu.Lock()
	if s.err == nil && (len(s.waiting) > s.next || s.leaving || wal.Position(after) >= s.log.Durable()) {
		s.put(waiting{wal.Position(after), bytes, f})
		s.mu.Unlock()
		return
	}
	err := s.err
	s.mu.Unlock()
	f(err)
}

// put has something wait; the caller holds the lock. Workers come in any order, each with positions that have grown.
func (s *Store) put(w waiting) {
	i := len(s.waiting)
	for i > s.next && s.waiting[i-1].after > w.after {
		i--
	}
	s.waiting = slices.Insert(s.waiting, i, w)
	s.held.Add(int64(w.bytes))
}

// Note implements record.Recorder.
func (s *Store) Note(r *record.Record) {
	if s.frozen.Load() || s.failing.Load() {
		return
	}
	if err := s.note(r); err != nil {
		_ = s.fail(err)
		return
	}
	s.modules.noted(r)
}

func (s *Store) note(r *record.Record) error {
	size := 0
	if r.Message != nil {
		size = messageSize(r.Message)
	} else {
		size = otherSize(r)
	}
	to, first, err := s.log.Begin(size)
	if err != nil {
		return err
	}
	s.begins(first)
	s.touched.of(r)
	n := len(to)
	if r.Kind == record.Refused {
		to = s.shared.appendRefusal(to, r.Actor, r.Time, r.Message)
	} else if r.Message != nil {
		to = s.shared.appendMessage(to, r.Actor, r.Time, r.Message)
	} else {
		to = s.shared.appendOther(to, r)
	}
	s.count(len(to)-n, 0)
	s.log.End(to)
	return nil
}

// append writes a record that is not compact. All records are written by note, turned or append: they tell what records share
// when a batch begins.
func (s *Store) append(parts ...[]byte) (wal.Position, error) {
	p, err := s.appendAs(noPiece, parts...)
	return p.at, err
}

// noPiece is the number of a record that is no piece of a checkpoint.
const noPiece = -1

// appendAs is append. It also says where the record's batch is.
func (s *Store) appendAs(piece int, parts ...[]byte) (p spot, err error) {
	size := 0
	for _, b := range parts {
		size += len(b)
	}
	to, first, err := s.log.Begin(size)
	if err != nil {
		return p, err
	}
	if piece == noPiece {
		s.begins(first)
	} else {
		s.beginsPiece(piece, first)
	}
	for _, b := range parts {
		to = append(to, b...)
	}
	p.batch = s.log.Batch()
	s.spans.now.To = p.batch + wal.Position(len(to))
	p.at = s.log.End(to)
	return p, nil
}

// Admit implements record.Gate.
func (s *Store) Admit(bytes int) error {
	if s.frozen.Load() {
		return nil
	}
	var err error
	switch {
	case s.failing.Load():
		return s.Err()
	case bytes+4096 > largestRecord:
		err = fmt.Errorf("a message of %d bytes is too large for the store", bytes)
	case s.full():
		err = ErrFull
	case s.log.Pending() > fullPending:
		err = wal.ErrBusy
	default:
		return nil
	}
	s.refused.Add(1)
	return err
}

// AdmitAll implements record.Gate.
func (s *Store) AdmitAll(bytes int64) error {
	switch {
	case s.frozen.Load():
		return nil
	case s.failing.Load():
		return s.Err()
	case s.used()+bytes > s.roomy:
		return ErrFull
	case s.log.Pending()+bytes > mostPending/2: // the rest is for turns
		return wal.ErrBusy
	}
	return nil
}

// full reports whether messages are refused. The last quarter is for turns that have been admitted, and for checkpoints.
func (s *Store) full() bool { return s.used() > s.roomy }

// used is how many bytes the files have.
func (s *Store) used() int64 {
	n := s.log.Used() + s.modules.bytes.Load()
	if j := s.events.Load(); j != nil {
		n += j.Used()
	}
	return n
}

// progress is told by the log how far it is durable.
func (s *Store) progress(durable wal.Position, err error) {
	if err != nil {
		_ = s.fail(err)
		return
	}
	if j := s.events.Load(); j != nil {
		j.Durable(uint64(durable))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next < len(s.waiting) && s.waiting[s.next].after < durable && s.err == nil {
		f := s.waiting[s.next].f
		s.held.Add(-int64(s.waiting[s.next].bytes))
		s.waiting[s.next].f = nil
		s.next++
		s.leaving = true
		s.mu.Unlock()
		f(nil)
		s.mu.Lock()
		s.leaving = false
	}
	if s.next == len(s.waiting) || s.next > 1024 {
		s.waiting, s.next = append(s.waiting[:0], s.waiting[min(s.next, len(s.waiting)):]...), 0
	}
}

// fail closes the store for good: what was not durable by now is not known to be, and nothing of it leaves.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.failing.Store(true)
		s.idle.Store(true)
		s.err, s.broke = fmt.Errorf("%w: %w", ErrFailed, err), s.opt.Clock.Now()
	}
	err, failed := s.err, s.failed
	left := s.waiting[s.next:]
	s.waiting, s.next = nil, 0
	s.held.Store(0)
	s.mu.Unlock()
	for _, w := range left {
		w.f(err)
	}
	switch {
	case !first || failed == nil:
	case s.opt.Sim != nil:
		s.ending = func() { failed(err) }
	default:
		go failed(err)
	}
	return err
}

// Err is why the store has failed, nil if it has not.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Resting implements record.Freezer.
func (s *Store) Resting() {}

// Freeze implements record.Freezer.
func (s *Store) Freeze() {
	s.frozen.Store(true)
	s.idle.Store(true)
	s.end()
}

// Figures are about a store.
type Figures struct {
	Bytes   int64     // of its files
	Limit   int64     // of them
	Past    int64     // part of Bytes: what is kept for Options.Keep
	Back    time.Time // from when on a copy can be made of the store as it was; zero: from no time
	Records uint64    // written by this process
	Written uint64    // their bytes
	Refused uint64    // messages that were refused
	Waiting int64     // bytes of what leaves only once it is durable
	Full    bool      // messages are refused

	Err   error     // why the store has failed; nil: it has not
	Broke time.Time // when

	Since      int64         // bytes of records since the last checkpoint
	Repeating  time.Duration // about how long it would take to repeat them
	Checkpoint Checkpointed
}

// Figures counts.
func (s *Store) Figures() Figures {
	back, past := s.past.back()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Figures{
		Bytes: s.used() + past, Limit: s.size, Past: past, Back: back, Records: s.noted.Load(), Written: s.bytes.Load(), Refused: s.refused.Load(),
		Waiting: s.held.Load(), Full: s.full(), Err: s.err, Broke: s.broke,
		Since: s.since.bytes.Load(), Repeating: time.Duration(s.since.work.Load()), Checkpoint: s.last,
	}
}

// Close waits until all that was recorded is durable. The system has ended before.
func (s *Store) Close() error {
	s.Freeze()
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	if kept != nil {
		<-kept
	}
	err := s.log.Close()
	if j := s.events.Load(); j != nil {
		err = errors.Join(err, j.Close())
	}
	if own := s.Err(); own != nil {
		return own
	}
	return err
}
