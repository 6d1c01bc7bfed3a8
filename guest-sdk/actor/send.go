package actor

import (
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
)

// send appends a send to a ref. This is the path of nearly all messages: it is one function,
// since a call costs as much as twenty loads, and writes the head in place, with the payload
// behind it.
func (c *Context) send(to Ref, correlation, flags uint64, v Encoder) {
	if mem.ctx.written+usualHead >= OutboxSize {
		flush()
	}
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(outbox)), mem.ctx.written)
	*(*uint32)(p) = 0x86 | uint32(abi.OpSend)<<8 | 0x1b<<16 // array of 6; the ref in eight bytes
	store8(p, 3, uint64(to))
	at := uintptr(11)
	if to>>32 == 0 {
		if to == 0 {
			c.nobody("a message")
			return
		}
		at = putUint(p, 2, uint64(to))
	}
	*byteAt(p, at) = byte(correlation)
	at++
	if correlation >= 24 {
		at = putUint(p, at-1, correlation)
	}
	*(*uint16)(unsafe.Add(p, at)) = 0xf600 | uint16(flags) // and no headers
	at += 2
	if raw, ok := v.(Raw); ok && len(raw) >= 4 && len(raw) < 256 && mem.ctx.written+usualHead+len(raw) < OutboxSize {
		from, n := unsafe.Pointer(unsafe.SliceData(raw)), uintptr(len(raw))
		if n < 24 {
			*byteAt(p, at) = 0x40 | byte(n)
			at++
		} else {
			*(*uint16)(unsafe.Add(p, at)) = 0x58 | uint16(n)<<8
			at += 2
		}
		to := unsafe.Add(p, at)
		mem.ctx.written += int(at + n)
		switch {
		case n < 8: // in words, of which the last may lie over the one before
			*(*uint32)(to) = *(*uint32)(from)
			*(*uint32)(unsafe.Add(to, n-4)) = *(*uint32)(unsafe.Add(from, n-4))
		case n <= 64:
			for i := uintptr(0); i+8 < n; i += 8 {
				*(*uint64)(unsafe.Add(to, i)) = *(*uint64)(unsafe.Add(from, i))
			}
			*(*uint64)(unsafe.Add(to, n-8)) = *(*uint64)(unsafe.Add(from, n-8))
		default:
			copy(bytesAt(to, int(n), 0), raw)
		}
		return
	}
	c.body(int(at), v)
}

// body appends a payload to a head of n bytes, which is at the end of the outbox.
func (c *Context) body(head int, v Encoder) {
	// Most actors send payloads of about one size: the room left for the length is what the
	// last one has taken.
	room := int(c.length)
	if room >= lengthLarge {
		c.largeBody(head, v)
		return
	}
	start := mem.ctx.written + head + room
	c.payload.Reset(outbox[start:start:OutboxSize])
	encode(v, &c.payload)
	b := c.payload.Bytes()
	n := len(b)
	if n > 0 && unsafe.SliceData(b) == (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(outbox)), start)) {
		switch p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(outbox)), start-room); {
		case n < 24 && room == 1:
			*(*byte)(p) = 0x40 | byte(n)
			mem.ctx.written = start + n
			return
		case n >= 24 && n < 256 && room == 2:
			*(*uint16)(p) = 0x58 | uint16(n)<<8
			mem.ctx.written = start + n
			return
		}
	}
	c.length = 1
	if n >= 24 {
		c.length = 2
	}
	c.longBody(head, b)
}

// longBody makes room for a longer length before a payload that stands in the outbox, or
// outside of it, if it has grown beyond.
func (c *Context) longBody(head int, b []byte) {
	var length [9]byte
	size := abi.AppendBytesHead(length[:0], len(b))
	need := head + len(size) + len(b)
	if mem.ctx.written+need >= OutboxSize { // nothing of this command has been flushed
		if need >= OutboxSize {
			c.length = lengthLarge
			if cap(c.bulk) < cap(b) {
				c.bulk = b[:0]
			}
		}
		if start := mem.ctx.written + head; within(outbox[start:], b) {
			b = append([]byte(nil), b...) // the length would lie over it
		}
		c.writeBody(head, b)
		return
	}
	copy(outbox[mem.ctx.written+head+len(size):], b)
	copy(outbox[mem.ctx.written+head:], size)
	mem.ctx.written += need
}

