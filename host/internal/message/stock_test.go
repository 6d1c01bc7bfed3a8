package message

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// written is a value that does something while it is written.
type written struct {
	text string
	do   func()
}

func (v written) MarshalCBOR(w *abi.Writer) {
	w.Text(v.text)
	if v.do != nil {
		v.do()
	}
}

// A value may send others while it is written, and may panic: each message has its own bytes.
func TestTheStockOfCodecs(t *testing.T) {
	var s Stock
	fill := func(v any) (string, error) {
		e := mailbox.New()
		defer e.Free()
		err := Fill(&s, e, v)
		return ReasonOf(e.Payload), err
	}
	long := strings.Repeat("long ", 20_000) // no codec keeps a buffer of that size
	for range 3 {
		for _, text := range []string{"outer", long, ""} {
			var inner string
			got, err := fill(written{text, func() { inner, _ = fill(written{"inner", nil}) }})
			if err != nil || got != text || inner != "inner" {
				t.Fatalf("%.20q holds %.20q: %v", got, inner, err)
			}
		}
		if _, err := fill(written{"half", func() { panic("as it was told") }}); err == nil || s.c != nil {
			t.Fatalf("%v; a codec that is half written is kept: %v", err, s.c != nil)
		}
	}
	if s.giveBack(new(codec)); s.c == nil {
		t.Fatal("nothing is kept")
	}
	kept := s.c
	if got, err := fill(written{"again", nil}); got != "again" || err != nil || s.c != kept {
		t.Errorf("%q %v; another codec is kept: %v", got, err, s.c != kept)
	}
}
