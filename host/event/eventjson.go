package event

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/internal/plainjson"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// MarshalJSON implements json.Marshaler: an event as an object in one line, the same
// wherever events are shown. Texts of guests are unchanged except for control
// characters, which are escaped: the line is safe for a terminal.
func (e Event) MarshalJSON() ([]byte, error) {
	j := eventJSON{Time: e.Time, Event: e.Kind.String(), ID: e.ID, Type: e.Type, Incarnation: e.Incarnation, Failures: e.Failures, Note: e.Note, Text: e.Text}
	if !e.Ref.IsZero() {
		j.Actor, j.Ref = e.Ref.Path(), e.Ref.String()
	}
	if f := e.Failure; f != nil {
		j.Failure = &failureJSON{f.Kind.String(), f.Reason, f.Message, f.Stack, f.GuestStack, f.Turn, f.Fuel}
	}
	if e.Kind == Failed {
		ms := float64(e.Delay) / float64(time.Millisecond)
		j.Directive, j.DelayMS = e.Directive.String(), &ms
	}
	if m := e.Mail; m != nil {
		j.Message = &mailJSON{Kind: m.Kind.String(), Sender: uint64(m.Sender), Bytes: m.Size, Redelivered: m.Redelivered}
		if payload, err := plainjson.FromCBOR(m.Payload); err == nil && m.Size == len(m.Payload) {
			j.Message.Payload = payload
		}
		j.Memory, j.Waiting, j.File = m.Memory, &m.Waiting, m.File
	}
	if t := e.Trace; t != nil {
		j.TraceID, j.SpanID = hex.EncodeToString(t.TraceID[:]), hex.EncodeToString(t.SpanID[:])
	}
	if e.Kind == Log {
		j.Level = LevelName(e.Level)
	}
	if d := e.Dead; d != nil {
		j.From = d.From
		j.Key = d.Key
		j.MessageType = d.Type
		j.Reason, j.To, j.Bytes = d.Reason.String(), d.To(), d.Size
	}
	if r := e.Refused; r != nil {
		j.Refused = &refusalJSON{r.What, r.Type, r.Name, r.Reason}
		j.Key = r.Key
	}
	text, err := json.Marshal(j)
	return printable.JSON(text), err
}

// To is the receiver of the message: a path, or else the number of its ref.
func (d *DeadLetter) To() string {
	if d.Path != "" {
		return d.Path
	}
	return fmt.Sprint(uint64(d.Recipient))
}

type eventJSON struct {
	Time        time.Time    `json:"time"`
	Event       string       `json:"event"`
	ID          string       `json:"id,omitempty"` // of a crash report
	Actor       string       `json:"actor,omitempty"`
	Ref         string       `json:"ref,omitempty"`
	Type        string       `json:"type,omitempty"`
	MessageType string       `json:"message_type,omitempty"` // of a dead letter, or of what was not handled
	Incarnation uint64       `json:"incarnation"`
	Failure     *failureJSON `json:"failure,omitempty"`
	Directive   string       `json:"directive,omitempty"`
	DelayMS     *float64     `json:"delay_ms,omitempty"`
	Failures    int          `json:"failures,omitempty"`
	Note        string       `json:"note,omitempty"`
	Level       string       `json:"level,omitempty"`
	Text        string       `json:"text,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	From        string       `json:"from,omitempty"`
	To          string       `json:"to,omitempty"`
	Bytes       int          `json:"bytes,omitempty"`
	Message     *mailJSON    `json:"message,omitempty"`
	Memory      uint64       `json:"memory,omitempty"`
	Waiting     *int         `json:"waiting,omitempty"`
	File        string       `json:"file,omitempty"` // crash file, for wasmactors replay
	Refused     *refusalJSON `json:"refused,omitempty"`
	Key         string       `json:"key,omitempty"` // that raises the bound
	TraceID     string       `json:"trace_id,omitempty"`
	SpanID      string       `json:"span_id,omitempty"`
}

type refusalJSON struct {
	What   string `json:"what"`
	Type   string `json:"type,omitempty"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

type mailJSON struct {
	Kind        string          `json:"kind"`
	Sender      uint64          `json:"sender,omitempty"`
	Bytes       int             `json:"bytes"`
	Payload     json.RawMessage `json:"payload,omitempty"` // if it is whole, and fits JSON
	Redelivered int             `json:"redelivered,omitempty"`
}

type failureJSON struct {
	Kind       string   `json:"kind"`
	Reason     string   `json:"reason,omitempty"`
	Message    string   `json:"message,omitempty"`
	Stack      []string `json:"stack,omitempty"`
	GuestStack string   `json:"guest_stack,omitempty"`
	Turn       uint64   `json:"turn"`
	Fuel       uint64   `json:"fuel"`
}
