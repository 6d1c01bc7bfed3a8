package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// eager is a mailbox whose messages are handled at once, by another worker: their envelopes are used again
// before Push returns.
type eager struct {
	host.HostedMailbox
	got []uint64
}

func (b *eager) Push(e *host.Envelope) error {
	b.got = append(b.got, e.Correlation)
	*e = host.Envelope{Kind: abi.KindTimer}
	return nil
}

// A message that was pushed belongs to who has taken it: the meddler neither looks at it any more, nor takes
// another one that is in the same envelope for it.
func TestEnvelopesAreUsedAgain(t *testing.T) {
	box := &eager{}
	w := &world{clock: host.NewVirtualClock(time.Time{})}
	var err error
	if w.sys, err = host.New(host.NewConfig("test").WithManual().WithClock(w.clock)); err != nil {
		t.Fatal(err)
	}
	defer w.sys.Close(t.Context())
	m := &meddler{HostedMailbox: box, path: "/user/a", world: w, doomed: map[*host.Envelope]*fault{}}
	push := func(e *host.Envelope, n uint64) {
		t.Helper()
		e.Kind, e.Correlation = abi.KindMessage, n
		if err := m.Push(e); err != nil {
			t.Fatal(err)
		}
	}
	came := func(want ...uint64) {
		t.Helper()
		if !slices.Equal(box.got, want) {
			t.Errorf("%d came, not %d", box.got, want)
		}
	}
	first, second := &host.Envelope{}, &host.Envelope{}
	m.add(&fault{verb: "reorder", left: 1})
	push(first, 1)
	came()
	push(second, 2)
	came(2, 1)

	// What was to be done with the first message is not done with the third, in the same envelope.
	o := &overtaken{first}
	first.Kind = abi.KindMessage
	m.passed = append(m.passed, o)
	m.letPassed()
	box.got = nil
	m.add(&fault{verb: "reorder", left: 1})
	push(first, 3)
	m.notPassed(o)
	came()
	push(second, 4)
	came(4, 3)
}
