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

// A checkpoint in the log is a mark, which divides what is in it from what comes after it, pieces of its compressed parts,
// between which others write, and an end. Without its end it counts for nothing.

// Tags of a checkpoint's records, which are no CBOR.
const (
	tagMark  = 3
	tagPiece = 4 // position of the mark, number, bytes
	tagDone  = 5 // position of the mark, pieces, bytes, their CRC-32C, actors; in stores of earlier releases
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

func (d *done) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{version, tagKept}, uint64(d.mark))
	b = binary.LittleEndian.AppendUint32(b, d.pieces)
	b = binary.LittleEndian.AppendUint64(b, d.bytes)
	b = binary.LittleEndian.AppendUint32(b, d.sum)
	b = binary.LittleEndian.AppendUint32(b, d.actors)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(b, d.frames), d.states)
}

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
	Bytes  int64         // of the last one
	Actors int           // in it
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
		err := s.checkpoint(system, patience)
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

// Checkpoint has the state of all durable actors written, so that a start repeats only what comes after it, and gives back
// the space of what came before. It is made by itself when one is due. It fails if the actors do not come to rest in time.
//
// Of a manual system none is made by itself: the goroutine that steps it calls Checkpoint, between two steps, as often as
// Options.Recovery and Options.Size ask for.
func (s *Store) Checkpoint(ctx context.Context) error {
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
	return s.checkpoint(system, patience)
}

// longest is how long the actors of a system may take to come to rest, and be copied, at most.
func longest(system *host.System) time.Duration {
	return lastTry + time.Duration(system.View().Totals().Actors)*eachTry
}

// checkpoint makes one; patience is how long the actors may take to come to rest.
func (s *Store) checkpoint(system *host.System, patience time.Duration) (err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	ctx, cancel := context.WithTimeoutCause(s.stop, patience, errors.New("durable actors have not come to rest in time"))
	defer cancel()
	p := newPacker()
	var begin spot
	before := s.opt.Clock.Now()
	var raw [][]byte
	var bytes, work int64 // before it
	waits := 0
	known := map[int]*port.PartOf{} // by the number of the part
	added := 0
	add := func(part []byte) (err error) {
		of := known[added]
		delete(known, added)
		if added++; of == nil {
			of = new(port.PartOf)
			*of, err = port.Part(part)
		}
		if err == nil {
			s.modules.has(of)
			p.add(of, part)
		}
		return err
	}
	defer func() {
		if err != nil { // all of that is still to be repeated
			s.since.bytes.Add(bytes)
			s.since.work.Add(work)
		}
	}()
	err = port.Checkpoint(ctx, system, func() (err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err != nil || s.frozen.Load() {
			return errors.Join(ErrClosing, s.err)
		}
		if begin, err = s.appendAs(noPiece, []byte{version, tagMark}); err == nil {
			s.modules.begin()
			bytes, work = s.since.bytes.Swap(0), s.since.work.Swap(0)
			if p := s.probation; p != nil && !p.Over {
				err = s.noteProbation(p)
			}
		}
		return err
	}, func(part []byte, of *port.PartOf) (err error) {
		if of != nil {
			known[added+len(raw)] = of
		}
		raw, waits = append(raw, part), waits+len(part) // copying is quicker than compressing: actors wait
		for waits > mostRaw && len(raw) > 0 && err == nil {
			err = add(raw[0])
			waits, raw = waits-len(raw[0]), raw[1:]
		}
		return err
	})
	pause := s.opt.Clock.Now().Sub(before)
	for i := 0; err == nil && i < len(raw); i++ {
		err = add(raw[i])
		raw[i] = nil
	}
	if damage := (*wal.Damage)(nil); errors.As(err, &damage) || errors.Is(err, ErrRecord) {
		return s.fail(err) // of one that has not returned: all further checkpoints would end there
	}
	if err != nil {
		return err
	}
	at := begin.at
	to, err := s.write(begin, p)
	if err != nil {
		return err
	}
	if err := s.settle(at); err != nil {
		return err
	}
	s.point(to)
	if err := s.reshelve(&shelf{store: s, mark: at, pieces: to.pieces}, p); err != nil {
		return s.fail(err)
	}
	s.mu.Lock()
	s.due.Store(min(max(leastDue, int64(len(p.to))), s.opt.Size/8))
	s.last = Checkpointed{Count: s.last.Count + 1, Failed: s.last.Failed, Bytes: int64(len(p.to)), Actors: p.n - 1, Pause: pause}
	s.mu.Unlock()
	if err = errors.Join(s.giveBack(at), s.sweepModules()); s.past == nil {
		return err
	}
	return errors.Join(err, s.past.note(at, s.opt.Clock.Now()))
}

// giveBack removes, or keeps in the past, the files of the log that end before a checkpoint.
func (s *Store) giveBack(before wal.Position) (err error) {
	if s.past == nil { // first: what is kept must not have a gap to the log
		err = s.noPast()
	}
	return errors.Join(err, s.log.Trim(before))
}

// mostRaw is how many bytes of a checkpoint are copied before actors wait for the compression.
const mostRaw = 64 << 20

// write writes the pieces of a checkpoint, and waits until they are durable. It returns where they are.
func (s *Store) write(begin spot, p *packer) (*pointer, error) {
	x := &pointer{mark: begin}
	end := done{mark: begin.at, actors: uint32(p.n - 1)}
	end.frames, end.states = p.end()
	end.bytes, end.sum = uint64(len(p.to)), crc32.Checksum(p.to, castagnoli)
	before, waits := 0, 0
	for _, to := range p.ends {
		for b := p.to[before:to]; len(b) > 0; end.pieces++ {
			n := min(len(b), pieceBytes)
			at, err := s.writePiece(x, b[:n])
			if waits += n; err == nil && waits >= pieceBytes {
				err, waits = s.log.Await(s.stop, at), 0 // so much at a time: records of others are written in between
			}
			if err != nil {
				return nil, err
			}
			b = b[n:]
		}
		before = to
	}
	return x, s.writeEnd(x, &end)
}

// writePiece writes the next piece of a checkpoint.
func (s *Store) writePiece(x *pointer, b []byte) (wal.Position, error) {
	head := binary.LittleEndian.AppendUint64(append(make([]byte, 0, pieceHead), version, tagPiece), uint64(x.mark.at))
	p, err := s.appendAs(len(x.pieces), binary.LittleEndian.AppendUint32(head, uint32(len(x.pieces))), b)
	x.pieces = append(x.pieces, p)
	return p.at, err
}

// writeEnd writes the end of a checkpoint, and waits until it is durable.
func (s *Store) writeEnd(x *pointer, end *done) (err error) {
	x.end = end.encode()
	if x.last, err = s.appendAs(noPiece, x.end); err != nil {
		return err
	}
	x.spans = s.spans.all // nobody adds to them before the next checkpoint
	if err = s.log.Await(s.stop, x.last.at); err == nil {
		x.file, err = s.log.Identity(x.last.batch)
	}
	return err
}
