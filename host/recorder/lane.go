package recorder

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/onlook"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

const (
	// chunkBytes is how much of a lane is written to the file at once.
	chunkBytes = 64 << 10
	// mostTurn is the most that a record of a turn has, mostRest that of an entry besides texts and messages, mostMail that
	// of a message besides headers and payload.
	mostTurn = 1 + 6*binary.MaxVarintLen64 + 4
	mostRest = 3 + 8*binary.MaxVarintLen64 + 3
	mostMail = 2 + 8 + 4*binary.MaxVarintLen64
	// mostReason bounds the texts of records that say why something is not there.
	mostReason = 500
)

// chunk is a part of a lane. The worker writes behind what it has published, and the recorder's goroutine reads what is before.
type chunk struct {
	data      []byte
	published atomic.Int64
	written   int64 // to the file
}

// Lane is where a worker writes its records. Only that worker may use it.
type Lane struct {
	recorder *Recorder
	gen      *generation // nil: the recording is over
	number   uint64      // among all lanes of the recorder
	rel      uint32      // in its file
	stream   *stream
	chunk    *chunk // the stream's
	at       int    // in the chunk
	records  uint64
	time     int64
	seen     []uint64 // for each lane of the file, the last origin in it
	scratch  []byte
}

// stream is a lane of one file.
type stream struct {
	rel uint32

	mu    sync.Mutex
	full  []*chunk // not yet written, oldest first
	chunk *chunk   // the worker writes to it; nil: it has left the file
}

// mostScratch is how much a lane keeps for records that are written at once, in bytes.
const mostScratch = 64 << 10

// Track is what is recorded of an incarnation. Only the actor's own run may use it.
type Track struct {
	gen     *generation
	lane    *Lane // of its last record
	life    uint64
	records uint64
	chain   Chain
	next    uint64 // number of its next turn
	rewound bool
	masked  bool // it was handed a known secret
	slow    bool // its next record is none of Turn: one of those two, or lost
	over    bool
	lost    string
}

// Next is the number of the actor's next turn.
func (t *Track) Next() uint64 { return t.next }

// Over reports whether the incarnation is not recorded any further.
func (t *Track) Over() bool { return t.over }

// Lose has the rest of the incarnation not recorded; why is written when the next entry would be.
func (t *Track) Lose(why string) { t.lost, t.slow = why, true }

// Rewound says that the guest was brought back to the state before the turn that has failed.
func (t *Track) Rewound() { t.rewound, t.slow = true, true }

// Turn writes down an entry of one message without headers, whose turn has ended well. It is what nearly all entries are. The
// origin is as that of Origin. due says that a further file has begun, and the guest is not recorded until Resume is called.
func (l *Lane) Turn(t *Track, now int64, fuel uint64, outbox []byte, e *mailbox.Envelope) (origin Origin, due bool) {
	g, from := l.recorder.now.Load(), e.Origin
	if g == nil || g != l.gen || g != t.gen || from == 0 || t.slow {
		return l.slowly(t, now, fuel, outbox, e)
	}
	rel := from>>(commandBits+recordBits) - g.firstLane
	if rel >= uint64(len(l.seen)) && !l.meet(rel) {
		return l.slowly(t, now, fuel, outbox, e)
	}
	if len(l.chunk.data)-l.at < mostTurn {
		l.roll(mostTurn)
	}
	to, at := l.chunk.data[l.at:l.at+mostTurn], 1
	tag := byte(turn)
	if t.life < 0x80 {
		to[1] = byte(t.life)
		at = 2
	} else {
		at = putLong(to, at, t.life)
	}
	if t.lane != l {
		tag |= tagMoved
		at = putNumber(to, at, t.records)
		t.lane = l
	}
	if z := zigzag(now - l.time); z < 1<<14 && z >= 0x80 { // most are some microseconds
		binary.LittleEndian.PutUint16(to[at:], uint16(z&0x7f|0x80|z<<1&0x7f00))
		at += 2
	} else {
		at = putNumber(to, at, z)
	}
	l.time = now
	record := from >> commandBits & mostRecord
	if rel == uint64(l.rel) {
		tag |= tagOwn
		at = putNumber(to, at, l.records-record)
	} else {
		at = putNumber(to, at, rel)
		at = putNumber(to, at, zigzag(int64(record-l.seen[rel])))
		l.seen[rel] = record
	}
	if command := from & (MostCommands - 1); command == 0 {
		tag |= tagFirst
	} else {
		at = putNumber(to, at, command)
	}
	t.chain = t.chain.Add(outbox, fuel, 1)
	sum := t.chain.short()
	to[0] = tag
	binary.LittleEndian.PutUint32(to[at:], sum) // 24 bits of it; the next record begins with the rest
	t.records++
	t.next++
	n := l.records
	l.done(at + 3)
	if n > mostRecord {
		return 0, false
	}
	return l.number<<(commandBits+recordBits) | n<<commandBits, false
}

