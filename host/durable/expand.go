package durable

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/host/view"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wal"
)

// records reads the records of a log, in their order. A compact one cannot be read without those before it in its batch.
type records struct {
	shared
	inside bool // a batch, from its first record on
}

// next decodes the next record. What it returns shares nothing with r.
func (x *records) next(r *wal.Record) (any, error) {
	if r.First {
		x.begin()
		x.inside = true
	}
	if len(r.Data) == 0 || r.Data[0] < compact {
		return decode(r.Data)
	}
	if !x.inside {
		return nil, fmt.Errorf("%w: those before it in its batch are missing", ErrRecord)
	}
	p := &parser{rest: r.Data}
	v := p.record(&x.shared)
	if p.bad != "" {
		x.inside = false
		return nil, fmt.Errorf("%w: %s", ErrRecord, p.bad)
	}
	if why := wrong(v); why != "" {
		x.inside = false
		return nil, fmt.Errorf("%w: %s", ErrRecord, why)
	}
	return v, nil
}

// parser reads a compact record. After an error all is zero.
type parser struct {
	rest []byte
	bad  string // what is wrong
}

func (p *parser) fail(what string) {
	if p.bad == "" {
		p.bad = what
	}
	p.rest = nil
}

func (p *parser) byte() byte {
	if len(p.rest) == 0 {
		p.fail("it ends too early")
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *parser) uint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.fail("it has no number where one should be")
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) int() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.fail("it has no number where one should be")
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.fail("it ends too early")
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// data is a copy, nil if there is none.
func (p *parser) data() []byte { return clone(p.bytes(p.uint())) }

func (p *parser) string() string { return string(p.bytes(p.uint())) }

