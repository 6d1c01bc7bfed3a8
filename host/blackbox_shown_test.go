package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/supervision"
)

// A crash file has no known secret: not in its messages, its memory, its failure or its events. What is there in its place
// has the same length, so that the rest of a message can be read, and the file says that it is not exact.
func TestCrashFilesHaveNoSecrets(t *testing.T) {
	const secret = "correct horse battery staple"
	l := newBlackBox(t, supervision.Default(), blackbox.Config{}, nil)
	if err := l.Redaction().Hide([]byte(secret)); err != nil {
		t.Fatal(err)
	}
	ref := l.spawn("a", puppet(t))
	l.tell(ref, script(rec(recAdd, 1, nil)))
	hidden := rec(0, 0, abi.AppendSend(nil, 0, "/user/nobody", 0, 0, nil, must(cbor.Marshal("the password is "+secret))(t)))
	l.tell(ref, script(hidden))
	l.tell(ref, script(append(hidden, trap()...)))
	f := l.last()
	if b := f.Append(nil); bytes.Contains(b, []byte(secret)) || bytes.Contains(b, []byte("battery")) {
		t.Error("the secret is in the file")
	}
	if !strings.Contains(f.Inexact, "masked") || len(f.Base) > 0 {
		t.Errorf("inexact: %q, %d bytes of memory", f.Inexact, len(f.Base))
	}
	seen := 0
	look := func(e *blackbox.Entry) bool {
		e.Mail(func(env *abi.Envelope) bool {
			if bytes.Contains(env.Payload, []byte("the password is "+strings.Repeat("*", len(secret)))) {
				seen++
			}
			return true
		})
		return true
	}
	f.Entries(look)
	if failing, ok := f.Failing(); !ok || look(&failing) && seen != 2 {
		t.Errorf("%d messages can be read", seen)
	}
	again, err := blackbox.Decode(f.Append(nil))
	if err != nil || again.Inexact != f.Inexact {
		t.Error(err)
	}
}

// A crash file has the last events of the system before the failure, and no more than its bounds.
func TestCrashFilesHaveTheLastEvents(t *testing.T) {
	l := newBlackBox(t, supervision.Default(), blackbox.Config{}, nil)
	ref := l.spawn("a", puppet(t))
	for n := range 3 * blackbox.MostEvents {
		l.tell(ref, script(rec(0, 0, abi.AppendSend(nil, 0, fmt.Sprint("/user/nobody", n), 0, 0, nil, []byte{1}))))
	}
	l.tell(ref, script(trap()))
	var events []string
	for line := range bytes.Lines(l.last().Events) {
		var e struct{ Event, To string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e.Event+" "+e.To)
	}
	if len(events) != blackbox.MostEvents {
		t.Fatalf("%d events", len(events))
	}
	if last := events[len(events)-1]; last != fmt.Sprint("dead_letter /user/nobody", 3*blackbox.MostEvents-1) {
		t.Error(last)
	}
}
