package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Recording is a file that was read. Its parts share the file's memory.
type Recording struct {
	Began  time.Time // the file
	Host   string    // its version
	Images []blackbox.Image
	// Ending is when the system has begun to stop its actors, ns since 1970; 0: that is not in the file. It may be before Began.
	Ending int64
	// Cut is the offset at which the file ends before its end; 0: it is whole. That is so where the process was killed, too.
	Cut int
	// Missing is why; nil: it is whole.
	Missing error

	lanes []lane
}

// lane is one of a recording: where its bytes are.
type lane struct {
	parts []part
	bytes uint64
}

type part struct {
	at int // in the file
	b  []byte
}

func fileError(at int, why string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrFile, at, fmt.Sprintf(why, args...))
}

// Read checks a file's blocks. A file that ends before its end is read up to there, see Cut; any other damage is an error, which
// wraps ErrFile and has the offset. Records are checked by a Cursor.
func Read(b []byte) (*Recording, error) {
	switch {
	case len(b) < len(magic)+1 || string(b[:len(magic)]) != magic:
		return nil, fileError(0, "it does not begin like one")
	case b[len(magic)] != version:
		return nil, fileError(len(magic), "it has version %d, this host reads version %d", b[len(magic)], version)
	case len(b) < headSize+sumSize:
		return nil, fileError(len(b), "it is cut off")
	}
	host := int(binary.LittleEndian.Uint32(b[headSize-4:]))
	if host > mostHost {
		return nil, fileError(headSize-4, "a text of %d bytes in its head", host)
	}
	end := headSize + host
	if len(b) < end+sumSize {
		return nil, fileError(len(b), "it is cut off")
	}
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, fileError(end, "the checksum of its head is wrong: it is damaged")
	}
	r := &Recording{Began: time.Unix(0, int64(binary.LittleEndian.Uint64(b[headSize-12:]))), Host: string(b[headSize:end])}
	if err := r.blocks(b, end+sumSize); err != nil {
		return nil, err
	}
	return r, nil
}

// blocks reads those from at on.
func (r *Recording) blocks(b []byte, at int) error {
	for {
		rest := b[at:]
		if len(rest) == 0 {
			r.Cut, r.Missing = at, fileError(at, "it has no end: it is cut off, or the process was killed")
			return nil
		}
		if len(rest) < blockHead || uint64(binary.LittleEndian.Uint32(rest[5:])) > uint64(len(rest)-blockHead) {
			if rest[0] < blockImage || rest[0] > blockEnding {
				return fileError(at, "a block of kind %d", rest[0])
			}
			r.Cut, r.Missing = len(b), fileError(len(b), "it is cut off within the block at byte %d", at)
			return nil
		}
		kind, rel, n := rest[0], binary.LittleEndian.Uint32(rest[1:]), int(binary.LittleEndian.Uint32(rest[5:]))
		body := rest[blockHead : blockHead+n : blockHead+n]
		if crc32.Update(crc32.Checksum(rest[:9], castagnoli), castagnoli, body) != binary.LittleEndian.Uint32(rest[9:]) {
			return fileError(at, "the checksum of a block of %d bytes is wrong: it is damaged", n)
		}
		at += blockHead
		switch kind {
		case blockImage:
			i, wrong, err := blackbox.ReadImage(body)
			if err != nil {
				return fileError(at+wrong, "an image: %v", err)
			}
			r.Images = append(r.Images, i)
		case blockLane:
			if int(rel) >= max(fewLanes, len(b)/laneCost) {
				return fileError(at-blockHead+1, "lane %d in a file of %d bytes", rel, len(b))
			}
			if n := int(rel) + 1 - len(r.lanes); n > 0 {
				r.lanes = append(r.lanes, make([]lane, n)...)
			}
			l := &r.lanes[rel]
			l.parts = append(l.parts, part{at, body})
			l.bytes += uint64(n)
		case blockEnding:
			if len(body) != 8 || r.Ending != 0 {
				return fileError(at-blockHead, "the system begins to stop twice, or at a time of %d bytes", len(body))
			}
			r.Ending = int64(binary.LittleEndian.Uint64(body))
		case blockEnd:
			return r.ends(b, at, body)
		default:
			return fileError(at-blockHead, "a block of kind %d", kind)
		}
		at += n
	}
}

// A file of n bytes has n/laneCost lanes at most, which is about what the reader needs for one, or a few.
const (
	laneCost = 256
	fewLanes = 1024
)

