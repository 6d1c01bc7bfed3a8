package sandbox

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/buffers"
)

// output is what a guest has written during a call: flushed commands, log lines, stdout and
// stderr.
type output struct {
	staging     []byte // flushed parts of the outbox
	limit       uint64 // of staging and outbox together
	stdout      []byte // an incomplete line
	stderr      []byte
	diagnostics diagnostics
	logged      logBudget
	waits       waitBudget
	used        bool // anything above, since prepare
}

// logBudget bounds what the guest logs in one turn.
type logBudget struct {
	phase uint64
	lines int32 // at most MaxLogLines
	bytes int32 // at most MaxLogBytes
	over  bool
}

// keepStaging is how large a staging buffer an instance keeps between calls.
const keepStaging = 64 << 10

// prepare begins a Run.
func (o *output) prepare(in *Entry) {
	o.limit = in.OutboxLimit
	if o.limit == 0 {
		o.limit = DefaultOutboxLimit
	}
	if o.used {
		o.staging = o.staging[:0]
		o.diagnostics.reset()
		o.waits, o.logged, o.used = waitBudget{}, logBudget{}, false
	}
}

// reset forgets everything.
func (o *output) reset() {
	*o = output{staging: o.staging[:0], stdout: o.stdout[:0], stderr: o.stderr[:0]}
}

// shrink frees buffers that a pooled instance does not need.
func (o *output) shrink() {
	o.unstage()
	o.stdout, o.stderr, o.diagnostics = nil, nil, diagnostics{}
}

// flush is the import by which a guest empties a full outbox. The commands take effect when
// their turn ends, and not at all if it fails.
func (x *Instance) flush(length uint32) {
	if length > x.control.OutboxCap {
		panic(violation(overlong("flush:", length, x.control.OutboxCap)))
	}
	x.charge(costHostCall + uint64(length)/costByte)
	if uint64(len(x.staging))+uint64(length) > x.output.limit {
		panic(x.outboxOverflow())
	}
	from := x.control.Outbox
	x.stageRoom(int(length))
	x.staging = append(x.staging, x.memory.Bytes()[from:from+length]...)
}

// stageRoom makes room for n more bytes of flushed commands. What is more than an instance keeps is lent.
func (o *output) stageRoom(n int) {
	o.used = true
	n += len(o.staging)
	if n <= max(cap(o.staging), keepStaging) {
		return
	}
	b := append(buffers.Get(max(n, 2*len(o.staging)))[:0], o.staging...)
	if cap(o.staging) > keepStaging {
		buffers.Put(o.staging)
	}
	o.staging = b
}

// unstage gives back a large buffer of flushed commands, which nobody reads any more.
func (o *output) unstage() {
	if cap(o.staging) > keepStaging {
		buffers.Put(o.staging)
		o.staging = nil
	}
}

func overlong(what string, length, limit uint32) string {
	return fmt.Sprintf("%s %d bytes of outbox, which has %d", what, length, limit)
}

func (x *Instance) outboxOverflow() *abort {
	return violation(fmt.Sprintf("the commands take more than %d bytes", x.output.limit))
}

// guestLog is the import log.
func (x *Instance) guestLog(level, ptr, length uint32) {
	x.charge(costHostCall + min(uint64(length), MaxLogLine)/costByte)
	text, ok := section(x.memory.Bytes(), ptr, length)
	if !ok {
		panic(violation(fmt.Sprintf("log: the text (%d bytes at %#x) lies outside of the memory", length, ptr)))
	}
	x.logLine(int(min(level, abi.LogError)), text)
}

// guestPanic is the import panic.
func (x *Instance) guestPanic(ptr, length uint32) {
	text, ok := section(x.memory.Bytes(), ptr, length)
	if !ok { // the panic counts without its text
		text = fmt.Appendf(nil, "(the text, %d bytes at %#x, lies outside of the memory)", length, ptr)
	}
	message, trace := splitTrace(text, bytes.LastIndex) // that of one goroutine
	panic(&abort{kind: abi.FailureGuestPanic, message: clip(message, abi.MaxReason), trace: clip(trace, abi.MaxReason)})
}

