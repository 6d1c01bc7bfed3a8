package blackbox

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Bounds and prices of boxes.
const (
	// wholeOutbox is the most, in bytes, that is kept of what an entry has written; of more there is a hash.
	wholeOutbox = 4 << 10
	// chunk is how much a box takes of the recorder's room at a time, in bytes.
	chunk = 16 << 10
	// A snapshot is taken when turns have computed dearer times as long as it takes, in units of fuel: costSnapshot and
	// costSnapshotByte for each byte that has changed. costTurn is what the host does for a turn.
	dearer           = 40
	costSnapshot     = 4_000
	costSnapshotByte = 4
	costTurn         = 3_000
	// longest is the most that turns compute between two snapshots, in units of fuel, unless a snapshot is dearer: some
	// seconds, which a repetition takes at least.
	longest = 1 << 34
)

// Box is what is kept of one incarnation of a guest. Only the actor's own run may use it.
type Box struct {
	recorder *Recorder
	image    *sandbox.Image
	head     File // without what belongs to one failure

	begin   []byte // the entry of the start
	log     []byte
	base    sandbox.Snapshot
	based   bool // there is a snapshot; otherwise the log begins with the start
	spawned uint64
	first   uint64
	next    uint64 // number of the turn that comes
	worth   uint64 // of the turns since, in units of fuel
	full    string // why nothing is kept until the next snapshot; else empty
	lost    bool   // nor after it: there was no room for the start
	held    int64  // of the recorder's room, bytes
	quiet   int    // as long as the log is no longer, and does not move, all that is kept fits

	follows bool           // the log ends with an entry that has not failed
	failing int            // where the entry that fails begins in the log
	hash    [hashSize]byte // scratch
}

// Life is an incarnation whose turns are to be kept.
type Life struct {
	Path, Type    string
	Ref           abi.Ref
	Incarnation   uint64
	Turns         uint64 // of the actor before
	Seed, Prepare [abi.SeedSize]byte
	Image         *sandbox.Image
	Limits        *sandbox.Entry // TurnFuel, Deadline, MemoryLimit and OutboxLimit count
}

// NewBox begins with an instance in the state of its image. It fails if there is no room for it.
func (r *Recorder) NewBox(l *Life) (*Box, bool) {
	if !r.take(chunk) {
		return nil, false
	}
	b := &Box{recorder: r, image: l.Image, held: chunk, first: l.Turns, next: l.Turns}
	b.head = File{
		Version: r.cfg.Version, Path: l.Path, Type: l.Type, Ref: l.Ref, Incarnation: l.Incarnation, Seed: l.Seed, Prepare: l.Prepare,
		Fuel: l.Limits.TurnFuel, Memory: l.Limits.MemoryLimit, Outbox: l.Limits.OutboxLimit, Deadline: int64(l.Limits.Deadline),
	}
	return b, true
}

// Drop gives back what the box holds.
func (b *Box) Drop() {
	b.recorder.give(b.held)
	b.held, b.log, b.begin, b.base = 0, nil, nil, sandbox.Snapshot{}
}

// Run is an entry that has ended.
type Run struct {
	Now    int64
	Pushed int
	Done   int
	Fuel   uint64
	Failed bool // the turn behind those is a failure
	Outbox []byte
	// Ended says that the host had ended the batch.
	Ended bool
	Cut   *sandbox.Cut
}

// Begin writes down an entry; its envelopes follow, see Mail. It allocates nothing once the box has grown.
func (b *Box) Begin(x *Run) {
	e := Entry{Now: x.Now, First: b.next, Pushed: x.Pushed, Done: x.Done, Failed: x.Failed, Ended: x.Ended, Fuel: x.Fuel, Cut: x.Cut, Outbox: x.Outbox}
	if len(e.Outbox) > wholeOutbox {
		b.hash = hashOf(e.Outbox)
		e.Hashed, e.Outbox = true, b.hash[:]
	}
	b.failing, b.quiet = len(b.log), 0 // the log may move
	b.log = appendEntry(b.log, &e)
	b.next += uint64(x.Done)
	b.follows = !x.Failed
	b.worth += x.Fuel + costTurn*uint64(x.Done)
}

const hashSize = 8

// hashOf stands for an outbox of which not all is kept: its length, and its CRC-32C.
func hashOf(b []byte) (hash [hashSize]byte) {
	binary.LittleEndian.PutUint32(hash[:], uint32(len(b)))
	binary.LittleEndian.PutUint32(hash[4:], crc32.Checksum(b, castagnoli))
	return hash
}

// Differs compares what an entry has written with what it was. If they are not equal it says from which byte on; -1: of
// what was written there is only a hash.
func (e *Entry) Differs(outbox []byte) (at int, differs bool) {
	if e.Hashed {
		hash := hashOf(outbox)
		return -1, string(hash[:]) != string(e.Outbox)
	}
	for at < len(outbox) && at < len(e.Outbox) && outbox[at] == e.Outbox[at] {
		at++
	}
	return at, at < len(outbox) || at < len(e.Outbox)
}

// Mail writes down an envelope of the entry, as it was pushed.
func (b *Box) Mail(kind abi.Kind, sender abi.Ref, correlation uint64, headers, payload []byte) {
	b.log = appendMail(b.log, kind, sender, correlation, headers, payload)
}

// Done is called behind the envelopes of an entry that has not failed. It says that a snapshot is due.
func (b *Box) Done() (due bool) {
	switch most := b.recorder.cfg.ActorBytes; {
	case b.full != "":
		b.cut()
		return !b.lost && b.worth >= b.price()
	case b.begin == nil:
		b.begin = append(b.begin, b.log...) // the first entry is the start
	case int64(len(b.log)) > most || b.worth >= longest:
		if b.worth >= b.price() {
			return true
		}
		if int64(len(b.log)) <= most {
			break
		}
		b.forget("what it was sent since its last snapshot takes more than the black box keeps of an actor")
		return false
	}
	b.fit()
	return false
}

