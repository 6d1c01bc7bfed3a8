package durable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/host"
	port "github.com/wasmactors/wasmactors/host/internal/rebuild"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// A checkpoint in the log is a mark, which divides what is in it from what comes after it, pieces of its frames and its index, between
// which others write, and an end. Without its end it counts for nothing. See chain.go for what is in it.

// Tags of a checkpoint's records, which are no CBOR.
const (
	tagMark  = 3
	tagPiece = 4 // position of the mark, number, bytes
	tagDone  = 5 // position of the mark, pieces, bytes, their CRC-32C, actors; as tagKept in stores of earlier releases
	tagKept  = 9 // the same, and how many of the pieces and bytes are before the index
)

// mark, piece and done are what decode returns for them.
type (
	mark  struct{}
	piece struct {
		mark wal.Position
		n    uint32
		data []byte
	}
	done struct {
		mark   wal.Position
		pieces uint32
		bytes  uint64
		sum    uint32
		actors uint32

		frames uint32 // pieces before the index; 0: there is none
		states uint64 // bytes of those
	}
)

const (
	pieceBytes = 256 << 10 // of a record: those of others wait behind few of them
	pieceHead  = 2 + 8 + 4
	doneBytes  = 2 + 8 + 4 + 8 + 4 + 4
	keptBytes  = doneBytes + 4 + 8
)