// ends checks the last block.
func (r *Recording) ends(b []byte, at int, body []byte) error {
	x := reader{b: body}
	for n := 0; x.at < len(body); n++ {
		from := x.at
		want, have := x.number(), uint64(0)
		if n < len(r.lanes) {
			have = r.lanes[n].bytes
		}
		if x.err != nil || want != have {
			return fileError(at+from, "lane %d has %d bytes, %d are announced", n, have, want)
		}
	}
	if at+len(body) != len(b) {
		return fileError(at+len(body), "%d bytes follow its end", len(b)-at-len(body))
	}
	return nil
}

// Bytes is how many bytes the records have.
func (r *Recording) Bytes() (n uint64) {
	for i := range r.lanes {
		n += r.lanes[i].bytes
	}
	return n
}

// Place names a record.
type Place struct {
	Lane   uint32
	Number uint32
}

// Message is one that was handed to a guest.
type Message struct {
	// Sent says that From and Command are the entry that has sent it, and the command among those of the entry. Otherwise the
	// message is in Envelope. The headers are there in any case: those of the command do not count.
	Sent     bool
	From     Place
	Command  int
	Envelope abi.Envelope
}

// Record is one of a recording.
type Record struct {
	Kind Kind
	At   Place
	Life uint64 // its number in the file
	*Incarnation
	Image int // of a Life

	Now int64 // of an Entry or End, ns since 1970

	// Of an Entry.
	Pushed  int // messages
	Done    int
	Failed  bool
	Failure abi.Failure // kind, reason and fuel
	Ended   bool
	Judged  bool
	Rewound bool
	Masked  bool // known secrets were masked, here or before: what comes out is not that
	Cut     *sandbox.Cut
	Sum     uint32 // 24 bits of the chain behind it

	Chain Chain  // of an End
	Path  string // of None
	Why   string // of Left and None

	offset int
	before uint64 // records of its life; counts if moved
	moved  bool
	one    Message // of a turn, or the one that Mail is about
	mail   []byte  // of an entry
}

// Mail calls f with the messages that were handed to the guest, in order, until it returns false. Each is valid until f returns.
func (r *Record) Mail(f func(*Message) bool) {
	if r.mail == nil {
		f(&r.one)
		return
	}
	x := reader{b: r.mail}
	for range r.Pushed {
		if x.message(&r.one, r.At); x.err != nil || !f(&r.one) {
			return
		}
	}
}

// Differs reports whether the chain behind an entry is another one. That of a masked one is not known.
func (r *Record) Differs(c Chain) bool { return !r.Masked && r.Sum != c.short() }

// Played is how many turns an entry has, a failed one included.
func (r *Record) Played() int {
	if r.Failed {
		return r.Done + 1
	}
	return r.Done
}

// Offset is where in the file the record is.
func (r *Record) Offset() int { return r.offset }

// known is what a cursor knows of a life.
type known struct {
	records uint64
	over    bool
}

// head is the first record of a lane that is not passed yet.
type head struct {
	r      reader
	part   int
	number uint64
	time   int64
	seen   map[uint64]uint64
	next   Record
	read   bool // next is there
	done   bool
}

// Cursor goes through the records in an order that fits all lanes. It is the same every time.
type Cursor struct {
	of    *Recording
	heads []head
	lives map[uint64]*known
	turn  int // the lane that is tried first
	until int64
	late  bool // an entry or an end was held back because it is later
	err   error
}

// Cursor begins before the first record.
func (r *Recording) Cursor() *Cursor {
	c := &Cursor{of: r, heads: make([]head, len(r.lanes)), lives: map[uint64]*known{}}
	return c
}

// Until holds back all entries and ends that are later than a time, ns since 1970, and what follows them, until it is called again; 0:
// none. When Next has returned nil, all records of all lanes that do not follow a later entry are passed: which ones does not
// depend on the times that were set before.
func (c *Cursor) Until(now int64) { c.until = now }

// Next is the next record, which is valid until the call after it; nil: there is none, or only such that Until holds back.
func (c *Cursor) Next() (*Record, error) {
	if c.err != nil {
		return nil, c.err
	}
	left := 0
	c.late = false
	for range c.heads {
		h := &c.heads[c.turn]
		if !h.read && !h.done {
			if err := c.read(h); err != nil {
				c.err = err
				return nil, err
			}
		}
		if h.read {
			if c.fits(&h.next) {
				return c.pass(h)
			}
			left++
		}
		c.turn = (c.turn + 1) % len(c.heads)
	}
	if left > 0 && c.of.Missing == nil && !c.late {
		for i := range c.heads {
			if h := &c.heads[i]; h.read {
				c.err = fileError(h.next.offset, "a record follows one that is not there")
				return nil, c.err
			}
		}
	}
	return nil, nil
}