// fit takes as much of the room as the box needs.
func (b *Box) fit() {
	need := int64(cap(b.log) + cap(b.begin) + b.base.Bytes())
	if need <= b.held {
		b.quiet = int(b.recorder.cfg.ActorBytes)
		return
	}
	more := (need - b.held + chunk - 1) / chunk * chunk
	if b.recorder.take(more) {
		b.held += more
		b.quiet = int(b.recorder.cfg.ActorBytes)
		return
	}
	b.forget("the black box had no room for more")
}

// mostScratch is how much of the log a box keeps that keeps no entries, in bytes: each is written down before it is known
// whether it fails.
const mostScratch = chunk / 2

// forget drops the entries, and all that comes before the next snapshot. The start is kept, if there was room for it.
func (b *Box) forget(why string) {
	b.full, b.log, b.base, b.based, b.quiet, b.follows = why, nil, sandbox.Snapshot{}, false, 0, false
	rest := int64(cap(b.begin)+mostScratch+chunk-1) / chunk * chunk
	if rest > b.held {
		b.begin, b.lost, rest = []byte{}, true, chunk
	}
	b.recorder.give(b.held - rest)
	b.held = rest
}

// cut takes the last entry from the log.
func (b *Box) cut() {
	b.follows = false
	if b.log = b.log[:b.failing]; b.full != "" && cap(b.log) > mostScratch {
		b.log = nil
	}
}

// price is what turns have to be worth before the next snapshot.
func (b *Box) price() uint64 {
	return dearer * (costSnapshot + costSnapshotByte*uint64(b.base.Bytes()))
}

// Snapshot begins anew with the present state of the instance, which must be between two turns; spawned is how many children
// the actor has asked for.
func (b *Box) Snapshot(x *sandbox.Instance, spawned uint64) {
	b.log, b.worth, b.full, b.quiet, b.follows = b.log[:0], 0, "", 0, false
	if err := x.Save(&b.base); err != nil {
		b.forget(err.Error())
		return
	}
	b.based, b.spawned, b.first = true, spawned, b.next
	if int64(b.base.Bytes()) > b.recorder.cfg.ActorBytes {
		b.forget("its state takes more than the black box keeps of an actor")
		return
	}
	b.fit()
}

// Forget says that the entries do not lead to the actor's state: a turn was taken back for a reason that is not its own.
func (b *Box) Forget(why string) { b.forget(why) }

// Failure is what Crash is told.
type Failure struct {
	Failure *abi.Failure
	Time    int64
	Judged  bool // see File.Judged
	Keep    bool // the turns before it count
	// Mask, if set, is bytes without known secrets, in the same length; the bytes themselves if they have none.
	Mask func([]byte) []byte
	// Events, if set, is asked for File.Events if a file is written.
	Events func() []byte
}

// Crash is called behind the envelopes of an entry that has failed. It returns the path of the file that is being
// written; empty if there is none, because the last one of the kind was a short time ago.
func (b *Box) Crash(f *Failure) (path string) {
	r := b.recorder
	if path = r.name(b.head.Type, f); path != "" {
		r.write(path, b.file(f))
	}
	if !f.Keep || b.full != "" {
		b.cut()
	}
	b.next++
	if b.full == "" {
		b.fit()
	}
	return path
}

// file is the crash file.
func (b *Box) file(x *Failure) *File {
	f := b.head
	f.Time, f.Failure, f.Judged, f.FromStart, f.Spawned, f.Exact = x.Time, *x.Failure, x.Judged, !b.based, b.spawned, b.first
	err := error(nil)
	f.Image, err = imageOf(b.image)
	f.failing = append([]byte(nil), b.log[b.failing:]...)
	f.entries = append([]byte(nil), b.log[:b.failing]...)
	if f.Start = append([]byte(nil), b.begin...); b.begin == nil {
		f.Start = f.failing // it is the start that has failed
	}
	if err == nil && b.based {
		f.Base, err = sandbox.AppendSnapshot(nil, b.image, &b.base)
	}
	switch {
	case err != nil:
		f.Inexact = err.Error()
	case f.Image.Dirs:
		f.Inexact = "its module has directories, and what it has read there is not recorded"
	case b.full != "":
		f.Inexact = b.full
	}
	if x.Mask != nil {
		f.mask(x.Mask)
	}
	if f.Inexact != "" {
		f.Base = nil
	}
	if x.Events != nil {
		f.Events = x.Events()
	}
	return &f
}

// mask hides known secrets. What is there in their place has the same length, so that the messages can be read.
func (f *File) mask(mask func([]byte) []byte) {
	hidden := false
	hide := func(b *[]byte) {
		masked := mask(*b)
		hidden = hidden || !bytes.Equal(masked, *b)
		*b = masked
	}
	f.Image.Config.Env = slices.Clone(f.Image.Config.Env) // it is the image's
	for i, kv := range f.Image.Config.Env {
		b := []byte(kv)
		hide(&b)
		f.Image.Config.Env[i] = string(b)
	}
	base := f.Base
	hide(&base)
	for _, part := range [...]*[]byte{&f.Start, &f.entries, &f.failing} {
		hide(part)
		if !listed(*part) { // a secret was found in what stands between the messages
			*part = nil
		}
	}
	if !hidden {
		return
	}
	f.Base, f.Seed, f.Prepare = nil, [abi.SeedSize]byte{}, [abi.SeedSize]byte{}
	if f.Inexact == "" {
		f.Inexact = "it has handled a known secret, which is masked: it is not exact"
	}
}
