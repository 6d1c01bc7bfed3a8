package rerun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/span"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// What of a turn can be compared with that of another run, whose refs, seeds and times are others: actors count by their paths,
// and headers that carry deadlines or traces do not count.

// names are the names of a recording's actors by their refs: their paths, and a number for the second actor at a path.
type names map[abi.Ref]string

// namesOf reads them. left are the actors that are not recorded, or not to their end, or not exactly.
func namesOf(of *recorder.Recording) (n names, left map[string]bool, err error) {
	n, left = names{}, map[string]bool{}
	count, lives := map[string]int{}, map[uint64]abi.Ref{}
	for c := of.Cursor(); ; {
		x, err := c.Next()
		if err != nil || x == nil {
			return n, left, err
		}
		switch x.Kind {
		case recorder.None:
			left[localPath(x.Path)] = true
		case recorder.Left:
			left[n[lives[x.Life]]] = true
		case recorder.Entry:
			if x.Masked {
				left[n[lives[x.Life]]] = true
			}
		case recorder.Life:
			lives[x.Life] = x.Ref
			if _, known := n[x.Ref]; known {
				continue
			}
			path := pathOf(x.Incarnation)
			if count[path]++; count[path] > 1 {
				path = fmt.Sprintf("%s (%d)", path, count[path])
			}
			n[x.Ref] = path
		}
	}
}

// pathOf is an actor's path without scheme and system.
func pathOf(x *recorder.Incarnation) string { return localPath(x.Path) }

func localPath(path string) string {
	if _, rest, ok := strings.Cut(path, "://"); ok {
		if at := strings.IndexByte(rest, '/'); at >= 0 {
			return rest[at:]
		}
	}
	return path
}

// outside stands for all actors that are not recorded.
const outside = "outside"

func (n names) of(ref abi.Ref) string {
	if ref == 0 {
		return ""
	}
	if name, ok := n[ref]; ok {
		return name
	}
	return outside
}

// deed is a turn: what it took in, and what it has led to.
type deed struct {
	name        string // of the actor
	incarnation uint64
	turn        uint64
	in          abi.Envelope
	commands    []abi.Command // nil if it has failed
	failure     *abi.Failure
}

// deeds calls f with the turns of an entry, in order. What they have is valid until the next entry.
func (n names) deeds(h *happened, f func(*deed) bool) {
	d := deed{name: n[h.of.Ref], incarnation: h.of.Number, turn: h.first}
	rest := h.outcome.outbox
	for i := range h.outcome.done {
		d.in, d.commands = h.mail[i], d.commands[:0]
		for len(rest) > 0 {
			var c abi.Command
			k, err := abi.DecodeCommand(&c, rest)
			if err != nil {
				break // what a guest has written is read by whoever repeats it
			}
			rest = rest[k:]
			if c.Op == abi.OpEnd && h.batches {
				break
			}
			if c.Op != abi.OpEnd {
				d.commands = append(d.commands, c)
			}
		}
		if !f(&d) {
			return
		}
		d.turn++
	}
	if h.outcome.failure != nil && h.outcome.done < len(h.mail) {
		d.in, d.commands, d.failure = h.mail[h.outcome.done], nil, h.outcome.failure
		f(&d)
	}
}

// canon is a digest of what counts.
type canon struct{ b []byte }

func (c *canon) number(n uint64) { c.b = binary.LittleEndian.AppendUint64(c.b, n) }

func put[T string | []byte](c *canon, s T) {
	c.number(uint64(len(s)))
	c.b = append(c.b, s...)
}

func (c *canon) flag(b bool) {
	if b {
		c.b = append(c.b, 1)
	} else {
		c.b = append(c.b, 0)
	}
}

func (c *canon) sum() uint64 { return xxhash.Sum64(c.b) }

// headers are those that count.
func (c *canon) headers(h []byte) {
	for {
		key, value, rest, ok := abi.NextHeader(h)
		if !ok {
			return
		}
		switch string(key) {
		case abi.HeaderDeadline, span.HeaderParent, span.HeaderState:
		default:
			put(c, key)
			put(c, value)
		}
		h = rest
	}
}

