package network

import (
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// marks are the flags of envelopes that mean something on another node.
var marks = [...]struct {
	flag uint16
	mark Marks
}{
	{mark.NoInfluence, NoInfluence}, {mark.Suppressed, Suppressed}, {mark.Lasting, Lasting}, {mark.Poison, Poison},
	{mark.Kill, Kill}, {mark.Identify, Identify}, {mark.Ours, OfHost}, {mark.ForGood, ForGood},
}

// Time says what time it is on a host, in nanoseconds since 1970.
type Time interface{ Now() int64 }

// Of is an envelope as it travels; t is its host's. The message shares the envelope's memory.
func Of(e *mailbox.Envelope, t Time) Message {
	m := Message{Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, SenderPath: e.SenderPath, Headers: e.Headers, Payload: e.Payload}
	for _, x := range marks {
		if e.Flags&x.flag != 0 {
			m.Marks |= x.mark
		}
	}
	if message.IsBound(e) {
		m.Marks |= Bound
	}
	if at := e.Attached; at != nil {
		m.Below, m.Via = at.Below, at.Via
	}
	if e.Flags&mark.Due != 0 { // its clock is another one
		m.Left = uint64(max(1, e.Due-t.Now()))
	}
	return m
}

// Envelope is a message that has arrived, in one of c, or if that is nil a new one; t is this host's. The envelope has memory
// of its own.
func (m *Message) Envelope(c *mailbox.Cache, t Time) *mailbox.Envelope {
	e := c.New()
	e.Kind, e.Sender, e.SenderPath, e.Correlation = m.Kind, m.Sender, m.SenderPath, m.Correlation
	e.SetHeaders(m.Headers)
	e.SetPayload(m.Payload)
	if m.Marks != 0 {
		for _, x := range marks {
			if m.Marks&x.mark != 0 {
				e.Flags |= x.flag
			}
		}
	}
	if m.Marks&Bound != 0 {
		e.Value = message.BoundMark{}
	}
	if m.Below != "" || m.Via != 0 {
		e.Attached = &mailbox.Attached{Below: m.Below, Via: m.Via}
	}
	if m.Left > 0 && m.Marks&Lasting == 0 {
		e.Flags |= mark.Due
		e.Due = t.Now() + int64(min(m.Left, 1<<62-1))
	}
	return e
}
