package durable

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/view"
)

// Records of what actors take in are compact: what a record has in common with those before it in its batch of the log is
// left out. Their first byte has the highest bit set; the next three are the kind, the lower four are flags. Then come
//
//	actor    1 byte if it is known, else 8
//	time     the difference to the record before it
//
// and what the kind has. Of a message: its position, if it is not the next one; the sender, 1 byte if it is known, with its
// path; with more: a byte that says which of the other fields follow, and those; the payload. Of an entry: incarnation and
// first turn, if it is not the next one; the messages, of which there is only the number if they are the next ones; with
// more: a byte that says which of the other fields follow, and those; for each turn the number of its commands, times two, and
// one if its end is marked, and the CRC-32C of each. Lives and signals have all their fields; those of limits that are not the
// defaults, and behind them the rules, if there are any. Kind 7 is all further kinds: another byte, behind the time, says which. Of a refusal: the kind, the sender, the
// correlation, the checksum.
// Of an exchange of code: the way, one more if its state goes on in the next record; the fingerprint; version, state and the SDK's state
// as the old code has saved them, fuel; a part of a state.
// Of a decision: what it is about, flags, and its fields.
//
// Numbers are LEB128, those that may be negative with the sign in the lowest bit. Refs and checksums are little endian. Strings and
// bytes have their length before them, unless they are last.
const (
	compact    = 0x80
	knownActor = 8 // the actor has a place, see shared
	nextOne    = 4 // of a message: its position; of an entry: the turn
	another    = 2 // of a message: its sender has a place; of an entry: the messages are the next ones
	withMore   = 1
)

// What more a message has.
const (
	moreKind = 1 << iota
	moreFlags
	moreSender
	moreCorrelation
	moreDue
	moreHeaders
)

// What more an entry has.
const (
	moreDone = 1 << iota
	moreEnded
	moreFailure
	moreCut
	moreSpend
)

// furtherKinds are written as a kind of their own.
const furtherKinds = record.Refused

// shared is what records have in common with those before them in their batch. It is the same where they are written and
// where they are read. An actor has a place in it that follows from its ref, and may lose it to another one.
type shared struct {
	batch uint64 // from 1; places of others count for nothing
	time  int64
	known [256]place
}

type place struct {
	ref         abi.Ref
	batch       uint64
	position    uint64 // of the last message that it has accepted
	taken       uint64 // of the last message that it has handled
	turn        uint64 // the next one
	incarnation uint64
	path        string // as a sender; empty: it was none, or has none
	sender      bool
}

// begin is called before the first record of a batch.
func (c *shared) begin() { c.batch, c.time = c.batch+1, 0 }

// placeNumber is that of a ref.
func placeNumber(ref abi.Ref) byte { return byte(uint64(ref) * 0x9e3779b97f4a7c15 >> 56) }

// placeOf is the place of a ref, which it takes if it is another's.
func (c *shared) placeOf(ref abi.Ref) (p *place, i byte, known bool) {
	p, i = c.at(ref)
	if known = c.is(p, ref); !known {
		*p = place{ref: ref, batch: c.batch}
	}
	return p, i, known
}

// Bounds of what is written besides strings, bytes and lists.
const (
	headBytes    = 1 + 8 + binary.MaxVarintLen64
	senderBytes  = 8 + binary.MaxVarintLen64
	messageBytes = headBytes + binary.MaxVarintLen64 + senderBytes + 1
	moreBytes    = 1 + 4*binary.MaxVarintLen64
	entryBytes   = headBytes + 6*binary.MaxVarintLen64
)

// messageSize is close to what is written: a record of less than 128 bytes has a length of one byte.
func messageSize(m *record.Message) int {
	n := messageBytes + len(m.SenderPath) + len(m.Headers) + len(m.Payload)
	if m.Kind != abi.KindMessage || m.Flags != 0 || m.Correlation != 0 || m.Due != 0 || len(m.Headers) > 0 {
		n += moreBytes
	}
	return n
}

// appendHead writes tag, actor and time; the flags come later.
func (c *shared) appendHead(to []byte, k record.Kind, actor abi.Ref, time int64) ([]byte, *place) {
	p, i, known := c.placeOf(actor)
	tag := byte(compact) | byte(min(k, furtherKinds))<<4
	if known {
		to = append(to, tag|knownActor, i)
	} else {
		to = binary.LittleEndian.AppendUint64(append(to, tag), uint64(actor))
	}
	to = appendInt(to, time-c.time)
	if c.time = time; k >= furtherKinds {
		to = append(to, byte(k))
	}
	return to, p
}

// appendRefusal writes that an actor has refused a message.
func (c *shared) appendRefusal(to []byte, actor abi.Ref, time int64, m *record.Message) []byte {
	to, _ = c.appendHead(to, record.Refused, actor, time)
	to = binary.LittleEndian.AppendUint64(append(to, byte(m.Kind)), uint64(m.Sender))
	return append(appendUint(to, m.Correlation), m.Payload...)
}

