package saved

import (
	"bytes"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/mark"
	"github.com/wasmactors/wasmactors/host/internal/message"
	"github.com/wasmactors/wasmactors/host/internal/stash"
	"github.com/wasmactors/wasmactors/host/internal/work"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// MailOf is an envelope as a snapshot has it. Whether it is Current is for the caller to find out.
func MailOf(e *mailbox.Envelope) Mail {
	m := Mail{
		Kind: e.Kind, Flags: e.Flags, Sender: e.Sender, SenderPath: e.SenderPath, Correlation: e.Correlation,
		Headers: bytes.Clone(e.Headers), Payload: bytes.Clone(e.Payload), Due: e.Due, Position: e.Position,
	}
	switch v := e.Value.(type) {
	case stash.Stashed:
		if m.Mark, m.Incarnation, m.Text = Stashed, v.Incarnation, v.Path; v.Lasting {
			m.Mark = Lasting
		}
	case work.EndedPath:
		m.Mark, m.Text = EndedPath, string(v)
	case message.Attempts:
		m.Attempts = v.N
	}
	return m
}

// Envelope is the inverse of MailOf. Who has asked from Go has gone.
func (m *Mail) Envelope() *mailbox.Envelope {
	e := mailbox.New()
	e.Kind, e.Flags, e.Sender, e.SenderPath, e.Correlation, e.Due, e.Position = m.Kind, m.Flags&^mark.Promised, m.Sender, m.SenderPath, m.Correlation, m.Due, m.Position
	e.SetHeaders(m.Headers)
	e.SetPayload(m.Payload)
	switch {
	case m.Mark == Stashed, m.Mark == Lasting:
		e.Value = stash.Stashed{Incarnation: m.Incarnation, Lasting: m.Mark == Lasting, Path: m.Text}
	case m.Mark == EndedPath:
		e.Value = work.EndedPath(m.Text)
	case m.Attempts > 0:
		e.Value = message.Attempts{N: m.Attempts}
	}
	return e
}

// wrong says why m is no envelope that an actor can have.
func (m *Mail) wrong() string {
	switch m.Kind {
	case abi.KindMessage, abi.KindReply, abi.KindReplyError, abi.KindTimer, abi.KindAskTimeout, abi.KindReceiveTimeout, abi.KindTerminated, abi.KindSpawnFailed:
	default:
		return "of a kind that is not stored"
	}
	if m.Mark > EndedPath || m.Attempts < 0 || m.Attempts > message.MaxRedeliveries {
		return "marked as none can be"
	}
	return ""
}
