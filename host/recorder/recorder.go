package recorder

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Defaults and bounds of [Config].
const (
	DefaultBytes = 1 << 30
	MinBytes     = 1 << 20
	// Old is what the name of the file before the last one ends with.
	Old = ".1"
	// every is how long a record waits for the file at most.
	every = 200 * time.Millisecond
	// mostWaiting is how much may wait for the disk, in bytes.
	mostWaiting = 64 << 20
	mostSpare   = 64 // chunks
	// mostSnapshot bounds a state with which an incarnation begins anew in a further file, in bytes.
	mostSnapshot = mostWaiting / 4
)

// Config says where a recording goes.
type Config struct {
	// Path is that of the file. It must not be there. When it has half of Bytes, it gets the suffix Old, and a further one
	// begins; the file that had the suffix is removed. Each file can be repeated by itself.
	Path string
	// Bytes is the most that both files have together; 0 means DefaultBytes. A record may exceed it by its own size.
	Bytes int64
	// Version is that of the host, for people.
	Version string
	// Ended, if set, is told why a recording ends before Close: the disk is full, or too slow. The system runs on. It is called
	// once at most, by whoever writes (the recorder's goroutine, Flush or Close), and must not call the recorder.
	Ended func(error)

	create func(path string) (file, error)
}

// file is what a recording is written to.
type file interface {
	Write([]byte) (int, error)
	Truncate(int64) error
	Close() error
}

// Recorder writes a recording. Its methods are safe for concurrent use; lanes and tracks are not.
type Recorder struct {
	cfg   Config
	now   atomic.Pointer[generation] // nil: it has ended
	hides atomic.Pointer[func() *redact.Set]
	bell  chan struct{}
	end   chan struct{}
	ended chan struct{}
	once  sync.Once

	waiting atomic.Int64 // bytes of chunks

	mu    sync.Mutex
	lanes uint64
	spare []*chunk
	why   error
	// ending is what Ending was told, for a further file; nil: it was not called.
	ending []block

	writing sync.Mutex  // whoever writes to files
	gen     *generation // is written to; nil: none any more
	old     *generation // the one before, if workers may have written to it since
	err     error       // of Close
}

// generation is a file.
type generation struct {
	firstLane uint64
	lanes     uint32
	streams   []*stream
	lives     uint64
	states    int64 // bytes of those that they begin with
	images    map[*sandbox.Image]uint64
	pending   []block // that are not written yet, of images and of the system's end

	file file
	size int64
	buf  []byte
	seen map[uint32]uint64 // bytes of each lane in the file
}

// block is one that is no lane's.
type block struct {
	kind byte
	body []byte
}

// Open makes the file, with mode 0600.
func Open(cfg Config) (*Recorder, error) {
	cfg.Bytes = cmp.Or(cfg.Bytes, DefaultBytes)
	switch {
	case cfg.Path == "":
		return nil, errors.New("recorder: no file is given")
	case cfg.Bytes < MinBytes:
		return nil, fmt.Errorf("recorder: a recording has at least %d bytes", MinBytes)
	case len(cfg.Version) > mostHost:
		return nil, errors.New("recorder: the host's version is too long")
	}
	if cfg.create == nil {
		cfg.create = func(path string) (file, error) {
			return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if _, err := os.Lstat(cfg.Path + Old); err == nil {
		return nil, fmt.Errorf("recorder: %s is there already", cfg.Path+Old)
	}
	r := &Recorder{cfg: cfg, bell: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{}), lanes: 1}
	g, err := r.begin()
	if err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	g.firstLane, r.gen = r.lanes, g
	r.now.Store(g)
	go r.run()
	return r, nil
}

// begin makes a file, which has no lanes yet.
func (r *Recorder) begin() (*generation, error) {
	f, err := r.cfg.create(r.cfg.Path)
	if err != nil {
		return nil, err
	}
	head := append([]byte(magic), version)
	head = binary.LittleEndian.AppendUint64(head, uint64(time.Now().UnixNano()))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(r.cfg.Version)))
	head = append(head, r.cfg.Version...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := f.Write(head); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &generation{images: map[*sandbox.Image]uint64{}, file: f, size: int64(len(head)), seen: map[uint32]uint64{}}, nil
}