// Late reports whether the last call of Next has held back an entry or an end because of Until.
func (c *Cursor) Late() bool { return c.late }

// fits reports whether all is passed that comes before a record.
func (c *Cursor) fits(x *Record) bool {
	if x.moved {
		if l := c.lives[x.Life]; l == nil || l.records != x.before {
			return false
		}
	}
	if (x.Kind == Entry || x.Kind == End) && c.until != 0 && x.Now > c.until {
		c.late = true
		return false
	}
	if x.Kind != Entry {
		return true
	}
	m := &x.one
	r := reader{b: x.mail}
	for range x.Pushed {
		if x.mail != nil {
			r.message(m, x.At)
		}
		if m.Sent && m.From.Lane != x.At.Lane && (int(m.From.Lane) >= len(c.heads) || uint64(m.From.Number) >= c.heads[m.From.Lane].number) {
			return false
		}
	}
	return true
}

// pass is the record of a head, which is the next one.
func (c *Cursor) pass(h *head) (*Record, error) {
	x := &h.next
	h.read = false
	h.number++
	wrong := ""
	switch l := c.lives[x.Life]; {
	case x.Kind == None:
	case x.Kind == Life && l != nil:
		wrong = "an incarnation begins that has begun before"
	case x.Kind == Life && x.Image >= len(c.of.Images):
		wrong = fmt.Sprintf("an incarnation of image %d of %d", x.Image, len(c.of.Images))
	case x.Kind == Life:
		c.lives[x.Life] = &known{records: 1}
	case l == nil:
		wrong = "a record of an incarnation that has not begun"
	case l.over:
		wrong = "a record of an incarnation that is over"
	default:
		l.records++
		l.over = x.Kind == End || x.Kind == Left
	}
	if wrong != "" {
		c.err = fileError(x.offset, "%s", wrong)
		return nil, c.err
	}
	return x, nil
}

// read reads the next record of a lane.
func (c *Cursor) read(h *head) error {
	rel := uint32(c.turn)
	parts := c.of.lanes[rel].parts
	for h.r.at == len(h.r.b) {
		if h.part == len(parts) {
			h.done = true
			return nil
		}
		h.r = reader{b: parts[h.part].b}
		h.part++
	}
	if h.number > mostRecord {
		return fileError(parts[h.part-1].at, "too many records")
	}
	from := h.r.at
	h.next = Record{At: Place{rel, uint32(h.number)}, offset: parts[h.part-1].at + from}
	c.record(h)
	if h.r.err != nil {
		return fileError(parts[h.part-1].at+h.r.at, "%v", h.r.err)
	}
	h.read = true
	return nil
}

func (c *Cursor) record(h *head) {
	r, x := &h.r, &h.next
	tag := r.byte()
	kind := Kind(tag & kindBits)
	if x.Kind = kind; kind == turn {
		x.Kind = Entry
	}
	allowed := byte(tagMoved)
	switch kind {
	case Life:
		allowed = tagSnapshot
	case turn:
		allowed |= tagOwn | tagFirst
	case None:
		allowed = 0
	}
	if kind < Life || kind > None || tag&^(allowed|kindBits) != 0 {
		r.at--
		r.fail("a record with the tag %#x", tag)
		return
	}
	if kind == None {
		x.Path, x.Why = r.text(), r.text()
		return
	}
	x.Life = r.number()
	flags := byte(0)
	if kind == Entry {
		flags = r.byte()
	}
	if x.moved = tag&tagMoved != 0; x.moved {
		x.before = r.number()
	}
	switch kind {
	case Life:
		n := r.number()
		if r.err == nil && n >= uint64(len(c.of.Images)) {
			r.fail("an incarnation of image %d of %d", n, len(c.of.Images))
		}
		x.Image, x.Incarnation = int(n), &Incarnation{}
		r.incarnation(x.Incarnation, tag&tagSnapshot != 0)
	case turn:
		h.time += unzigzag(r.number())
		x.Now, x.Pushed, x.Done = h.time, 1, 1
		m := &x.one
		if m.Sent = true; tag&tagOwn != 0 {
			r.own(m, x.At)
		} else {
			c.other(h, m)
		}
		if tag&tagFirst == 0 {
			m.Command = r.command()
		}
		x.Sum = r.sum()
	case Entry:
		c.entry(h, flags)
	case End:
		h.time += unzigzag(r.number())
		x.Now, x.Chain = h.time, Chain(r.fixed())
	case Left:
		x.Why = r.text()
	}
}

