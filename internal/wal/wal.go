// Package wal is an ordered log of records in files, for one writer. It survives the end of the process and of
// the machine's power: what it has reported as durable is there when it is opened again, and what is there is
// a prefix of what was appended.
//
// Records are collected while the disk is busy. One goroutine writes them, with one write and one sync for all that
// have come by then. Files are written with zeros before they are used, so that a sync has no metadata to
// write, and never written again where they have been written before.
//
// What is on disk is one of four: written, never written, torn by a crash, or damaged. Sectors are made so that these can
// be told apart, see sector.go. A crash shortens the log; damage is an error that names the position.
package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Position is where a record begins. Positions grow from record to record; they are no indexes, as there are gaps
// between them.
type Position uint64

// Record is one that was appended. Data is valid until the next one is read.
type Record struct {
	At    Position
	Epoch uint64 // of the writer
	First bool   // of those that were written at once, see [Log.Begin]
	Data  []byte
}

// Journal is an ordered log of records. A log on one machine's disk is a [Log]; a replicated one can take its place.
// It is safe for concurrent use.
type Journal interface {
	// Append adds a record, which consists of the parts. It copies them, and never waits for the disk. A record whose
	// Append has returned may or may not be there after a crash, until Durable is greater than its position.
	Append(parts ...[]byte) (Position, error)
	// Durable is the position below which every record is durable.
	Durable() Position
	// Await waits until the record at p is durable. Its error says that this will not be known: the journal has
	// failed or was closed, or ctx is done.
	Await(ctx context.Context, p Position) error
	// Read returns the records that are durable when the iteration begins, from the first one whose position is
	// not less than from. An error is the last thing it yields.
	Read(from Position) iter.Seq2[Record, error]
	// Trim says that no record before the position is needed. Some of them may still be read.
	Trim(before Position) error
	// Fence ends the appending of writers whose epoch is less, this one's included, for good.
	Fence(epoch uint64) error
	// Epoch is the writer's. That of every later writer is greater.
	Epoch() uint64
	// Close waits until all that was appended is durable.
	Close() error
}

// Sync says when a record counts as durable.
type Sync uint8

const (
	// Always: when it would survive a power failure.
	Always Sync = iota
	// Interval: when it would survive the end of the process. A power failure takes the records of the last
	// Options.Interval, and none before them.
	Interval
	// Never: as Interval, but the operating system decides how many records a power failure takes.
	Never
)

// Options of a log. FS and Rand have to be given.
type Options struct {
	FS       FS                                             // where its files are
	Sync     Sync                                           //
	Interval time.Duration                                  // of Interval; 10 ms if it is 0
	After    func(time.Duration, func()) (stop func() bool) // a timer; needed for Interval
	Rand     io.Reader                                      // for salts and the log's identity: of cryptographic strength

	Segment int64 // bytes of a file at most, unless a batch is longer; 64 MiB if it is 0, at least 64 KiB
	Limit   int64 // bytes of all files; 0: none
	Record  int   // bytes of a record at most; 16 MiB if it is 0
	Pending int   // bytes that wait for the disk at most; 32 MiB if it is 0, at least one record

	// End, unless it is 0, is where the log ends: what was appended from there on is removed, for good, when it is opened. It is the
	// position of a record that is the first of those that were written at once.
	End Position

	// Key encrypts what is appended, with AES-256-GCM; it has 32 bytes. KeyID tells it from others and must not be 0.
	Key   []byte
	KeyID uint32
	// Keys returns the key of another id, of files that were written with it. Nil: there are none.
	Keys func(id uint32) ([]byte, error)

	// Manual is for simulations: the log does nothing by itself, but in Work, Await and Close. These, and Append, are for
	// one goroutine then.
	Manual bool

	// Progress is told whenever Durable has grown, in order, and once of the error that ends the log. It must
	// not block. Nil: nobody is told.
	Progress func(durable Position, err error)
}

// Errors of a journal. What it returns wraps them.
var (
	// ErrFull: the limit is reached, or the disk is full. Nothing was appended; a later try may succeed.
	ErrFull = errors.New("the log is full")
	// ErrNoFile: the file that the log was to go on in could not be made. Nothing was appended; a later try may succeed.
	ErrNoFile = errors.New("the log's next file cannot be made")
	// ErrBusy: more waits for the disk than may. Nothing was appended; a later try may succeed.
	ErrBusy = errors.New("the log's disk does not keep up")
	// ErrTooLarge: the record has more bytes than one may have.
	ErrTooLarge = errors.New("the record is too large for the log")
	// ErrFenced: a writer with a greater epoch has taken over.
	ErrFenced = errors.New("another writer has taken over the log")
	// ErrFailed: a write or a sync has failed. It is not known what of it is on disk, so the log is closed for good.
	ErrFailed = errors.New("the log has failed")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("the log is closed")
	// ErrLocked: another process has it open.
	ErrLocked = errors.New("the log is in use by another process")
	// ErrKey: there is no key, or a wrong one, for what is encrypted.
	ErrKey = errors.New("the log's key is missing or wrong")
)

// Damage is the error of files that no crash leaves behind.
type Damage struct {
	File string
	At   Position // of the batch, or the record, that cannot be read
	What string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("the log is damaged: %s at position %d: %s", d.File, d.At, d.What)
}

// VersionError is the error of files that a later release has written.
type VersionError struct {
	File string
	Has  int // the file's version; this release reads up to Version
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s has version %d; this release reads versions up to %d", e.File, e.Has, Version)
}

// Version is that of the files. Older ones are read, too.
const Version = 2