// NewLane is the lane of a worker.
func (r *Recorder) NewLane() *Lane { return &Lane{recorder: r} }

// join has a lane write to a file; nil: to none.
func (l *Lane) join(g *generation) {
	if l.stream != nil {
		l.stream.mu.Lock()
		l.stream.full = append(l.stream.full, l.chunk)
		l.stream.chunk = nil
		l.stream.mu.Unlock()
	}
	l.gen, l.stream, l.chunk, l.seen, l.records, l.time, l.at = nil, nil, nil, nil, 0, 0, 0
	if g == nil {
		return
	}
	r := l.recorder
	c := r.newChunk(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lanes > mostLane || r.now.Load() != g {
		return // the next record tries again
	}
	l.gen, l.number, l.rel, l.chunk = g, r.lanes, uint32(r.lanes-g.firstLane), c
	l.stream = &stream{rel: l.rel, chunk: c}
	g.streams = append(g.streams, l.stream)
	r.lanes++
	g.lanes++
}

// enroll numbers a life and its image. state is how many bytes the state has that it begins with.
func (r *Recorder) enroll(g *generation, image *sandbox.Image, state int) (n, life uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.states+int64(state) > r.cfg.Bytes/4 { // else guests could be busy with nothing but beginning further files
		return 0, 0, errors.New("the states of other guests have half of the further file")
	}
	n, known := g.images[image]
	if !known {
		b, err := blackbox.AppendImage(nil, image)
		if err != nil {
			return 0, 0, err
		}
		n = uint64(len(g.images))
		g.images[image] = n
		g.pending = append(g.pending, block{blockImage, b})
	}
	g.states += int64(state)
	g.lives++
	return n, g.lives - 1, nil
}

// newChunk has room for n bytes.
func (r *Recorder) newChunk(n int) *chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := len(r.spare); k > 0 && n <= chunkBytes {
		c := r.spare[k-1]
		r.spare = r.spare[:k-1]
		return c
	}
	n = max(n, chunkBytes)
	if r.waiting.Add(int64(n)) > mostWaiting && r.why == nil {
		r.why = fmt.Errorf("the disk is slower than the recording: %d MiB wait for it", mostWaiting>>20)
		r.now.Store(nil) // at once: whoever writes may wait for that disk
	}
	return &chunk{data: make([]byte, n)}
}

// giveBack takes a chunk that is written.
func (r *Recorder) giveBack(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(c.data) == chunkBytes && len(r.spare) < mostSpare {
		c.published.Store(0)
		c.written = 0
		r.spare = append(r.spare, c)
		return
	}
	r.waiting.Add(-int64(len(c.data)))
}

// hurry has what waits written soon.
func (r *Recorder) hurry() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

func (r *Recorder) run() {
	defer close(r.ended)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-r.end:
			return
		case <-r.bell:
		case <-t.C:
		}
		r.writeAll()
	}
}

// Flush writes all that was recorded before.
func (r *Recorder) Flush() { r.writeAll() }

// Ending says that the system begins to stop its actors, at a time in ns since 1970: what comes later is about that. The first call
// counts. Files that begin later have the time, too.
func (r *Recorder) Ending(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.now.Load(); g != nil && r.ending == nil {
		r.ending = []block{{blockEnding, binary.LittleEndian.AppendUint64(nil, uint64(now))}}
		g.pending = append(g.pending, r.ending...)
	}
}

// Err says why the recording has ended before Close; nil: it has not.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// writeAll writes what waits, and begins another file if it is time.
func (r *Recorder) writeAll() {
	r.writing.Lock()
	defer r.writing.Unlock()
	g := r.gen
	if g == nil {
		return
	}
	_ = r.finishOld() // it can be repeated without its end
	err := r.write(g)
	if err == nil {
		err = r.Err()
	}
	if err == nil && g.size > r.cfg.Bytes/2 {
		err = r.rotate(g)
	}
	if err != nil {
		r.fail(g, err)
	}
}

