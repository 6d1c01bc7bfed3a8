// Package blackbox keeps what is needed to repeat the last turns of guests, and writes it to a file when one fails: a crash
// file. Package host/replay repeats it.
//
// A crash file has, with all numbers little endian:
//
//	"waCR"     4 bytes
//	version    1 byte
//	length     8 bytes: of the body
//	body       sections, see File: a tag of one byte, a length as a varint, and the contents
//	sum        4 bytes: CRC-32C over all before it
//
// The sum detects accidental damage only: a crash file may be forged, and whoever reads one treats what is in it, its module
// included, as a stranger's.
package blackbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

const (
	magic    = "waCR"
	version  = 3
	older    = 2 // which has no events
	headSize = len(magic) + 1 + 8
	sumSize  = 4
	// MostBytes is the most that a crash file may have.
	MostBytes = 1 << 30
)

// The tags of sections. Each is there once, in this order; module and events may be missing.
const (
	tagActor byte = iota + 1
	tagImage
	tagStart
	tagSnapshot
	tagEntries
	tagFailing
	tagModule
	tagEvents
)

// Bounds of File.Events.
const (
	MostEvents     = 100
	MostEventBytes = 4 << 10 // of one
)

// File is a crash file. What it has as bytes shares the memory of what was decoded.
type File struct {
	Version     string // of the host that has written it
	Time        int64  // of the failure, ns since 1970
	Path        string // of the actor, with scheme and system
	Type        string
	Ref         abi.Ref
	Incarnation uint64
	// Seed is where the actor's random numbers come from, Prepare where those of the initialisation of an instance
	// whose image is not frozen.
	Seed, Prepare [abi.SeedSize]byte
	// Fuel, Memory and Outbox are the limits of a turn, in units of fuel and bytes; 0: the runtime's own.
	Fuel, Memory, Outbox uint64
	Deadline             int64 // ns; for people: a deadline that was missed is repeated by Cut

	// FromStart says that there is no snapshot: the first entry is the start of the incarnation.
	FromStart bool
	// Spawned is how many children the actor had asked for before the first entry.
	Spawned uint64
	// Exact is the number of the first turn of the entries. Inexact is empty, or says why the failure cannot be repeated from
	// the entries: some are missing, or secrets in them are masked.
	Exact   uint64
	Inexact string
	// Judged says that the host has refused what the turn wanted for a reason that is not within the guest: it could not pay
	// for a search among other actors. The turn is compared, and not refused again.
	Judged bool

	Image   Image
	Start   []byte // the entry that was the start of the incarnation
	Base    []byte // see sandbox.AppendSnapshot; empty if FromStart
	entries []byte
	failing []byte
	Failure abi.Failure
	// Events are what has happened in the system before: JSON as of events, one a line, at most MostEvents.
	Events []byte
	Module []byte // empty: it is not in the file
}

// Image says which image the actor was made of.
type Image struct {
	Name     string
	Module   [32]byte // SHA-256 of the module
	Identity [96]byte // of module, environment and frozen memory, as in snapshots; zero if the image is not frozen
	Config   sandbox.ImageConfig
	Dirs     bool // it has directories, whose contents are not in the file
}

// Entry is what a guest was handed at once, and what it has made of it.
type Entry struct {
	Now    int64  // ns since 1970, in the header of its turns
	First  uint64 // number of its first turn
	Pushed int    // envelopes
	Done   int    // turns that ended well
	Failed bool   // the turn after them has failed
	Ended  bool   // the host had ended the batch
	Fuel   uint64 // of the turns that ended well; it is not compared if the entry has failed
	Cut    *sandbox.Cut
	// Outbox is what they have written; of much only a hash is kept.
	Outbox []byte
	Hashed bool

	mail  []byte
	plain *abi.Envelope // instead of mail
}

// Mail calls f with the envelopes that were pushed, in order.
func (e *Entry) Mail(f func(*abi.Envelope) bool) {
	if e.plain != nil {
		env := *e.plain
		env.Time = e.Now
		f(&env)
		return
	}
	r := reader{b: e.mail}
	var env abi.Envelope
	for range e.Pushed {
		r.envelope(&env)
		env.Time = e.Now
		if r.err != nil || !f(&env) {
			return
		}
	}
}