func (p *parser) ref() abi.Ref {
	if b := p.bytes(8); b != nil {
		return abi.Ref(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}

// record reads the whole record.
func (p *parser) record(c *shared) *record.Record {
	tag := p.byte()
	r := &record.Record{Kind: record.Kind(tag >> 4 & 7)}
	var at *place
	if tag&knownActor != 0 {
		if at = &c.known[p.byte()]; at.batch != c.batch {
			p.fail("it is about an actor that is not known")
		}
	} else {
		at, _, _ = c.placeOf(p.ref())
	}
	r.Actor, r.Time = at.ref, c.time+p.int()
	if c.time = r.Time; r.Kind == furtherKinds {
		if r.Kind = record.Kind(p.byte()); r.Kind < furtherKinds {
			p.fail("its kind is written as no such kind is")
		}
	}
	switch r.Kind {
	case record.Refused:
		r.Message = &record.Message{Kind: abi.Kind(p.byte()), Sender: p.ref(), Correlation: p.uint(), Payload: clone(p.bytes(4))}
	case record.Accepted:
		r.Message = p.message(c, at, tag)
	case record.Turned:
		r.Entry = p.entry(at, tag)
	case record.Began, record.Restarted, record.Ended, record.Changed:
		r.Life = &record.Life{Path: p.string(), Type: p.string(), Args: p.data(), Parent: p.ref(), Incarnation: p.uint(), Code: p.data()}
		r.Life.Limits, r.Life.Rules = p.limits()
	case record.Took:
		r.Signal = p.signal()
	case record.Exchanged:
		r.Exchange = p.exchange()
	case record.Decided:
		r.Decision = p.decision()
	default:
		p.fail(fmt.Sprintf("its kind is %d", r.Kind))
	}
	if p.bad == "" && len(p.rest) > 0 {
		p.fail("it has more bytes than it should")
	}
	return r
}

func (p *parser) message(c *shared, at *place, tag byte) *record.Message {
	m := &record.Message{Kind: abi.KindMessage}
	if m.Position = at.position + 1; tag&nextOne == 0 {
		m.Position = p.uint()
	}
	at.position = m.Position
	if tag&another != 0 {
		s := &c.known[p.byte()]
		if s.batch != c.batch || !s.sender {
			p.fail("its sender is not known")
		}
		m.Sender, m.SenderPath = s.ref, s.path
	}
	if tag&withMore != 0 {
		p.more(c, m, tag)
	}
	m.Payload = clone(p.bytes(uint64(len(p.rest))))
	return m
}

func (p *parser) more(c *shared, m *record.Message, tag byte) {
	more := p.byte()
	if more == 0 || more >= moreHeaders<<1 || more&moreSender != 0 && tag&another != 0 {
		p.fail("it has fields that no message has")
	}
	if more&moreKind != 0 {
		m.Kind = abi.Kind(p.byte())
	}
	if more&moreFlags != 0 {
		n := p.uint()
		if m.Flags = uint16(n); n > 1<<16-1 {
			p.fail("it has flags that no message has")
		}
	}
	if more&moreSender != 0 {
		m.Sender, m.SenderPath = p.ref(), p.string()
		s, _, _ := c.placeOf(m.Sender)
		s.path, s.sender = m.SenderPath, true
	}
	if more&moreCorrelation != 0 {
		m.Correlation = p.uint()
	}
	if more&moreDue != 0 {
		m.Due = c.time + p.int()
	}
	if more&moreHeaders != 0 {
		m.Headers = p.data()
	}
}

func (p *parser) entry(at *place, tag byte) *record.Entry {
	e := &record.Entry{Incarnation: at.incarnation, First: at.turn}
	if tag&nextOne == 0 {
		e.Incarnation, e.First = p.uint(), p.uint()
	}
	n := p.uint()
	if n > uint64(len(p.rest)) && (tag&another == 0 || n > mostCounted) {
		p.fail("it has more messages than can be")
		n = 0
	}
	if n > 0 {
		e.Mail = make([]uint64, n)
	}
	before := at.taken
	for i := range e.Mail {
		if before++; tag&another == 0 {
			before += uint64(p.int()) - 1
		}
		e.Mail[i] = before
	}
	at.taken = before
	e.Done = int(n)
	if tag&withMore != 0 {
		p.outcome(e)
	}
	at.incarnation, at.turn = e.Incarnation, e.First+uint64(e.Done)
	if e.Failure != nil {
		at.turn++
	}
	for len(p.rest) > 0 {
		n := p.uint()
		if n == 0 || n>>1 > uint64(len(p.rest)/4) || n&1 == 0 && n>>1*4 != uint64(len(p.rest)) {
			p.fail("it has more commands than bytes")
			break
		}
		for b := p.bytes(n >> 1 * 4); len(b) > 0; b = b[4:] {
			sum := binary.LittleEndian.Uint32(b)
			if sum == 0 {
				p.fail("a command without a checksum")
			}
			e.Outbox = append(e.Outbox, sum)
		}
		if n&1 != 0 {
			e.Outbox = append(e.Outbox, 0)
		}
	}
	return e
}

func (p *parser) outcome(e *record.Entry) {
	more := p.byte()
	if more == 0 || more >= moreSpend<<1 {
		p.fail("it has fields that no entry has")
	}
	if more&moreDone != 0 {
		n := p.uint()
		if e.Done = int(n); n > 1<<24 {
			p.fail("it has more turns than can be")
			e.Done = 0
		}
	}
	if more&moreEnded != 0 {
		e.Ended = record.Ending(p.byte())
	}
	if more&moreFailure != 0 {
		e.Failure = p.failure()
	}
	if more&moreCut != 0 {
		e.Cut = &record.Cut{Stage: sandbox.Stage(p.byte()), Phase: p.uint(), At: p.uint(), Kind: abi.FailureKind(p.byte()), Reason: p.string()}
	}
	if more&moreSpend != 0 {
		if e.Fuel, e.Memory = p.uint(), p.uint(); e.Fuel == 0 {
			p.fail("an entry without fuel")
		}
	}
}

// limits are nil if there is nothing left.
func (p *parser) limits() (*view.Limits, *record.Rules) {
	if len(p.rest) == 0 {
		return nil, nil
	}
	set, all := p.uint(), usualLimits
	if set >= withRules<<1 {
		p.fail("it has limits that are not known")
	}
	for i := range all {
		if set&(1<<i) != 0 {
			all[i] = p.uint()
		}
	}
	if set&withRules == 0 {
		return withLimits(&all), nil
	}
	return withLimits(&all), p.rules()
}

func (p *parser) signal() *record.Signal {
	x := &record.Signal{What: p.string(), From: p.ref(), Other: p.ref(), Correlation: p.uint()}
	how := p.uint()
	if x.How = uint16(how); how > 1<<16-1 {
		p.fail("it has flags that no signal has")
	}
	x.Directive, x.Delay, x.Reason, x.Position = p.byte(), p.int(), p.string(), p.uint()
	if len(p.rest) > 0 {
		x.Failure = p.failure()
	}
	return x
}

func (p *parser) failure() *abi.Failure {
	f := &abi.Failure{Kind: abi.FailureKind(p.byte()), Reason: p.string(), Message: p.string()}
	n := p.uint()
	if n > uint64(len(p.rest)) {
		p.fail("a failure with more lines than bytes")
		n = 0
	}
	for range n {
		f.Stack = append(f.Stack, p.string())
	}
	f.Turn, f.Fuel, f.GuestStack = p.uint(), p.uint(), p.string()
	return f
}