// appendMessage writes a message that an actor has accepted.
func (c *shared) appendMessage(to []byte, actor abi.Ref, time int64, m *record.Message) []byte {
	at := len(to)
	to, p := c.appendHead(to, record.Accepted, actor, time)
	if m.Position == p.position+1 {
		to[at] |= nextOne
	} else {
		to = appendUint(to, m.Position)
	}
	p.position = m.Position
	sender := m.Sender != 0 || m.SenderPath != ""
	if sender {
		s, i, known := c.placeOf(m.Sender)
		if known && s.sender && s.path == m.SenderPath {
			to[at] |= another
			to, sender = append(to, i), false
		}
		s.path, s.sender = m.SenderPath, true
	}
	if m.Kind != abi.KindMessage || m.Flags != 0 || sender || m.Correlation != 0 || m.Due != 0 || len(m.Headers) > 0 {
		to[at] |= withMore
		to = c.appendMore(to, m, sender)
	}
	return append(to, m.Payload...)
}

func (c *shared) appendMore(to []byte, m *record.Message, sender bool) []byte {
	at := len(to)
	to = append(to, 0)
	if m.Kind != abi.KindMessage {
		to[at] |= moreKind
		to = append(to, byte(m.Kind))
	}
	if m.Flags != 0 {
		to[at] |= moreFlags
		to = appendUint(to, uint64(m.Flags))
	}
	if sender {
		to[at] |= moreSender
		to = appendString(binary.LittleEndian.AppendUint64(to, uint64(m.Sender)), m.SenderPath)
	}
	if m.Correlation != 0 {
		to[at] |= moreCorrelation
		to = appendUint(to, m.Correlation)
	}
	if m.Due != 0 {
		to[at] |= moreDue
		to = appendInt(to, m.Due-c.time)
	}
	if len(m.Headers) > 0 {
		to[at] |= moreHeaders
		to = appendString(to, m.Headers)
	}
	return to
}

// outcome is the part of an entry that has nothing in common with other records.
type outcome struct {
	more byte
	data []byte // of more, and the checksums of the commands
	body int    // where in data those begin
}

// outcomeOf writes to room.
func outcomeOf(room []byte, e *record.Entry) (o outcome) {
	if e.Done != len(e.Mail) {
		o.more |= moreDone
		room = appendUint(room, uint64(e.Done))
	}
	if e.Ended != record.All {
		o.more |= moreEnded
		room = append(room, byte(e.Ended))
	}
	if e.Failure != nil {
		o.more |= moreFailure
		room = appendFailure(room, e.Failure)
	}
	if x := e.Cut; x != nil {
		o.more |= moreCut
		room = appendUint(append(room, byte(x.Stage)), x.Phase)
		room = appendString(append(appendUint(room, x.At), byte(x.Kind)), x.Reason)
	}
	if e.Fuel != 0 || e.Memory != 0 {
		o.more |= moreSpend
		room = appendUint(appendUint(room, e.Fuel), e.Memory)
	}
	o.body = len(room)
	for from := 0; from < len(e.Outbox); {
		end := from
		for end < len(e.Outbox) && e.Outbox[end] != 0 {
			end++
		}
		n := uint64(end-from) << 1
		if end < len(e.Outbox) {
			n |= 1
		}
		room = appendUint(room, n)
		for _, sum := range e.Outbox[from:end] {
			room = binary.LittleEndian.AppendUint32(room, sum)
		}
		from = end + 1
	}
	o.data = room
	return o
}

func entrySize(e *record.Entry, o *outcome) int {
	return entryBytes + binary.MaxVarintLen64*len(e.Mail) + len(o.data)
}

// appendEntry writes an entry.
func (c *shared) appendEntry(to []byte, actor abi.Ref, time int64, e *record.Entry, o *outcome) []byte {
	at := len(to)
	to, p := c.appendHead(to, record.Turned, actor, time)
	if e.First == p.turn && e.Incarnation == p.incarnation && p.turn != 0 {
		to[at] |= nextOne
	} else {
		to = appendUint(appendUint(to, e.Incarnation), e.First)
	}
	p.incarnation, p.turn = e.Incarnation, e.First+uint64(e.Done)
	if e.Failure != nil {
		p.turn++
	}
	to = appendUint(to, uint64(len(e.Mail)))
	if inOrder(e.Mail, p.taken) {
		to[at] |= another
	} else {
		before := p.taken
		for _, m := range e.Mail {
			to = appendInt(to, int64(m-before))
			before = m
		}
	}
	if n := len(e.Mail); n > 0 {
		p.taken = e.Mail[n-1]
	}
	if o.more != 0 {
		to[at] |= withMore
		to = append(to, o.more)
	}
	return append(to, o.data...)
}

// mostCounted is how many messages an entry has of which only the number is written: reading takes no more room than
// records of a usual size.
const mostCounted = 64

// inOrder reports whether messages are those after one that was taken.
func inOrder(mail []uint64, taken uint64) bool {
	for i, m := range mail {
		if m != taken+1+uint64(i) {
			return false
		}
	}
	return len(mail) <= mostCounted
}