// rotate begins another file. Workers write to the one before until they notice.
func (r *Recorder) rotate(g *generation) error {
	if err := os.Rename(r.cfg.Path, r.cfg.Path+Old); err != nil {
		return err
	}
	next, err := r.begin() // without the lock: no worker is to wait for a disk
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next.firstLane, next.pending = r.lanes, append(next.pending, r.ending...)
	r.gen, r.old = next, g
	switch {
	case r.why != nil: // the next write ends it
	case r.lanes > mostLane/2:
		r.why = errors.New("it has lasted for too long")
	default:
		r.now.Store(next)
	}
	return nil
}

// finishOld writes what workers have written to the file before until they heard of the one after it.
func (r *Recorder) finishOld() error {
	old := r.old
	if r.old = nil; old == nil {
		return nil
	}
	return r.last(old)
}

// last writes what is left of a file that no worker writes to any more, and its end.
func (r *Recorder) last(g *generation) error {
	if err := r.write(g); err != nil {
		return errors.Join(err, r.leave(g))
	}
	return r.finish(g)
}

// leave closes a file without an end, which would say that all is there to which its records refer.
func (r *Recorder) leave(g *generation) error {
	return errors.Join(g.file.Truncate(g.size), g.file.Close()) // part of a block may be behind it
}

// fail ends the recording. What is in the file stays.
func (r *Recorder) fail(g *generation, err error) {
	r.now.Store(nil)
	r.gen = nil
	r.mu.Lock()
	r.why = err
	r.spare, g.streams, g.pending = nil, nil, nil
	r.mu.Unlock()
	_ = r.leave(g)
	if r.cfg.Ended != nil {
		r.cfg.Ended(err)
	}
}

// Close writes the end. It is called when the system is closed.
func (r *Recorder) Close() error {
	r.once.Do(func() {
		close(r.end)
		<-r.ended
		r.writeAll()
		r.writing.Lock()
		defer r.writing.Unlock()
		_ = r.finishOld()
		if g := r.gen; g != nil {
			r.gen = nil
			r.now.Store(nil)
			r.err = r.last(g)
		}
	})
	return r.err
}

// finish writes the last block and closes the file.
func (r *Recorder) finish(g *generation) error {
	r.mu.Lock()
	lanes := g.lanes
	r.mu.Unlock()
	var body []byte
	for rel := range lanes {
		body = binary.AppendUvarint(body, g.seen[rel])
	}
	return errors.Join(r.block(g, blockEnd, 0, body), g.file.Close())
}

// write appends what was published. An image is written before what is published after it was numbered.
func (r *Recorder) write(g *generation) error {
	r.mu.Lock()
	streams := g.streams
	r.mu.Unlock()
	type part struct {
		s    *stream
		c    *chunk
		upTo int64
		full bool
	}
	var parts []part
	for _, s := range streams {
		s.mu.Lock()
		for _, c := range s.full {
			parts = append(parts, part{s, c, c.published.Load(), true})
		}
		s.full = nil
		if s.chunk != nil {
			parts = append(parts, part{s, s.chunk, s.chunk.published.Load(), false})
		}
		s.mu.Unlock()
	}
	r.mu.Lock()
	pending := g.pending
	g.pending = nil
	r.mu.Unlock()
	for _, b := range pending {
		if err := r.block(g, b.kind, 0, b.body); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if p.upTo > p.c.written {
			if err := r.block(g, blockLane, p.s.rel, p.c.data[p.c.written:p.upTo]); err != nil {
				return err
			}
			g.seen[p.s.rel] += uint64(p.upTo - p.c.written)
			p.c.written = p.upTo
		}
		if p.full {
			r.giveBack(p.c)
		}
	}
	return nil
}

// block writes a block.
func (r *Recorder) block(g *generation, kind byte, lane uint32, body []byte) error {
	b := append(g.buf[:0], kind)
	b = binary.LittleEndian.AppendUint32(b, lane)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	sum := crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, body)
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = append(b, body...)
	if g.buf = b; cap(b) > 4*chunkBytes {
		g.buf = nil
	}
	n, err := g.file.Write(b)
	if err == nil {
		g.size += int64(n)
	}
	return err
}
