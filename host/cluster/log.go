package cluster

import "errors"

// Log is the replicated log of package journal: for each key of a kind the records of its events, and for each shard of a kind a fence,
// which names its owner. Calls do not block. They may be late, and fail without a word on what they have done; done may be called twice,
// by any goroutine, and the first call counts. What was confirmed stays. Kinds and names are those of actors.
type Log interface {
	// Last is the last fence of a shard, and where in the log it is; nil and 0 if there is none. It may be an old one.
	Last(kind string, shard int, done func(fence []byte, at uint64, err error))
	// Fence puts a fence behind the one at after (0: there is none yet). The error is ErrFenced if there is another one.
	Fence(kind string, shard int, fence []byte, after uint64, done func(at uint64, err error))
	// Append adds a record to what there is of a key, if the last fence of the shard is the one at fence; otherwise the error is
	// ErrFenced. The log checks that and appends in one step.
	Append(kind string, shard int, fence uint64, name string, record []byte, done func(at uint64, err error))
	// Spare is Append of a record of MaxSpare bytes at most behind which less is needed: the log takes it also where it has no room for others.
	Spare(kind string, shard int, fence uint64, name string, record []byte, done func(at uint64, err error))
	// Replace puts a record in the place of all that there is of a key, if the last of that is at after; otherwise the error is
	// ErrFenced. If it fails in the middle, some of what was replaced may still stand before the record.
	Replace(kind, name string, record []byte, after uint64, done func(at uint64, err error))
	// Read reads all that there is of a key, in order, from a copy of the log that has everything up to least.
	Read(kind string, shard int, name string, least uint64, done func(list []LogEntry, err error))
	// List lists the keys that have records, living or not, of a copy of the log that may be a moment old. It is for operators.
	List(q KeyQuery, done func(page KeyPage, err error))
}

// LogEntry is a record as the log has it.
type LogEntry struct {
	At     uint64 // grows over all keys and fences
	Record []byte
}

// Bounds of what a log has to take.
const (
	MaxRecord = 1<<20 - 16<<10 // bytes of a record or a fence
	MaxRead   = 8 << 20        // bytes of all that there is of a key
	MaxSpare  = 4 << 10        // bytes of a record for which there is always room
)

// What a log answers. After any other error it is not known whether it has done what it was to do.
var (
	// ErrFenced says that nothing was written: another one has the shard, or the key was changed.
	ErrFenced = errors.New("cluster: another owner has written, nothing was changed")
	// ErrBusy says that nothing was written, and that it may be tried again at once.
	ErrBusy = errors.New("cluster: the log is busy, nothing was written")
	// ErrFull says that nothing was written, since the log has no room.
	ErrFull = errors.New("cluster: the log of the cluster's keys is full, nothing was written")
	// ErrLong says that there is more of a key than MaxRead, which no node writes: reading it again is no use.
	ErrLong = errors.New("cluster: the log has more of the key than 8 MiB, which no node writes")
)