// slowly is Turn of an entry that Run writes.
func (l *Lane) slowly(t *Track, now int64, fuel uint64, outbox []byte, e *mailbox.Envelope) (Origin, bool) {
	due := l.Run(t, &Run{Now: now, Done: 1, Fuel: fuel, Outbox: outbox}, []*mailbox.Envelope{e}, nil)
	return l.Origin(t), due
}

// Origin is that of the first command of t's entry, if it was just written here; those of further commands are the numbers behind
// it, up to MostCommands. It is 0 if the entry was not written, or comes out otherwise with a masked secret.
func (l *Lane) Origin(t *Track) Origin {
	if l.gen == nil || t.gen != l.gen || t.lane != l || l.records > mostRecord || t.masked {
		return 0
	}
	return l.number<<(commandBits+recordBits) | (l.records-1)<<commandBits
}

// done publishes a record of n bytes.
func (l *Lane) done(n int) {
	l.at += n
	l.records++
	l.chunk.published.Store(int64(l.at))
}

// meet makes room for what is known of another lane of the file; false: it is not one of them.
func (l *Lane) meet(rel uint64) bool {
	l.recorder.mu.Lock()
	n := uint64(l.gen.lanes)
	l.recorder.mu.Unlock()
	if rel >= n {
		return false
	}
	l.seen = append(l.seen, make([]uint64, n-uint64(len(l.seen)))...)
	return true
}

// roll begins with another chunk, which has room for n bytes.
func (l *Lane) roll(n int) {
	next := l.recorder.newChunk(n)
	l.stream.mu.Lock()
	l.stream.full = append(l.stream.full, l.chunk)
	l.stream.chunk = next
	l.stream.mu.Unlock()
	l.chunk, l.at = next, 0
	l.recorder.hurry()
}

// ready prepares the lane for a record of t, which is nil if it is of none; false: there is no recording any more, or that of t
// has to begin anew.
func (l *Lane) ready(t *Track) (ok, due bool) {
	g := l.recorder.now.Load()
	if g != l.gen {
		l.join(g)
	}
	switch {
	case l.gen == nil || t != nil && t.over:
		return false, false
	case t != nil && t.gen != l.gen:
		return false, true
	}
	return true, false
}

// put appends the whole of a record, which was made in the scratch.
func (l *Lane) put(b []byte) {
	if l.scratch = b[:0]; cap(b) > mostScratch {
		l.scratch = nil
	}
	if len(l.chunk.data)-l.at < len(b) {
		l.roll(len(b))
	}
	l.done(copy(l.chunk.data[l.at:], b))
}

// head begins a record of a life.
func (l *Lane) head(b []byte, kind Kind, t *Track, flags ...byte) []byte {
	b = append(b, byte(kind))
	if t.lane != l {
		b[len(b)-1] |= tagMoved
	}
	b = append(binary.AppendUvarint(b, t.life), flags...)
	if t.lane != l {
		b = binary.AppendUvarint(b, t.records)
		t.lane = l
	}
	t.records++
	return b
}

// Run is an entry that has ended.
type Run struct {
	Now     int64
	Done    int // turns that ended well
	Fuel    uint64
	Outbox  []byte       // what they have written
	Failure *abi.Failure // of the turn behind them; nil: none has failed
	Judged  bool         // that turn could not pay for what depends on other actors
	Ended   bool         // the host had ended the batch
	Cut     *sandbox.Cut
}