// message is what counts of one. The number by which an actor outside knows its question does not.
func (n names) message(c *canon, e *abi.Envelope) {
	c.b = append(c.b[:0], byte(e.Kind))
	from := n.of(e.Sender)
	put(c, from)
	if from == outside && e.Kind == abi.KindMessage {
		c.flag(e.Correlation != 0)
	} else {
		c.number(e.Correlation)
	}
	c.headers(e.Headers)
	var s abi.Start
	if e.Kind != abi.KindStart || abi.DecodeStart(&s, e.Payload) != nil {
		put(c, e.Payload)
		return
	}
	for _, t := range []string{s.Type, n.of(s.Parent), s.Reason, s.Key, string(s.Args)} {
		put(c, t)
	}
	c.number(s.Spawned)
	c.number(s.Incarnation)
	c.flag(s.State != nil)
	for _, x := range s.Services {
		put(c, x.Name)
	}
}

// command is what counts of one.
func (n names) command(c *canon, x *abi.Command) {
	c.b = append(c.b[:0], byte(x.Op), x.Directive)
	put(c, n.of(x.ToRef))
	put(c, n.of(x.Ref))
	c.flag(x.ToPath != nil)
	if x.Flags&(abi.FlagReply|abi.FlagReplyError) != 0 {
		c.flag(x.Correlation != 0)
	} else {
		c.number(x.Correlation)
	}
	for _, k := range [...]uint64{x.Flags, x.Key, x.Delay, x.Period} {
		c.number(k)
	}
	for _, t := range [...][]byte{x.ToPath, x.Name, x.Type, x.Reason, x.Payload, x.Options} {
		put(c, t)
	}
	c.headers(x.Headers)
}

// mark is what is kept of a turn to compare it.
type mark struct {
	in, out uint64
	fuel    uint32 // of its entry, at the last turn of it
	frame   uint32 // how it was batched
	order   uint32 // among all turns of the recording, from 0; the last one for all further
}

func (n names) mark(d *deed, c *canon) (p mark) {
	n.message(c, &d.in)
	p.in = c.sum()
	if f := d.failure; f != nil {
		c.b = append(c.b[:0], 0xff, byte(f.Kind))
		put(c, f.Reason)
		p.out = c.sum()
		return p
	}
	for k := range d.commands {
		n.command(c, &d.commands[k])
		p.out = (p.out<<13 | p.out>>51) ^ c.sum() + uint64(k)
	}
	return p
}

// mostSaid bounds what is said of a message or a command, in bytes.
const mostSaid = 300

// payload is CBOR's diagnostic notation, or how many bytes it has.
func payload(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) <= 4*mostSaid {
		if s, err := cbor.Diagnose(b); err == nil {
			return " " + printable.Line(s, mostSaid)
		}
	}
	return fmt.Sprintf(" %d bytes", len(b))
}

func (n names) sayMessage(e *abi.Envelope) string {
	s := e.Kind.String()
	if from := n.of(e.Sender); from != "" {
		s += " from " + from
	}
	if e.Kind == abi.KindStart {
		return s
	}
	return s + payload(e.Payload)
}

func (n names) sayCommand(c *abi.Command) string {
	s := c.Op.String()
	switch {
	case c.ToPath != nil:
		s += " to " + printable.Line(string(c.ToPath), mostSaid)
	case c.ToRef != 0:
		s += " to " + n.of(c.ToRef)
	case c.Op == abi.OpSpawn:
		s += " " + printable.Line(string(c.Type), mostSaid)
	}
	if c.Op == abi.OpFail {
		return s + " " + printable.Line(string(c.Reason), mostSaid)
	}
	return s + payload(c.Payload)
}

// firstByte is the first byte in which two payloads differ; -1: they are equal.
func firstByte(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// keep is a copy that stays valid.
func (d *deed) keep() *deed {
	k := *d
	k.in.Headers, k.in.Payload = bytes.Clone(d.in.Headers), bytes.Clone(d.in.Payload)
	k.commands = slices.Clone(d.commands)
	for i := range k.commands {
		c := &k.commands[i]
		for _, b := range []*[]byte{&c.ToPath, &c.Name, &c.Type, &c.Reason, &c.Headers, &c.Payload, &c.Options} {
			*b = bytes.Clone(*b)
		}
	}
	return &k
}

// happened is an entry that was repeated. It is valid until the next one.
type happened struct {
	record  *recorder.Record
	of      *recorder.Incarnation
	batches bool
	first   uint64 // number of its first turn
	mail    []abi.Envelope
	outcome *outcome
}

func (r *run) happened(l *life, x *recorder.Record, first uint64, o *outcome) *happened {
	return &happened{x, &l.Incarnation, sandbox.Batching(r.images[l.image]), first, r.mail, o}
}