// logLine passes a line to the sink, unless the turn has logged too much.
func (x *Instance) logLine(level int, text []byte) {
	if x.in == nil || x.in.Log == nil {
		return
	}
	b := &x.logged
	x.used = true
	if phase := x.phaseNow(); phase != b.phase {
		*b = logBudget{phase: phase}
	}
	text = text[:clipLen(text, MaxLogLine)]
	if b.lines == MaxLogLines || int(b.bytes)+len(text) > MaxLogBytes {
		if !b.over {
			b.over = true
			x.in.Log.GuestLog(abi.LogWarn, []byte("this turn has logged too much; the rest is dropped"))
		}
		return
	}
	b.lines++
	b.bytes += int32(len(text))
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, replacement)
		text = text[:clipLen(text, MaxLogLine)]
	}
	x.in.Log.GuestLog(level, text)
}

var replacement = []byte("\uFFFD")

// clipLen is the length of the longest prefix of text within limit bytes that cuts no rune.
func clipLen(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := limit
	for n > limit-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// clip is text as valid UTF-8 of at most limit bytes.
func clip(text []byte, limit int) string {
	text = text[:clipLen(text, limit)]
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, replacement)
		text = text[:clipLen(text, limit)]
	}
	return string(text)
}

// write takes what the guest writes to stdout or stderr and makes lines of it.
func (x *Instance) write(partial *[]byte, level int, p []byte) {
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, newline)
		room := MaxLogLine - len(*partial)
		if len(line) > room {
			line, rest, whole = p[:room], p[room:], true // a line that is too long is split
		}
		if !whole {
			*partial, x.used = append(*partial, line...), true
			return
		}
		if len(*partial) > 0 {
			line = append(*partial, line...)
			*partial = line[:0]
		}
		x.line(level, line)
		p = rest
	}
}

var newline = []byte("\n")

// finishLines logs incomplete lines at the end of a call.
func (x *Instance) finishLines() {
	if len(x.stdout) > 0 {
		x.line(abi.LogInfo, x.stdout)
		x.stdout = x.stdout[:0]
	}
	if len(x.stderr) > 0 {
		x.line(abi.LogWarn, x.stderr)
		x.stderr = x.stderr[:0]
	}
}

// line takes a line from stdout or stderr.
func (x *Instance) line(level int, text []byte) {
	x.used = true
	x.turnDiagnostics().add(level == abi.LogWarn, text)
	if level == abi.LogWarn && len(x.diagnostics.trace) > 0 && x.waits.count >= maxWaits {
		return // the stack of Go's scheduler; the failure has the useful part of the trace
	}
	x.logLine(level, bytes.TrimSuffix(text, []byte("\r")))
}

// largePart is how much is copied between two checks of fuel, deadline and kill, in bytes: a few microseconds.
const largePart = 64 << 10

// fetch is the import by which a guest gets a part of a payload that is apart.
func (x *Instance) fetch(address, offset, length uint32) {
	x.charge(costHostCall)
	apart := x.reader.data
	switch {
	case x.room != isApart:
		panic(violation("fetch: the payload is in the inbox"))
	case x.phaseNow() != 1:
		panic(violation("fetch: no turn has begun"))
	case uint64(offset)+uint64(length) > uint64(len(apart)):
		panic(violation(fmt.Sprintf("fetch: %d bytes from %d of a payload of %d", length, offset, len(apart))))
	}
	if _, ok := section(x.memory.Bytes(), address, length); !ok {
		panic(violation(fmt.Sprintf("fetch: the room (%d bytes at %#x) lies outside of the memory", length, address)))
	}
	from := apart[offset : offset+length]
	for len(from) > 0 {
		n := min(len(from), largePart)
		x.charge(uint64(n) / costByte)
		copy(x.memory.Bytes()[address:], from[:n])
		from, address = from[n:], address+uint32(n)
	}
}

// writeOut is the import by which a guest writes commands, or parts of them, from where they are in its memory, behind what
// it has flushed.
func (x *Instance) writeOut(address, length uint32) {
	x.charge(costHostCall)
	if uint64(len(x.staging))+uint64(length) > x.output.limit {
		panic(x.outboxOverflow())
	}
	if _, ok := section(x.memory.Bytes(), address, length); !ok {
		panic(violation(fmt.Sprintf("write: %d bytes at %#x lie outside of the memory", length, address)))
	}
	x.stageRoom(int(length))
	for length > 0 {
		n := min(length, largePart)
		x.charge(uint64(n) / costByte)
		x.staging = append(x.staging, x.memory.Bytes()[address:address+n]...)
		address, length = address+n, length-n
	}
}