// Entry writes down an entry of a guest. It says that a further file is due.
func (l *Lane) Entry(t *Track, e *onlook.Entry) (due bool) {
	run := Run{Now: e.Now, Done: e.Done, Fuel: e.Fuel, Outbox: e.Instance.Outbox(e.Done)}
	if e.Failure != nil {
		run.Failure, run.Ended, run.Cut, run.Judged = e.Failure, e.Instance.Ended(), e.Instance.Cut(), e.Judged
		if e.Judged {
			run.Outbox = e.Instance.Outbox(e.Done + 1)
		}
	}
	var headers func(*mailbox.Envelope) []byte
	if e.Stated != nil {
		headers = e.Headers
	}
	return l.Run(t, &run, e.Mail, headers)
}

// Run writes down any entry. headers, if set, are those of a message as the guest has got them.
func (l *Lane) Run(t *Track, x *Run, mail []*mailbox.Envelope, headers func(*mailbox.Envelope) []byte) (due bool) {
	ok, due := l.ready(t)
	s := l.recorder.secrets()
	if !t.masked && l.gen != nil && l.hidden(s, x, mail, headers) {
		t.masked, t.slow = true, true
	}
	if !ok {
		return due && x.Failure == nil
	}
	if t.lost != "" {
		l.Leave(t, t.lost)
		return false
	}
	var flags byte
	if x.Failure != nil {
		flags |= flagFailed
		t.next++
	}
	if x.Ended {
		flags |= flagEnded
	}
	if x.Cut != nil {
		flags |= flagCut
	}
	if x.Judged {
		flags |= flagJudged
	}
	if t.rewound {
		flags |= flagRewound
	}
	if t.masked {
		flags |= flagMasked
	}
	t.rewound, t.slow = false, t.masked
	t.next += uint64(x.Done)
	b := l.head(l.scratch[:0], Entry, t, flags)
	b = binary.AppendUvarint(b, zigzag(x.Now-l.time))
	l.time = x.Now
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(mail))), uint64(x.Done))
	fuel := x.Fuel
	if f := x.Failure; f != nil {
		cost, reason := f.Fuel, f.Reason
		if t.masked {
			cost, reason = 0, s.MaskCutText(reason)
		}
		fuel = uint64(f.Kind)
		b = append(b, byte(f.Kind))
		b = binary.AppendUvarint(b, cost)
		b = appendText(b, reason[:min(len(reason), abi.MaxReason)])
	}
	if x.Cut != nil {
		cut := *x.Cut
		cut.Reason = s.MaskCutText(cut.Reason)
		b = appendCut(b, &cut)
	}
	if t.chain = t.chain.Add(x.Outbox, fuel, x.Done); t.masked {
		t.chain = 0
	}
	sum := t.chain.short()
	b = append(b, byte(sum), byte(sum>>8), byte(sum>>16))
	for _, e := range mail {
		b = l.mail(b, s, e, handed(e, headers))
	}
	l.put(b)
	return false
}

// mail writes a message, without known secrets.
func (l *Lane) mail(b []byte, s *redact.Set, e *mailbox.Envelope, headers []byte) []byte {
	flags := byte(0)
	if len(headers) > 0 {
		flags = mailHeaders
	}
	if l.inline(e) {
		b = append(b, flags|mailInline, byte(e.Kind))
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Sender))
		b = binary.AppendUvarint(b, e.Correlation)
		b = appendText(b, s.Mask(e.Payload))
	} else {
		rel := uint64(e.Origin>>(commandBits+recordBits)) - l.gen.firstLane
		record := e.Origin >> commandBits & mostRecord
		if rel == uint64(l.rel) {
			b = append(b, flags|mailOwn)
			b = binary.AppendUvarint(b, l.records-record)
		} else {
			b = append(b, flags)
			b = binary.AppendUvarint(b, rel)
			b = binary.AppendUvarint(b, record) // so that messages can be read one by one
		}
		b = binary.AppendUvarint(b, e.Origin&(MostCommands-1))
	}
	if len(headers) > 0 {
		b = appendText(b, s.Mask(headers))
	}
	return b
}