// ErrFile is wrapped by errors that say why bytes are no crash file, and where.
var ErrFile = errors.New("not a crash file")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Entries calls f with the entries before the failing one, in order, until it returns false.
func (f *File) Entries(call func(*Entry) bool) {
	r := reader{b: f.entries}
	for r.at < len(r.b) {
		var e Entry
		if r.entry(&e); r.err != nil || !call(&e) { // they were checked by Decode
			return
		}
	}
}

// Cursor is a place between the entries before the failing one. A copy is another cursor at the same place.
type Cursor struct{ r reader }

// Cursor is the place before the first entry.
func (f *File) Cursor() Cursor { return Cursor{reader{b: f.entries}} }

// Next reads the next entry, and moves behind it; false: there is none.
func (c *Cursor) Next(e *Entry) bool {
	if c.r.err != nil || c.r.at >= len(c.r.b) {
		return false
	}
	*e = Entry{}
	c.r.entry(e)
	return c.r.err == nil
}

// Failing is the entry with the turn that has failed; false if the file has none.
func (f *File) Failing() (e Entry, ok bool) {
	if len(f.failing) == 0 {
		return e, false
	}
	r := reader{b: f.failing}
	r.entry(&e)
	return e, r.err == nil
}

// Begin is the entry that was the start of the incarnation; false if the file has none.
func (f *File) Begin() (e Entry, ok bool) {
	if len(f.Start) == 0 {
		return e, false
	}
	r := reader{b: f.Start}
	r.entry(&e)
	return e, r.err == nil
}

// Append writes the file to dst.
func (f *File) Append(dst []byte) []byte {
	from := len(dst)
	dst = append(append(dst, magic...), version)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	body := len(dst)
	section := func(tag byte, b []byte) {
		dst = binary.AppendUvarint(append(dst, tag), uint64(len(b)))
		dst = append(dst, b...)
	}
	section(tagActor, f.appendActor(nil))
	section(tagImage, f.Image.append(nil))
	section(tagStart, f.Start)
	section(tagSnapshot, f.Base)
	section(tagEntries, f.entries)
	section(tagFailing, f.failing)
	if len(f.Module) > 0 {
		section(tagModule, f.Module)
	}
	if len(f.Events) > 0 {
		section(tagEvents, f.Events)
	}
	binary.LittleEndian.PutUint64(dst[body-8:], uint64(len(dst)-body))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli))
}

func appendString[S string | []byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// The flags of a file and of an entry.
const (
	flagFromStart byte = 1 << iota
	flagJudged
)

const (
	flagFailed byte = 1 << iota
	flagHashed
	flagEnded
	flagCut
	// flagPlain is alone: one envelope, whose turn has ended well, after an entry that has not failed. So there are no numbers
	// of turns.
	flagPlain
)

func (f *File) appendActor(b []byte) []byte {
	flags := byte(0)
	if f.FromStart {
		flags |= flagFromStart
	}
	if f.Judged {
		flags |= flagJudged
	}
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Time))
	b = appendString(appendString(appendString(b, f.Version), f.Path), f.Type)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Ref))
	b = append(append(b, f.Seed[:]...), f.Prepare[:]...)
	for _, n := range [...]uint64{f.Incarnation, f.Fuel, f.Memory, f.Outbox, uint64(f.Deadline), f.Spawned, f.Exact} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendString(b, f.Inexact)
	return appendString(b, abi.AppendFailure(nil, &f.Failure))
}

// numbers are the parts of a configuration that have a say in what a guest does.
func (i *Image) numbers() [17]uint64 {
	c := &i.Config
	return [...]uint64{
		c.MemoryLimit, uint64(c.TableLimit), uint64(c.StackLimit), uint64(c.TablesLimit), uint64(c.EntriesLimit), uint64(c.TypeLimit),
		uint64(c.FunctionLimit), uint64(c.SegmentLimit), uint64(c.ElementLimit), c.CompileSteps, c.CompileBytes, uint64(c.GlobalLimit),
		c.DataLimit, c.SizeLimit, c.InitFuel, uint64(c.InitDeadline), bit(c.NoFreeze) | bit(c.RawNaNs)<<1 | bit(i.Dirs)<<2,
	}
}

