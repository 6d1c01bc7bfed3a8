package typed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/typed"
	"github.com/wasmactors/wasmactors/host/typed/testdata/mapped"
)

// bindings are those of the guest, for an actor in Go.
func bindings(t *testing.T, w *world) *typed.Bindings {
	var b typed.Bindings
	say := func(format string, args ...any) { w.heard = append(w.heard, fmt.Sprintf(format, args...)) }
	typed.Handle(&b, func(ctx *host.Context, p *mapped.Payment) error {
		say("Go pays %d %s", p.Cents, p.Currency)
		return ctx.Reply(host.Typed(&mapped.Receipt{Number: uint64(p.Cents)}))
	})
	typed.Handle(&b, func(ctx *host.Context, p *mapped.PaymentV1) error {
		say("Go pays %d whole", p.Euros)
		return nil
	})
	for _, p := range []string{"audit.*", "audit.secret.*", "audit.secret.key"} {
		b.Match(p, func(ctx *host.Context, m host.Message) error {
			name, version, _ := m.Type()
			say("%s has %s %d", p, name, version)
			return nil
		})
	}
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// The most specific binding has a message: its own version, then the next higher one, then the longest pattern.
// What there is none for is not handled, and the event says what it claims to be.
func TestK19_MostSpecificBinding(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	native := must(w.Spawn("native", host.Native(func() host.Actor { return bindings(t, w) })))(t)
	w.heard = nil
	for _, c := range []struct {
		typ         string
		value       any
		guest, inGo string // "": not handled
	}{
		{"bank.payment@3", &mapped.Payment{Cents: 7, Currency: "USD"}, "pay 7 USD", "Go pays 7 USD"},
		{"bank.payment@2", &mapped.PaymentV2{Cents: 7}, "pay 7 EUR", "Go pays 7 EUR"},
		{"bank.payment@1", &mapped.PaymentV1{Euros: 7}, "pay 7 whole euros", "Go pays 7 whole"},
		{"bank.payment@4", &mapped.Payment{Cents: 7}, "", ""},
		{"bank.loan@1", &mapped.Payment{Cents: 7}, "", ""},
		{"audit.x@5", 1, "audit of audit.x 5", "audit.* has audit.x 5"},
		{"audit.secret.x@1", 1, "a secret", "audit.secret.* has audit.secret.x 1"},
		{"audit.secret.key@1", 1, "a key", "audit.secret.key has audit.secret.key 1"},
		{"audit@1", 1, "", ""},
	} {
		for i, want := range []string{c.guest, c.inGo} {
			w.tell([]host.Ref{bank, native}[i], headed(c.typ, c.value))
			if want != "" {
				w.wants(want)
				w.wantUnhandled()
			} else {
				w.wants()
				w.wantUnhandled(c.typ)
			}
		}
	}
	// A header that is none, and none at all.
	for _, m := range []any{headed("bank.payment@x", 1), headed("", 1), 1} {
		for _, to := range []host.Ref{bank, native} {
			w.tell(to, m)
			w.wants()
			w.wantUnhandled("")
		}
	}
	// What it says does not make it so: the payload is read as always.
	w.tell(bank, headed("bank.payment@3", map[string]any{"cents": "many"}))
	if len(w.heard) != 2 || !strings.HasPrefix(w.heard[0], "before a restart: guest_error: abi: payment.cents: an item of another type") {
		t.Errorf("%q", w.heard)
	}
}

// Two bindings for the same are an error; the generator's are in guest-sdk/gen, see TestWhatIsRefused.
func TestK19_AmbiguousBindings(t *testing.T) {
	var b typed.Bindings
	f := func(*host.Context, host.Message) error { return nil }
	typed.Handle(&b, func(*host.Context, *mapped.Payment) error { return nil })
	typed.Handle(&b, func(*host.Context, *mapped.PaymentV2) error { return nil })
	b.Match("bank.*", f)
	b.Match("bank.x", f)
	b.Match("*", f)
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	typed.Handle(&b, func(*host.Context, *mapped.Payment) error { return nil })
	for _, p := range []string{"bank.*", "bank.x", "*", "a*b", ""} {
		b.Match(p, f)
	}
	err := b.Err()
	for _, want := range []string{"two functions for bank.payment@3", `two functions for "bank.*"`, `two functions for "bank.x"`, `two functions for "*"`, `"a*b" is neither`, `"" is neither`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// Refs travel in messages, with the type of what may be sent to them; unknown keys pass through a guest.
func TestK19_RefsAndUnknownKeysTravel(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	teller := w.teller(bank, 0) // which was sent the ref of the bank
	w.tell(teller, map[string]any{"to": bank.UID()})
	w.wants("note offered")

	w.tell(bank, headed("bank.payment@3", map[string]any{"cents": -3, "currency": "EUR", "later": []any{"x", nil}, "z": 1.5}))
	var e struct {
		Payment map[string]any `cbor:"payment"`
		From    abi.Ref        `cbor:"from"`
	}
	if len(w.entries) != 2 { // and the receipt
		t.Fatalf("%d entries", len(w.entries))
	}
	if err := w.entries[0].Decode(&e); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(e.Payment); got != "map[cents:-3 currency:EUR later:[x <nil>] z:1.5]" || e.From != w.probe.UID() {
		t.Errorf("%s from %d", got, e.From)
	}
	if name, version, ok := w.entries[1].Type(); !ok || name != "bank.receipt" || version != 1 {
		t.Errorf("the answer is %s@%d, %v", name, version, ok)
	}

	// A note refuses what it does not know.
	w.tell(bank, headed("bank.note@1", map[string]any{"text": "a", "more": 1}))
	if len(w.heard) < 2 || !strings.HasPrefix(w.heard[1], "before a restart: guest_error: abi: note: a key that the type does not have") {
		t.Errorf("%q", w.heard)
	}
}

// A hostile message with as many unknown keys as fit, in the worst order, costs a bounded amount of fuel.
func TestK19_HostileUnknownKeys(t *testing.T) {
	w := newWorld(t)
	bank := w.guest("bank", "bank")
	spent := func(keys, value int) uint64 {
		out := abi.NewWriter(nil)
		out.Map(keys + 1)
		for i := range keys { // the last first, so that each of the others has to look for its place
			out.Int(int64((i+keys-1)%keys) + 1000)
			out.ByteString(make([]byte, value))
		}
		out.Text("cents")
		out.Int(4)
		before := must(w.View().Info(bank))(t).Fuel
		w.tell(bank, headed("bank.payment@3", host.Raw(out.Bytes())))
		return must(w.View().Info(bank))(t).Fuel - before
	}
	spent(1, 1)
	most, few := spent(abi.MaxUnknown, 50), spent(1, 1)
	t.Logf("fuel of a payment with %d unknown keys: %d, with one: %d", abi.MaxUnknown, most, few)
	if most > 5_000_000 {
		t.Errorf("%d", most)
	}
	w.heard = nil
	huge := spent(6_000, 2)
	t.Logf("with 6000: %d", huge)
	if len(w.heard) != 2 || !strings.Contains(w.heard[0], "more unknown keys than are kept") || huge > most+1_000_000 {
		t.Errorf("%q, fuel %d", w.heard, huge)
	}
}

// loses has a field that is not sent back as it came.
type loses struct {
	A int    `cbor:"a"`
	B string `cbor:"b,omitempty"`
}

func (l *loses) UnmarshalCBOR(b []byte) error {
	l.B = "was empty"
	return nil
}

func TestK19_Verify(t *testing.T) {
	for _, v := range []any{&mapped.Payment{Cents: 7, Currency: "EUR"}, mapped.Inner{A: 1}, "text", 7, nil, map[string]any{"a": []any{1}}} {
		if err := typed.Verify(v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
	if err := typed.Verify(&loses{A: 1}); err == nil || !strings.Contains(err.Error(), "when it was read") {
		t.Error(err)
	}
	for _, v := range []any{(*mapped.Payment)(nil), make(chan int)} {
		if err := typed.Verify(v); err == nil {
			t.Errorf("%T: it was verified", v)
		}
	}
}

// In Go a message that says that it is another is not decoded, whatever its version.
func TestK19_DecodeTyped(t *testing.T) {
	payload := must(host.Encode(&mapped.PaymentV1{Euros: 7}))(t)
	for typ, want := range map[string]bool{"": true, "bank.payment@1": true, "bank.payment@3": true, "bank.payment@4": false, "bank.loan@1": false, "bank.loan@3": false} {
		m := host.Message{Payload: payload}
		if typ != "" {
			m.Headers = abi.AppendHeader(nil, abi.HeaderType, typ)
		}
		var p mapped.Payment
		err := m.DecodeTyped(&p)
		if other := errors.Is(err, abi.ErrMessageType); other == want {
			t.Errorf("%q: %v", typ, err)
		}
		if typ == "bank.payment@1" && (err != nil || p.Cents != 700) {
			t.Errorf("%d, %v", p.Cents, err)
		}
	}
}

// nameless is a message whose type is none.
type nameless struct{}

func (*nameless) MessageType() string                  { return "no name" }
func (*nameless) UnmarshalVersion(*abi.Reader, uint16) {}

// What is wrong is an error and is not bound: of two that are alike the first one stays, and a pattern that
// is none matches nothing.
func TestWhatIsWrongIsNotBound(t *testing.T) {
	var b typed.Bindings
	called := ""
	f := func(name string) func(*host.Context, host.Message) error {
		return func(*host.Context, host.Message) error { called = name; return nil }
	}
	for _, name := range []string{"first", "second"} {
		typed.Handle(&b, func(*host.Context, *mapped.Payment) error { called = name; return nil })
		b.Match("audit.*", f(name))
		b.Match("audit.x", f(name+" exact"))
	}
	b.Match("a*b", f("within"))
	b.Match("", f("empty"))
	for range 2 {
		typed.Handle(&b, func(*host.Context, *nameless) error { called = "nameless"; return nil })
	}
	if err, want := b.Err(), `typed_test.nameless has the type "no name", which is not a valid type`; err == nil || strings.Count(err.Error(), want) != 2 || strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("7 errors, two of them %q: %v", want, err)
	}
	payload, err := host.Encode(&mapped.Payment{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"bank.payment@3": "first", "audit.y@1": "first", "audit.x@1": "first exact", "a*b@1": "", "a.b@1": "", "a@1": "", "no name": "", "no name@1": "", "@1": "",
	} {
		called = ""
		err := b.Receive(nil, host.Message{Headers: abi.AppendHeader(nil, abi.HeaderType, kind), Payload: payload})
		if called != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, host.ErrUnhandled) {
			t.Errorf("%s: called %q, want %q; %v", kind, called, want, err)
		}
	}
}