// Begin begins to record an incarnation, whose instance is in its image's state. The track is nil if it is
// not recorded.
func (l *Lane) Begin(x *Incarnation, image *sandbox.Image) *Track {
	if ok, _ := l.ready(nil); !ok {
		return nil
	}
	if why := refuses(l.recorder.secrets(), image, x); why != "" {
		l.Refuse(x.Path, why)
		return nil
	}
	t := &Track{}
	if !l.begin(t, x, image) {
		return nil
	}
	return t
}

// Resume continues to record an incarnation in a further file: from x, which has a snapshot.
func (l *Lane) Resume(t *Track, x *Incarnation, image *sandbox.Image) {
	if ok, due := l.ready(t); !ok && !due {
		return
	}
	why := refuses(l.recorder.secrets(), image, x)
	switch {
	case why != "":
	case t.masked:
		why = "it was handed a known secret, which its state may have in any form"
	case x.Snapshot == nil:
		why = "its state cannot be saved"
	case len(x.Snapshot) > mostSnapshot:
		why = fmt.Sprintf("its state of %d bytes is too large to begin anew with in a further file", len(x.Snapshot))
	}
	if why != "" {
		t.over = true
		l.Refuse(x.Path, why)
		return
	}
	l.begin(t, x, image)
}

func (l *Lane) begin(t *Track, x *Incarnation, image *sandbox.Image) bool {
	n, life, err := l.recorder.enroll(l.gen, image, len(x.Snapshot))
	if err != nil {
		l.Refuse(x.Path, err.Error())
		t.over = true
		return false
	}
	*t = Track{gen: l.gen, lane: l, life: life, records: 1, next: x.Turns}
	tag := byte(Life)
	if x.Snapshot != nil {
		tag |= tagSnapshot
	}
	b := append(l.scratch[:0], tag)
	b = binary.AppendUvarint(binary.AppendUvarint(b, life), n)
	b = appendIncarnation(b, x)
	l.put(b)
	return true
}

// End says that the incarnation is over, at a time in ns since 1970.
func (l *Lane) End(t *Track, now int64) {
	if ok, _ := l.ready(t); !ok {
		return
	}
	b := l.head(l.scratch[:0], End, t)
	b = binary.AppendUvarint(b, zigzag(now-l.time))
	l.time = now
	l.put(binary.LittleEndian.AppendUint64(b, uint64(t.chain))) // 0 if it is masked
	t.over = true
}

// Leave says that the rest of the incarnation is not recorded, and why.
func (l *Lane) Leave(t *Track, why string) {
	if ok, _ := l.ready(t); !ok {
		return
	}
	why = l.recorder.secrets().MaskCutText(why)
	b := l.head(l.scratch[:0], Left, t)
	l.put(appendText(b, why[:min(len(why), mostReason)]))
	t.over = true
}

// Refuse says that an actor is not recorded, and why.
func (l *Lane) Refuse(path, why string) {
	if ok, _ := l.ready(nil); !ok {
		return
	}
	s := l.recorder.secrets()
	path, why = s.MaskCutText(path), s.MaskCutText(why)
	b := append(l.scratch[:0], byte(None))
	l.put(appendText(appendText(b, path), why[:min(len(why), mostReason)]))
}

// putNumber writes a number at a place, and returns the place behind it. Most have one byte or two, or are times.
func putNumber(b []byte, at int, n uint64) int {
	if n < 0x80 {
		b[at] = byte(n)
		return at + 1
	}
	return putLong(b, at, n)
}

func putLong(b []byte, at int, n uint64) int {
	if n < 1<<28 {
		w, more := uint32(n&0x7f|n<<1&0x7f00|n<<2&0x7f0000|n<<3&0x7f000000), (bits.Len32(uint32(n))-1)/7
		binary.LittleEndian.PutUint32(b[at:], w|0x808080>>(24-8*uint(more)))
		return at + more + 1
	}
	for ; n >= 0x80; n >>= 7 {
		b[at] = byte(n) | 0x80
		at++
	}
	b[at] = byte(n)
	return at + 1
}