func (i *Image) setNumbers(n *[17]uint64) {
	c := &i.Config
	c.MemoryLimit, c.TableLimit, c.StackLimit, c.TablesLimit, c.EntriesLimit = n[0], uint32(n[1]), uint32(n[2]), uint32(n[3]), uint32(n[4])
	c.TypeLimit, c.FunctionLimit, c.SegmentLimit, c.ElementLimit = uint32(n[5]), uint32(n[6]), uint32(n[7]), uint32(n[8])
	c.CompileSteps, c.CompileBytes, c.GlobalLimit, c.DataLimit, c.SizeLimit = n[9], n[10], uint32(n[11]), n[12], n[13]
	c.InitFuel, c.InitDeadline = n[14], time.Duration(n[15])
	c.NoFreeze, c.RawNaNs, i.Dirs = n[16]&1 != 0, n[16]&2 != 0, n[16]&4 != 0
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (i *Image) append(b []byte) []byte {
	b = appendString(b, i.Name)
	b = append(append(b, i.Module[:]...), i.Identity[:]...)
	for _, n := range i.numbers() {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(i.Config.Env)))
	for _, kv := range i.Config.Env {
		b = appendString(b, kv)
	}
	return b
}

// Decode reads a crash file. It allocates little besides what b takes, and the file keeps b. The error wraps ErrFile and has
// the offset at which b is not one.
func Decode(b []byte) (*File, error) {
	no := func(at int, why string, args ...any) (*File, error) {
		return nil, fmt.Errorf("%w: at byte %d: %s", ErrFile, at, fmt.Sprintf(why, args...))
	}
	switch {
	case len(b) < len(magic)+1 || string(b[:len(magic)]) != magic:
		return no(0, "it does not begin like one")
	case b[len(magic)] != version && b[len(magic)] != older:
		return no(len(magic), "it has version %d, this host reads version %d", b[len(magic)], version)
	case len(b) < headSize+sumSize:
		return no(len(b), "it is cut off")
	}
	switch n, have := binary.LittleEndian.Uint64(b[headSize-8:]), uint64(len(b)-headSize-sumSize); {
	case n > have:
		return no(len(b), "it is cut off: %d of %d bytes are there", have, n)
	case n < have:
		return no(headSize+sumSize+int(n), "%d bytes follow its end", have-n)
	}
	end := len(b) - sumSize
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return no(end, "the checksum is wrong: it is damaged")
	}
	f := &File{}
	r := reader{b: b[:end], at: headSize}
	for tag := tagActor; tag <= tagEvents; tag++ {
		if tag >= tagModule && r.at == len(r.b) {
			break
		}
		if got := r.byte(); r.err == nil && got != tag {
			r.at--
			if tag == tagModule && got == tagEvents {
				continue
			}
			r.fail("section %d is not section %d", got, tag)
		}
		from := r.at
		part := r.bytes()
		s := reader{b: b[:r.at], at: r.at - len(part)}
		if r.err != nil {
			return no(max(from, r.at), "%s", r.err)
		}
		switch tag {
		case tagActor:
			s.actor(f)
		case tagImage:
			s.image(&f.Image)
		case tagStart:
			s.list(&f.Start, 1)
		case tagSnapshot:
			f.Base, s.at = part, r.at
		case tagEntries:
			s.list(&f.entries, 1<<62)
		case tagFailing:
			s.list(&f.failing, 1)
		case tagEvents:
			s.events()
			f.Events = part
		case tagModule:
			f.Module, s.at = part, r.at
		}
		if s.err == nil && s.at != r.at {
			s.fail("%d bytes too many in section %d", r.at-s.at, tag)
		}
		if s.err != nil {
			return no(s.at, "%s", s.err)
		}
	}
	if r.err == nil && r.at != len(r.b) {
		r.fail("%d bytes too many", len(r.b)-r.at)
	}
	if r.err == nil && f.FromStart == (len(f.Base) > 0) && f.Inexact == "" {
		r.fail("it has to begin with a start or with a snapshot")
	}
	if r.err == nil && f.Inexact == "" && (len(f.failing) == 0 || len(f.Start) == 0) {
		r.fail("it has no start, or no failing entry")
	}
	if r.err != nil {
		return no(r.at, "%s", r.err)
	}
	return f, nil
}
