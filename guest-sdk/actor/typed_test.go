//go:build !wasip1

package actor

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// paid is a message in its second version; sold is the first.
type paid struct{ Cents int64 }

func (p *paid) MarshalCBOR(w *abi.Writer)   { w.Int(p.Cents) }
func (p *paid) UnmarshalCBOR(r *abi.Reader) { p.Cents = r.Int() }
func (*paid) MessageType() string           { return "paid@2" }
func (p *paid) UnmarshalVersion(r *abi.Reader, version uint16) {
	if version != 1 {
		r.Fail(abi.ErrMessageType)
		return
	}
	p.Cents = 100 * r.Int()
}

// A typed ref costs no allocation a message, with a type in the header and without.
func TestTypedRefsDoNotAllocate(t *testing.T) {
	makeMemory()
	var c Context
	m, text := &paid{7}, Text("seven")
	typed, plain, any := To[*paid](1<<40), To[Text](1<<40), To[Encoder](1<<40)
	tell := func() {
		ctx.written = 0
		typed.Tell(&c, m)
		any.Tell(&c, m)
		plain.Tell(&c, text)
	}
	tell() // the scratch buffers grow
	if n := testing.AllocsPerRun(100, tell); n != 0 {
		t.Errorf("%v allocations", n)
	}
	ctx.written = 0
}

// inEnvelope has a message as the host delivers it.
func inEnvelope(t *testing.T, kind abi.Kind, typ string, payload []byte) *Message {
	t.Helper()
	makeMemory()
	e := abi.Envelope{Kind: kind, Time: 1 << 40, Sender: 1 << 40, Payload: payload}
	if typ != "" {
		e.Headers = abi.AppendHeader(abi.AppendHeader(nil, "a", "b"), abi.HeaderType, typ)
	}
	n := len(abi.AppendEnvelope(inbox[:0], &e))
	m := new(Message)
	if got := m.read(0, n); got != n {
		t.Fatalf("read %d of %d", got, n)
	}
	return m
}

// The header says what a message is; older versions are made into the present one, and others are refused.
func TestTypesOfMessages(t *testing.T) {
	w := abi.NewWriter(nil)
	w.Int(7)
	for _, c := range []struct {
		typ  string
		want int64
		err  error
	}{
		{"", 7, nil},
		{"paid@2", 7, nil},
		{"paid@1", 700, nil},
		{"paid@3", 0, abi.ErrMessageType},
		{"sold@2", 0, abi.ErrMessageType},
		{"paid", 7, nil}, // no version: as if it said nothing
	} {
		m := inEnvelope(t, KindMessage, c.typ, w.Bytes())
		var p paid
		if err := m.DecodeTyped(&p); !errors.Is(err, c.err) || p.Cents != c.want {
			t.Errorf("%s: %d, %v", c.typ, p.Cents, err)
		}
		name, version, ok := m.Type()
		if valid := len(c.typ) == 6; ok != valid || valid && (name != c.typ[:4] || version != uint16(c.typ[5]-'0')) {
			t.Errorf("%s: %s %d %v", c.typ, name, version, ok)
		}
		var n Int
		if err := m.DecodeTyped(&n); err != nil || n != 7 {
			t.Errorf("%s: what has no type reads anything: %v", c.typ, err)
		}
	}
	if _, _, ok := inEnvelope(t, KindReply, "paid@2", w.Bytes()).Type(); ok {
		t.Error("an answer is not a message to dispatch")
	}
	if n := testing.AllocsPerRun(100, func() {
		m := &ctx.msg
		if _, _, ok := m.Type(); ok {
			t.Error("there is a type")
		}
	}); n != 0 {
		t.Errorf("looking for the type: %v allocations", n)
	}
}