func (c *Cursor) entry(h *head, flags byte) {
	r, x := &h.r, &h.next
	if flags&^(flagFailed|flagEnded|flagCut|flagJudged|flagRewound|flagMasked) != 0 {
		r.fail("unknown flags %#x", flags)
		return
	}
	x.Failed, x.Ended, x.Judged = flags&flagFailed != 0, flags&flagEnded != 0, flags&flagJudged != 0
	x.Rewound, x.Masked = flags&flagRewound != 0, flags&flagMasked != 0
	h.time += unzigzag(r.number())
	x.Now = h.time
	pushed, done := r.number(), r.number()
	if r.err == nil && (pushed == 0 || done > pushed || pushed > uint64(len(r.b)-r.at) || x.Failed && done == pushed || !x.Failed && done == 0) {
		r.fail("an entry of %d messages and %d turns", pushed, done)
	}
	if x.Done = int(done); x.Failed {
		x.Failure = abi.Failure{Kind: abi.FailureKind(r.byte()), Fuel: r.number(), Reason: r.text()}
	}
	if flags&flagCut != 0 {
		x.Cut = r.cut()
	}
	x.Sum = r.sum()
	from := r.at
	var m Message
	for range pushed {
		if r.message(&m, x.At); r.err != nil {
			return
		}
	}
	x.Pushed, x.mail = int(pushed), r.b[from:r.at:r.at]
}

// message reads one of an entry.
func (r *reader) message(m *Message, at Place) {
	*m = Message{}
	flags := r.byte()
	switch {
	case r.err == nil && flags&^(mailInline|mailOwn|mailHeaders) != 0 || flags&mailInline != 0 && flags&mailOwn != 0:
		r.fail("a message with the flags %#x", flags)
	case flags&mailInline != 0:
		kind := r.byte()
		m.Envelope = abi.Envelope{Kind: abi.Kind(kind), Sender: abi.Ref(r.fixed()), Correlation: r.number(), Payload: r.bytes()}
		if r.err == nil && m.Envelope.Kind > abi.KindRecover {
			r.fail("a message of kind %d", kind)
		}
	case flags&mailOwn != 0:
		m.Sent = true
		r.own(m, at)
		m.Command = r.command()
	default:
		m.Sent = true
		lane, n := r.number(), r.number()
		if r.err == nil && (lane > mostLane || n > mostRecord || uint32(lane) == at.Lane) {
			r.fail("a message from record %d of lane %d", n, lane)
		}
		m.From = Place{uint32(lane), uint32(n)}
		m.Command = r.command()
	}
	if flags&mailHeaders != 0 {
		m.Envelope.Headers = r.bytes()
	}
}

// own reads which entry of its own lane has sent a message.
func (r *reader) own(m *Message, at Place) {
	back := r.number()
	if r.err == nil && (back == 0 || back > uint64(at.Number)) {
		r.fail("a message from %d records before record %d", back, at.Number)
	}
	m.From = Place{at.Lane, at.Number - uint32(back)}
}

// other reads which entry of another lane has sent the message of a turn.
func (c *Cursor) other(h *head, m *Message) {
	r := &h.r
	lane, delta := r.number(), r.number()
	if r.err == nil && (lane > mostLane || uint32(lane) == h.next.At.Lane) {
		r.fail("a message from lane %d", lane)
	}
	n := h.seen[lane] + uint64(unzigzag(delta))
	if r.err == nil && n > mostRecord {
		r.fail("a message from record %d of lane %d", n, lane)
	}
	if r.err != nil {
		return
	}
	if h.seen == nil {
		h.seen = map[uint64]uint64{}
	}
	h.seen[lane] = n
	m.From = Place{uint32(lane), uint32(n)}
}

// reader reads a part. After the first error it reads nothing.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(why string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(why, args...)
	}
}

var errShort = errors.New("a record is cut off")

func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.b)-r.at) {
		r.err = errShort
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

func (r *reader) command() int {
	n := r.number()
	if n >= MostCommands {
		r.fail("command %d of an entry", n)
		return 0
	}
	return int(n)
}

func (r *reader) sum() uint32 {
	if b := r.take(3); b != nil {
		return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	}
	return 0
}

func (r *reader) bytes() []byte { return r.take(r.number()) }

func (r *reader) text() string { return string(r.bytes()) }
