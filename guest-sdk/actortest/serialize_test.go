//go:build !wasip1

package actortest_test

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

// forgetful does not write what it is.
type forgetful struct{ n int64 }

func (f *forgetful) MarshalCBOR(w *abi.Writer) {
	w.Int(f.n)
	f.n++
}
func (f *forgetful) UnmarshalCBOR(r *abi.Reader) { f.n = r.Int() + 1 }

// broken writes what it does not read.
type broken struct{}

func (broken) MarshalCBOR(w *abi.Writer)    { w.Text("x") }
func (*broken) UnmarshalCBOR(r *abi.Reader) { r.Int() }

type speaker struct{}

func (speaker) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Text() {
	case "good":
		return ctx.Reply(actor.Text("good"))
	case "forgetful":
		return ctx.Reply(&forgetful{1})
	case "broken":
		return ctx.Reply(&broken{})
	case "two":
		return ctx.Reply(actor.Func(func(w *abi.Writer) { w.Int(1); w.Int(2) }))
	}
	return actor.ErrUnhandled
}

func init() { actor.Register("speaker", func() actor.Actor { return speaker{} }) }

// K19: in a test every message may be read again as soon as it was written.
func TestK19_SerializeMessages(t *testing.T) {
	a := actortest.Spawn(t, "speaker")
	for _, text := range []string{"good", "forgetful", "broken"} {
		if f := a.Send(actor.Text(text)).Failure; f != nil {
			t.Errorf("%s: %v", text, f)
		}
	}
	actortest.SerializeMessages(t)
	for text, want := range map[string]string{
		"good": "", "forgetful": "has written 01, and is 02 when it was read", "broken": "*actortest_test.broken cannot read what it has written", "two": "has not written one item of CBOR",
	} {
		f := a.Send(actor.Text(text)).Failure
		if want == "" && f != nil || want != "" && (f == nil || !strings.Contains(f.Error(), want)) {
			t.Errorf("%s: %v\nwant %s", text, f, want)
		}
		if f != nil {
			a.Restart()
		}
	}
}