// decodeCheckpoint reads a record of a checkpoint; false if it is none, or not well formed.
func decodeCheckpoint(b []byte) (v any, ok bool) {
	switch {
	case b[1] == tagMark && len(b) == 2:
		return &mark{}, true
	case b[1] == tagPiece && len(b) > pieceHead:
		return &piece{wal.Position(binary.LittleEndian.Uint64(b[2:])), binary.LittleEndian.Uint32(b[10:]), bytes.Clone(b[pieceHead:])}, true
	case b[1] == tagDone && len(b) == doneBytes, b[1] == tagKept && len(b) == keptBytes:
		d := &done{
			mark: wal.Position(binary.LittleEndian.Uint64(b[2:])), pieces: binary.LittleEndian.Uint32(b[10:]), bytes: binary.LittleEndian.Uint64(b[14:]),
			sum: binary.LittleEndian.Uint32(b[22:]), actors: binary.LittleEndian.Uint32(b[26:]),
		}
		if b[1] == tagKept {
			d.frames, d.states = binary.LittleEndian.Uint32(b[30:]), binary.LittleEndian.Uint64(b[34:])
			return d, d.frames > 0 && d.frames < d.pieces && d.states < d.bytes
		}
		return d, true
	}
	return nil, false
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// When a checkpoint is due.
const (
	leastDue    = 8 << 20               // bytes of records since the last one, and as many as that had
	recordTime  = 20 * time.Microsecond // to repeat a record, besides what its turns take
	firstTry    = 20 * time.Millisecond // how long actors may take to come to rest
	lastTry     = 5 * time.Second
	eachTry     = 100 * time.Microsecond // more for each actor, whose state is copied meanwhile
	aDay        = 24 * time.Hour
	afterFailed = 250 * time.Millisecond
)

// DefaultRecovery is Options.Recovery, if that is 0.
const DefaultRecovery = time.Second

// count notes a record, and what has to be repeated after a crash.
func (s *Store) count(bytes int, work time.Duration) {
	s.noted.Add(1)
	s.bytes.Add(uint64(bytes))
	s.sinceThen(int64(bytes), work+recordTime)
}

// repeated notes what a start has repeated: the next one would have to do it again. Each life begins a file, so lives that end at once
// would fill the store, too: what their files have without a record counts when it is much.
func (s *Store) repeated(x *Starting, took time.Duration) {
	if s.opt.Sim != nil {
		return // real time decides about nothing
	}
	due := min(max(leastDue, x.size), s.opt.Size/8)
	s.due.Store(due)
	end := s.log.Durable()
	bytes := max(0, int64(end-x.mark)-x.size)
	if empty := s.log.Used() - int64(end-x.first); x.first != 0 && empty > s.opt.Size/8 {
		bytes = max(bytes, due)
	}
	s.sinceThen(bytes, took)
}

// sinceThen adds to what came after the last checkpoint.
func (s *Store) sinceThen(bytes int64, work time.Duration) {
	b, w := s.since.bytes.Add(bytes), s.since.work.Add(int64(work))
	if b >= s.due.Load() || w >= int64(s.opt.Recovery/2) {
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
}

// since is what came after the last checkpoint.
type since struct {
	bytes atomic.Int64
	work  atomic.Int64 // about what repeating takes, ns
}

// Checkpointed is about the last checkpoint of this process.
type Checkpointed struct {
	Count  uint64        // of this process
	Failed uint64        // that were given up
	Bytes  int64         // of the last one, as it was written
	Actors int           // in it
	Wrote  int           // of these it has the parts: they have changed, or had nothing under way written down
	Moved  int           // and of these it has them so that what is before it can be given back
	Pause  time.Duration // for which durable actors rested
	Err    error         // why the last try failed; nil: it has not
}

// keep makes checkpoints until the store is closed.
func (s *Store) keep(system *host.System) {
	defer close(s.kept)
	patience := firstTry
	for {
		select {
		case <-s.wanted:
		case <-s.stop.Done():
			return
		}
		err := s.checkpoint(system, patience, false)
		if err == nil {
			patience = firstTry
			continue
		}
		s.mu.Lock()
		s.last.Failed, s.last.Err = s.last.Failed+1, err
		s.mu.Unlock()
		patience = min(2*patience, longest(system))
		wait := make(chan struct{})
		t := s.opt.Clock.AfterFunc(afterFailed, func() { close(wait) })
		select {
		case <-wait:
		case <-s.stop.Done():
			t.Stop()
			return
		}
		select {
		case s.wanted <- struct{}{}:
		default:
		}
	}
}

// Checkpoint has the state of the durable actors written that have changed since the last one, so that a start repeats only what comes after
// it, and gives back what no actor needs of what came before. It is made by itself when one is due. It fails if the actors do not come to
// rest in time.
//
// Of a manual system none is made by itself: the goroutine that steps it calls Checkpoint, between two steps, as often as
// Options.Recovery and Options.Size ask for.
func (s *Store) Checkpoint(ctx context.Context) error { return s.checkpointNow(ctx, false) }

// Compact is Checkpoint, and moves the states of those that have not changed, too: all that came before is given back.
func (s *Store) Compact(ctx context.Context) error { return s.checkpointNow(ctx, true) }

func (s *Store) checkpointNow(ctx context.Context, compacts bool) error {
	s.mu.Lock()
	system := s.system
	s.mu.Unlock()
	if system == nil {
		return errors.New("the store has no system that runs")
	}
	patience := longest(system)
	if t, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(t))
	}
	if s.Steps() { // real time decides about nothing
		patience = aDay
	}
	return s.checkpoint(system, patience, compacts)
}

// longest is how long the actors of a system may take to come to rest, and be copied, at most.
func longest(system *host.System) time.Duration {
	return lastTry + time.Duration(system.View().Totals().Actors)*eachTry
}

