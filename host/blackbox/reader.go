package blackbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// reader reads the parts of a file. After the first error it reads nothing, and at is where that was.
type reader struct {
	b   []byte
	at  int
	err error

	next    uint64 // number of the turn behind the last entry
	follows bool   // there is one, and it has not failed
}

func (r *reader) fail(why string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(why, args...)
	}
}

func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)-r.at) {
		r.fail("%d bytes are announced, %d are left", n, len(r.b)-r.at)
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at : r.at]
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) fixed() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) number() uint64 {
	if r.err != nil {
		return 0
	}
	n, k := binary.Uvarint(r.b[r.at:])
	if k <= 0 || k > 1 && r.b[r.at+k-1] == 0 { // of each number there is one form
		r.fail("a number is malformed")
		return 0
	}
	r.at += k
	return n
}

func (r *reader) bytes() []byte { return r.take(r.number()) }

func (r *reader) text() string { return string(r.bytes()) }

// flags reads a byte with no other bits than those of all.
func (r *reader) flags(all byte) byte {
	b := r.byte()
	if r.err == nil && b&^all != 0 {
		r.at--
		r.fail("unknown flags %#x", b&^all)
	}
	return b
}

func (r *reader) actor(f *File) {
	flags := r.flags(flagFromStart | flagJudged)
	f.FromStart, f.Judged = flags&flagFromStart != 0, flags&flagJudged != 0
	f.Time = int64(r.fixed())
	f.Version, f.Path, f.Type = r.text(), r.text(), r.text()
	f.Ref = abi.Ref(r.fixed())
	copy(f.Seed[:], r.take(abi.SeedSize))
	copy(f.Prepare[:], r.take(abi.SeedSize))
	var deadline uint64
	for _, to := range [...]*uint64{&f.Incarnation, &f.Fuel, &f.Memory, &f.Outbox, &deadline, &f.Spawned, &f.Exact} {
		*to = r.number()
	}
	f.Deadline = int64(deadline)
	f.Inexact = r.text()
	b := r.bytes()
	if r.err != nil {
		return
	}
	if err := abi.DecodeFailure(&f.Failure, b); err != nil {
		r.at -= len(b)
		r.fail("the failure: %w", err)
	}
}

func (r *reader) image(i *Image) {
	i.Name = r.text()
	copy(i.Module[:], r.take(32))
	copy(i.Identity[:], r.take(96))
	var n [17]uint64
	for k := range n {
		n[k] = r.number()
	}
	i.setNumbers(&n)
	if r.err == nil && i.numbers() != n {
		r.fail("a limit of the image is out of range")
	}
	count := r.number()
	if r.err == nil && count > uint64(len(r.b)-r.at)/8 { // so that the list takes no more than the file
		r.fail("%d variables in %d bytes", count, len(r.b)-r.at)
	}
	if r.err != nil {
		return
	}
	i.Config.Name = i.Name
	for range count {
		kv := r.text()
		if r.err != nil {
			return
		}
		i.Config.Env = append(i.Config.Env, kv)
	}
}

// list checks the entries in the rest, at most so many, and has to point at them.
func (r *reader) list(to *[]byte, most uint64) {
	from := r.at
	for ; r.err == nil && r.at < len(r.b); most-- {
		if most == 0 {
			r.fail("more than one entry")
			return
		}
		var e Entry
		r.entry(&e)
	}
	*to = r.b[from:r.at:r.at]
}

// listed reports whether entries can be read.
func listed(b []byte) bool {
	r := reader{b: b}
	for r.err == nil && r.at < len(b) {
		var e Entry
		r.entry(&e)
	}
	return r.err == nil
}

// events checks the lines of File.Events.
func (r *reader) events() {
	lines := 0
	for r.err == nil && r.at < len(r.b) {
		from := r.at
		n := bytes.IndexByte(r.b[from:], '\n')
		if lines++; n <= 0 || n > MostEventBytes || lines > MostEvents || !json.Valid(r.b[from:from+n]) {
			r.fail("line %d of the events is none", lines)
			return
		}
		r.at += n + 1
	}
}

// mostPushed bounds the envelopes of an entry, each of which has a byte of an inbox at least.
const mostPushed = 1 << 28

func (r *reader) entry(e *Entry) {
	from := r.at
	flags := r.flags(flagFailed | flagHashed | flagEnded | flagCut | flagPlain)
	if flags&flagPlain != 0 {
		r.plain(e, from, flags)
		return
	}
	e.Failed, e.Hashed, e.Ended = flags&flagFailed != 0, flags&flagHashed != 0, flags&flagEnded != 0
	e.Now, e.First = int64(r.fixed()), r.number()
	pushed, done := r.number(), r.number()
	e.Fuel, e.Outbox = r.number(), r.bytes()
	if r.err == nil && (pushed == 0 || pushed > mostPushed || done > pushed || pushed > uint64(len(r.b)-r.at)) {
		r.at = from
		r.fail("an entry of %d envelopes and %d turns", pushed, done)
	}
	if flags&flagCut != 0 {
		c := &sandbox.Cut{Stage: sandbox.Stage(r.byte()), Kind: abi.FailureKind(r.byte())}
		c.Phase, c.At = r.number(), r.number()
		c.Reason = r.text()
		if r.err == nil && (c.Stage > sandbox.StageWork || c.Kind == 0 || len(c.Reason) > abi.MaxReason) {
			r.at = from
			r.fail("an entry was cut in a way that is not known")
		}
		e.Cut = c
	}
	if r.err != nil {
		return
	}
	e.Pushed, e.Done = int(pushed), int(done)
	mail := r.at
	var env abi.Envelope
	for range e.Pushed {
		if r.envelope(&env); r.err != nil {
			return
		}
	}
	e.mail = r.b[mail:r.at:r.at]
	r.next, r.follows = e.First+done, !e.Failed
}

// plain reads what is behind flagPlain.
func (r *reader) plain(e *Entry, from int, flags byte) {
	if r.err == nil && (flags != flagPlain || !r.follows) {
		r.at = from
		r.fail("an entry of one turn that follows none")
		return
	}
	kind := r.byte()
	*e = Entry{Now: int64(r.fixed()), First: r.next, Pushed: 1, Done: 1}
	env := &abi.Envelope{Kind: abi.Kind(kind), Sender: abi.Ref(r.fixed())}
	e.Fuel, env.Correlation = r.number(), r.number()
	outbox, headers, payload := r.number(), r.number(), r.number()
	e.Outbox, env.Headers, env.Payload = r.take(outbox), r.take(headers), r.take(payload)
	if len(env.Headers) == 0 {
		env.Headers = nil
	}
	if r.err == nil && env.Kind > abi.KindChildFailed {
		r.at = from
		r.fail("a message of kind %d", kind)
	}
	e.plain = env
	r.next++
}

func (r *reader) envelope(e *abi.Envelope) {
	from := r.at
	kind := r.byte()
	*e = abi.Envelope{Kind: abi.Kind(kind), Sender: abi.Ref(r.fixed()), Correlation: r.number(), Headers: r.bytes(), Payload: r.bytes()}
	if len(e.Headers) == 0 {
		e.Headers = nil
	}
	if r.err == nil && e.Kind > abi.KindRecover {
		r.at = from
		r.fail("a message of kind %d", kind)
	}
}