// encode calls v's MarshalCBOR without making v, or what it points at, escape to the heap: so
// MarshalCBOR must not retain v.
func encode(v Encoder, w *abi.Writer) {
	if v == nil {
		w.Null()
		return
	}
	from := w.Len()
	unescaped(v).MarshalCBOR(w)
	verify(unescaped(v), w.Bytes()[from:])
}

// Encode calls v's MarshalCBOR, as Tell does: v need not be allocated for it. nil is null.
func Encode(w *abi.Writer, v Encoder) { encode(v, w) }

// encoded is the encoding of v outside of the outbox, valid until the next call.
func (c *Context) encoded(v Encoder) []byte {
	c.payload.Reset(c.scratch[:0])
	encode(v, &c.payload)
	c.scratch = c.payload.Bytes()
	return c.scratch
}

// Tell sends a message.
func (c *Context) Tell(to Ref, v Encoder) { c.send(to, 0, 0, v) }

// Header is one of a message's headers: abi.MaxHeaders at most, with keys of abi.MaxHeaderKey
// bytes and values of abi.MaxHeaderValue. More than that fails the turn.
type Header struct{ Key, Value string }

// Suppressed is a header for a message that may well get lost: ctx.TellWith(ref, v, actor.Suppressed). If it is not
// delivered the host neither keeps nor logs it as a dead letter, and its event is a suppressed one.
var Suppressed = Header{abi.HeaderSuppressed, "1"}

// TellWith sends a message with headers. The receiver's mailbox may use them, and the
// receiver reads them with Message.Header.
func (c *Context) TellWith(to Ref, v Encoder, headers ...Header) {
	if to == 0 {
		c.nobody("a message")
		return
	}
	c.tellWith(to, "", v, headers)
}

// TellPathWith is TellWith to a path; see TellPath.
func (c *Context) TellPathWith(path string, v Encoder, headers ...Header) {
	if path == "" {
		c.nowhere("TellPath")
		return
	}
	c.tellWith(0, path, v, headers)
}

func (c *Context) tellWith(to Ref, path string, v Encoder, headers []Header) {
	p := c.encoded(v)
	c.head(headers)
	wrote(abi.AppendSend(appendix(usualHead+len(path)+len(c.heads)+len(p)), to, path, 0, 0, c.heads, p))
}

// head writes headers down for the command that comes next.
func (c *Context) head(headers []Header) {
	c.heads = c.heads[:0]
	for _, h := range headers {
		c.heads = abi.AppendHeader(c.heads, h.Key, h.Value)
	}
}

// TellPath sends a message to the actor that has the path at delivery: "/user/a", or
// "./name" for a child. Other paths than children's need the capability send.
func (c *Context) TellPath(path string, v Encoder) {
	if path == "" {
		c.nowhere("TellPath")
		return
	}
	p := c.encoded(v)
	wrote(abi.AppendSend(appendix(usualHead+len(path)+len(p)), 0, path, 0, 0, nil, p))
}

// Reply answers the current message. It always returns nil, so that `return ctx.Reply(v)` reads
// well. Without a sender it does nothing.
func (c *Context) Reply(v Encoder) error {
	if c.msg.sender != 0 {
		c.send(c.msg.sender, c.msg.correlation, abi.FlagReply, v)
	}
	return nil
}

// ReplyError answers the current message with an error.
func (c *Context) ReplyError(reason string) error {
	return c.AnswerError(c.msg.sender, c.msg.correlation, reason)
}

// Answer replies to an earlier message, whose Sender and Correlation were kept.
func (c *Context) Answer(to Ref, correlation uint64, v Encoder) error {
	if to != 0 {
		c.send(to, correlation, abi.FlagReply, v)
	}
	return nil
}

// AnswerError is Answer with an error.
func (c *Context) AnswerError(to Ref, correlation uint64, reason string) error {
	if to != 0 {
		c.send(to, correlation, abi.FlagReplyError, Text(reason))
	}
	return nil
}

// Forward sends the current message on with its original sender, who gets the
// answer.
func (c *Context) Forward(to Ref) {
	if to == 0 {
		c.nobody("Forward")
		return
	}
	wrote(abi.AppendForward(appendix(usualHead), to, ""))
}

// ForwardPath is Forward to a path; see TellPath.
func (c *Context) ForwardPath(path string) {
	if path == "" {
		c.nowhere("ForwardPath")
		return
	}
	wrote(abi.AppendForward(appendix(usualHead+len(path)), 0, path))
}