// checkpoint makes one; patience is how long the actors may take to come to rest. With compacts it needs nothing of what was before.
func (s *Store) checkpoint(system *host.System, patience time.Duration, compacts bool) (err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	ctx, cancel := context.WithTimeoutCause(s.stop, patience, errors.New("durable actors have not come to rest in time"))
	defer cancel()
	c := &making{store: s, packer: newPacker(), all: s.all, passing: s.book.Passing(), compacts: compacts}
	before := s.opt.Clock.Now()
	defer func() {
		if err != nil { // all of that is still to be repeated, and to be written
			s.since.bytes.Add(c.bytes)
			s.since.work.Add(c.work)
			s.untold = c.touched
		}
	}()
	var head func() ([]byte, error)
	c.actors, head, err = port.Checkpoint(ctx, system, c.mark, c.take)
	pause := s.opt.Clock.Now().Sub(before)
	if err == nil {
		err = c.takeHead(head)
	}
	for err == nil && len(c.raw) > 0 {
		err = c.pack()
	}
	if err != nil {
		return err
	}
	if err := c.fill(); err != nil {
		if damage := (*wal.Damage)(nil); errors.As(err, &damage) || errors.Is(err, ErrRecord) {
			return s.fail(err) // of one that has not returned: all further checkpoints would end there
		}
		return err
	}
	to, err := s.write(c)
	if err != nil {
		return err
	}
	if err := s.settle(c.begin.at); err != nil {
		return err
	}
	s.point(to)
	if err := s.turnTo(c, to.last); err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	s.due.Store(min(max(leastDue, c.written), s.opt.Size/8))
	s.last = Checkpointed{
		Count: s.last.Count + 1, Failed: s.last.Failed, Bytes: c.written, Actors: c.actors, Wrote: len(c.packer.change.Parts) - c.moved, Moved: c.moved, Pause: pause,
	}
	s.mu.Unlock()
	if err = errors.Join(s.giveBack(s.chain.low), s.sweepModules()); s.past == nil {
		return err
	}
	return errors.Join(err, s.past.note(s.chain.low, s.log.First(), s.opt.Clock.Now()))
}

// giveBack removes, or keeps in the past, the files of the log that end before what a checkpoint needs.
func (s *Store) giveBack(before wal.Position) (err error) {
	if s.past == nil { // first: what is kept must not have a gap to the log
		err = s.noPast()
	}
	return errors.Join(err, s.log.Trim(before))
}

// write writes the pieces of a checkpoint, and waits until they are durable. It returns where they are.
func (s *Store) write(c *making) (*pointer, error) {
	x := &pointer{mark: c.begin}
	waits := 0
	put := func(b []byte) (spots []spot, err error) {
		for len(b) > 0 && err == nil {
			n := min(len(b), pieceBytes)
			var at spot
			at, err = s.writePiece(x, b[:n])
			if waits += n; err == nil && waits >= pieceBytes {
				err, waits = s.log.Await(s.stop, at.at), 0 // so much at a time: records of others are written in between
			}
			spots, b = append(spots, at), b[n:]
			if c.between != nil {
				c.between()
			}
		}
		return spots, err
	}
	from := 0
	for i := range c.packer.change.Frames {
		f := &c.packer.change.Frames[i]
		spots, err := put(c.packer.to[from:][:f.Bytes])
		if err != nil {
			return nil, err
		}
		for _, at := range spots {
			f.Spots = append(f.Spots, at.inBook())
		}
		from += f.Bytes
	}
	end, err := c.index()
	if err == nil {
		end.index, err = put(c.packed)
	}
	if err != nil {
		return nil, err
	}
	c.ended = end
	return x, s.writeEnd(x, end)
}

// writePiece writes the next piece of a checkpoint.
func (s *Store) writePiece(x *pointer, b []byte) (spot, error) {
	head := binary.LittleEndian.AppendUint64(append(make([]byte, 0, pieceHead), version, tagPiece), uint64(x.mark.at))
	p, err := s.appendAs(int(x.pieces), binary.LittleEndian.AppendUint32(head, x.pieces), b)
	x.pieces++
	return p, err
}

// writeEnd writes the end of a checkpoint, and waits until it is durable.
func (s *Store) writeEnd(x *pointer, end *ended) (err error) {
	x.end, x.ended = end.encode(), end
	if x.last, err = s.appendAs(noPiece, x.end); err != nil {
		return err
	}
	x.spans = s.spans.all // nobody adds to them before the next checkpoint
	if err = s.log.Await(s.stop, x.last.at); err == nil {
		x.file, err = s.log.Identity(x.last.batch)
	}
	return err
}
