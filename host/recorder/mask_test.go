package recorder

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/redact"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

const theSecret = "correct horse battery staple"

// hiding is a recorder that knows the secret, and what knows its forms.
func hiding(t testing.TB, cfg Config) (*Recorder, *redact.Set) {
	t.Helper()
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := (*redact.Set)(nil).With([]byte(theSecret))
	if err != nil {
		t.Fatal(err)
	}
	r.Hide(func() *redact.Set { return set })
	return r, set
}

// forms are what a guest may be handed with the secret in it.
func forms(t testing.TB) map[string][]byte {
	t.Helper()
	list := make([]int, len(theSecret))
	for i := range list {
		list[i] = int(theSecret[i])
	}
	of := func(v any) []byte {
		b, err := cbor.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return map[string][]byte{
		"bytes":     []byte(theSecret),
		"text":      of(map[string]any{"key": theSecret, "n": 7}),
		"nested":    of([]any{1, map[string]any{"a": []byte(theSecret)}, "end"}),
		"numbers":   of(list),
		"base64":    []byte("Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+theSecret))),
		"hex":       []byte(hex.EncodeToString([]byte(theSecret))),
		"repeated":  []byte(strings.Repeat(theSecret, 40)),
		"at an end": append(make([]byte, 4096-len(theSecret)), theSecret...),
	}
}

// What a guest is handed with a known secret is masked, in every form and place, and the rest of it says that it is not exact.
// Others stay exact.
func TestKnownSecretsAreMasked(t *testing.T) {
	i := image(t)
	for name, payload := range forms(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			r, set := hiding(t, Config{Path: path})
			l := r.NewLane()
			one, two := l.Begin(&Incarnation{Path: "one"}, i), l.Begin(&Incarnation{Path: "two"}, i)
			say := func(x *Track, run Run, mail ...mailbox.Envelope) Origin {
				list := make([]*mailbox.Envelope, len(mail))
				for n := range mail {
					list[n] = &mail[n]
				}
				l.Run(x, &run, list, nil)
				return l.Origin(x)
			}
			hello := mailbox.Envelope{Kind: abi.KindMessage, Payload: []byte("hello")}
			if say(one, Run{Done: 1, Fuel: 9, Outbox: []byte("out")}, hello) == 0 || say(two, Run{Done: 1}, hello) == 0 {
				t.Error("what an exact guest sends has no origin")
			}
			if say(one, Run{Done: 2, Fuel: 9, Outbox: payload}, hello, mailbox.Envelope{Kind: abi.KindMessage, Payload: payload, Headers: payload}) != 0 {
				t.Error("what it sends has an origin, where it is not masked")
			}
			reason := "bad key " + theSecret
			say(one, Run{Failure: &abi.Failure{Kind: abi.FailureGuestError, Fuel: 1234, Reason: reason}, Cut: &sandbox.Cut{Kind: abi.FailureKilled, Reason: reason}}, hello)
			origin, _ := l.Turn(one, 5, 77, payload, &mailbox.Envelope{Kind: abi.KindMessage, Origin: l.Origin(two)})
			if origin != 0 {
				t.Error("a later message of it has an origin")
			}
			last := say(two, Run{Done: 1}, hello)
			l.End(one, 6)
			l.End(two, 7)
			if last == 0 {
				t.Error("who has got no secret is masked, too")
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(set.Mask(b), b) {
				t.Error("the secret is in the file")
			}
			var lines []string
			if _, err := walk(b, func(x *Record) {
				switch x.Kind {
				case Entry:
					lines = append(lines, fmt.Sprint("entry ", x.Life, " ", x.Masked, " ", x.Sum != 0, " ", x.Failure.Fuel))
					x.Mail(func(m *Message) bool {
						if string(m.Envelope.Payload) != "hello" && !m.Sent && !bytes.Equal(m.Envelope.Payload, set.Mask(payload)) {
							t.Errorf("a message of %d bytes, %q", len(m.Envelope.Payload), m.Envelope.Payload)
						}
						return true
					})
					if x.Failed && (x.Failure.Reason != "bad key "+strings.Repeat("*", len(theSecret)) || x.Cut.Reason != x.Failure.Reason) {
						t.Errorf("%q, %q", x.Failure.Reason, x.Cut.Reason)
					}
				case End:
					lines = append(lines, fmt.Sprint("end ", x.Life, " ", x.Chain != 0))
				}
			}); err != nil {
				t.Fatal(err)
			}
			want := "entry 0 false true 0, entry 1 false true 0, entry 0 true false 0, entry 0 true false 0, entry 0 true false 0, entry 1 false true 0, end 0 false, end 1 true"
			if got := strings.Join(lines, ", "); got != want {
				t.Errorf("%s\nand not\n%s", got, want)
			}
		})
	}
}

// No state is written that has a known secret, nor any of a guest that was handed one: not even if it has it in a form that
// is not looked for.
func TestNoStateHasAKnownSecret(t *testing.T) {
	i := image(t)
	path := filepath.Join(t.TempDir(), "x")
	r, set := hiding(t, Config{Path: path, Bytes: MinBytes})
	l := r.NewLane()
	if l.Begin(&Incarnation{Path: "with a state", Snapshot: []byte("a" + theSecret)}, i) != nil {
		t.Error("a state with a secret is recorded")
	}
	if l.Begin(&Incarnation{Path: "of " + theSecret}, i) != nil {
		t.Error("a name with a secret is recorded")
	}
	changed := []byte("elpats yrettab esroh tcerroc") // a guest may keep it backwards
	say := func(x *Track, path, text string) {
		if l.Run(x, &Run{Done: 1}, []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: []byte(text)}}, nil) {
			l.Resume(x, &Incarnation{Path: path, Snapshot: changed}, i)
		}
	}
	before, exact := l.Begin(&Incarnation{Path: "before"}, i), l.Begin(&Incarnation{Path: "exact"}, i)
	at := l.Begin(&Incarnation{Path: "at the change"}, i)
	say(before, "before", theSecret)
	say(at, "at the change", "hello")
	for old := r.now.Load(); r.now.Load() == old; r.Flush() {
		say(exact, "exact", strings.Repeat("x", 100_000))
	}
	say(before, "before", "hello")
	say(at, "at the change", theSecret)
	say(exact, "exact", "hello")
	if !before.Over() || !at.Over() || exact.Over() {
		t.Errorf("over: %t %t %t", before.Over(), at.Over(), exact.Over())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, name := range []string{path, path + Old} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(set.Mask(b), b) {
			t.Errorf("the secret is in %s", name)
		}
		if n := bytes.Count(b, changed); n != 0 && (name != path || n != 1) {
			t.Errorf("%d states in %s", n, name)
		}
		if _, err := walk(b, func(x *Record) { all += x.Path + ": " + x.Why + "\n" }); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"with a state: its state has a known secret", "of ****************************: its name has a known secret", "before: it was handed a known secret, which", "at the change: it was handed a known secret, which"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// A secret that becomes known while a record is written is masked in it everywhere or nowhere: what is masked says so, and has no
// hash.
func TestSecretsThatBecomeKnownMeanwhile(t *testing.T) {
	i := image(t)
	path := filepath.Join(t.TempDir(), "x")
	r, set := hiding(t, Config{Path: path})
	l := r.NewLane()
	const headers = "from " + theSecret
	for known := range 8 { // how often the secret is not known before it is
		one := l.Begin(&Incarnation{Path: fmt.Sprint("one ", known)}, i)
		asked := 0
		r.Hide(func() *redact.Set {
			if asked++; asked <= known {
				return nil
			}
			return set
		})
		f, cut := &abi.Failure{Kind: abi.FailureGuestError, Fuel: 1234, Reason: theSecret}, &sandbox.Cut{Kind: abi.FailureKilled, Reason: theSecret}
		l.Run(one, &Run{Done: 1, Failure: f, Cut: cut, Outbox: []byte("out")}, []*mailbox.Envelope{
			{Kind: abi.KindMessage, Payload: []byte(theSecret), Headers: []byte(headers)}, {Kind: abi.KindMessage, Payload: []byte(theSecret)},
		}, nil)
	}
	r.Hide(func() *redact.Set { return set })
	// What only the host adds, in the headers as the guest gets them and in the reason of a cut, counts, too.
	hello := []*mailbox.Envelope{{Kind: abi.KindMessage, Payload: []byte("hello")}}
	stated, ended := l.Begin(&Incarnation{Path: "stated"}, i), l.Begin(&Incarnation{Path: "ended"}, i)
	l.Run(stated, &Run{Done: 1}, hello, func(*mailbox.Envelope) []byte { return []byte(headers) })
	l.Run(ended, &Run{Failure: &abi.Failure{Kind: abi.FailureKilled}, Cut: &sandbox.Cut{Kind: abi.FailureKilled, Reason: theSecret}}, hello, nil)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	exact, masked := 0, 0
	if _, err := walk(b, func(x *Record) {
		if x.Kind != Entry {
			return
		}
		all := x.Failure.Reason
		if x.Cut != nil {
			all += x.Cut.Reason
		}
		x.Mail(func(m *Message) bool {
			all += string(m.Envelope.Headers) + string(m.Envelope.Payload)
			return true
		})
		hides, shows := strings.Contains(all, "****"), strings.Contains(all, theSecret)
		if hides == shows || x.Masked != hides || x.Masked == (x.Sum != 0) || x.Masked && x.Failure.Fuel != 0 {
			t.Errorf("masked %t, hash %#x, fuel %d: %q", x.Masked, x.Sum, x.Failure.Fuel, all)
		}
		if x.Masked {
			masked++
		} else {
			exact++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if exact != 7 || masked != 3 {
		t.Errorf("%d records are exact, %d are masked", exact, masked)
	}
}