// appendOther writes a life, a signal, an exchange or a decision.
func (c *shared) appendOther(to []byte, r *record.Record) []byte {
	to, _ = c.appendHead(to, r.Kind, r.Actor, r.Time)
	if l := r.Life; l != nil {
		to = appendString(appendString(appendString(to, l.Path), l.Type), l.Args)
		to = binary.LittleEndian.AppendUint64(to, uint64(l.Parent))
		return appendLimits(appendString(appendUint(to, l.Incarnation), l.Code), l.Limits, l.Rules)
	}
	if r.Exchange != nil {
		return appendExchange(to, r.Exchange)
	}
	if r.Decision != nil {
		return appendDecision(to, r.Decision)
	}
	x := r.Signal
	to = appendString(to, x.What)
	to = binary.LittleEndian.AppendUint64(to, uint64(x.From))
	to = binary.LittleEndian.AppendUint64(to, uint64(x.Other))
	to = appendUint(to, x.Correlation)
	to = append(appendUint(to, uint64(x.How)), x.Directive)
	to = appendString(appendInt(to, x.Delay), x.Reason)
	to = appendUint(to, x.Position)
	if x.Failure != nil {
		to = appendFailure(to, x.Failure)
	}
	return to
}

// otherSize is at least what appendOther writes.
func otherSize(r *record.Record) int {
	n := headBytes + 32*binary.MaxVarintLen64
	if l := r.Life; l != nil {
		return n + len(l.Path) + len(l.Type) + len(l.Args) + len(l.Code) + rulesSize(l.Rules)
	}
	if r.Exchange != nil {
		return n + exchangeSize(r.Exchange)
	}
	if r.Decision != nil {
		return n
	}
	n += len(r.Signal.What) + len(r.Signal.Reason)
	if f := r.Signal.Failure; f != nil {
		n += len(f.Reason) + len(f.Message) + len(f.GuestStack) + 8*binary.MaxVarintLen64
		for _, line := range f.Stack {
			n += binary.MaxVarintLen64 + len(line)
		}
	}
	return n
}

// limitsOf are the numbers of limits, in the order in which they are written. It never changes, and others go to its end.
func limitsOf(l *view.Limits) [17]uint64 {
	return [...]uint64{
		uint64(l.Mailbox), uint64(l.MailboxBytes), l.Fuel, uint64(l.Deadline), l.Memory, l.Outbox, uint64(l.Message), uint64(l.Children), uint64(l.Timers),
		uint64(l.Watches), uint64(l.Asks), uint64(l.Stash), uint64(l.Replies), uint64(l.Held), uint64(l.Durable), uint64(l.Tree.Actors), uint64(l.Tree.Memory),
	}
}

// withLimits is the inverse of limitsOf.
func withLimits(n *[17]uint64) *view.Limits {
	return &view.Limits{
		Mailbox: int(n[0]), MailboxBytes: int64(n[1]), Fuel: n[2], Deadline: time.Duration(n[3]), Memory: n[4], Outbox: n[5], Message: int64(n[6]), Children: int(n[7]), Timers: int(n[8]),
		Watches: int(n[9]), Asks: int(n[10]), Stash: int(n[11]), Replies: int(n[12]), Held: int64(n[13]), Durable: int64(n[14]), Tree: view.TreeLimits{Actors: int(n[15]), Memory: int64(n[16])},
	}
}

// usualLimits are the defaults of this format.
var usualLimits = [17]uint64{10_000, 16 << 20, 1_000_000_000, 0, 0, 4 << 20, 1 << 20, 1000, 1000, 10_000, 1000, 1000, 1000, 64 << 20}

// withRules is the bit that says that rules come behind the limits. Releases that do not know it refuse the record.
const withRules = 1 << len(usualLimits)

// appendLimits writes which limits are not the usual ones, as a set of bits, and those; nothing if there are none.
func appendLimits(to []byte, l *view.Limits, r *record.Rules) []byte {
	if l == nil {
		return to
	}
	all, set := limitsOf(l), uint64(0)
	for i, n := range all {
		if n != usualLimits[i] {
			set |= 1 << i
		}
	}
	if r != nil {
		set |= withRules
	}
	to = appendUint(to, set)
	for i, n := range all {
		if set&(1<<i) != 0 {
			to = appendUint(to, n)
		}
	}
	return appendRules(to, r)
}

func appendFailure(to []byte, f *abi.Failure) []byte {
	to = appendString(appendString(append(to, byte(f.Kind)), f.Reason), f.Message)
	to = appendUint(to, uint64(len(f.Stack)))
	for _, line := range f.Stack {
		to = appendString(to, line)
	}
	to = appendUint(appendUint(to, f.Turn), f.Fuel)
	return appendString(to, f.GuestStack)
}

func appendUint(to []byte, v uint64) []byte {
	if v < 0x80 {
		return append(to, byte(v))
	}
	if v < 1<<14 {
		return append(to, byte(v)|0x80, byte(v>>7))
	}
	return binary.AppendUvarint(to, v)
}

func appendInt(to []byte, v int64) []byte { return appendUint(to, uint64(v)<<1^uint64(v>>63)) }

func appendString[T string | []byte](to []byte, s T) []byte {
	return append(appendUint(to, uint64(len(s))), s...)
}
