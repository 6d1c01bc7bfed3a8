package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
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

// A message that was pushed belongs to who has taken it: the faultyMailbox neither looks at it any more, nor takes
// another one that is in the same envelope for it.
func TestEnvelopesAreUsedAgain(t *testing.T) {
	box := &eager{}
	w := &world{place: newPlace("", nil), clock: host.NewVirtualClock(time.Time{})}
	w.place.clock = w.clock
	var err error
	if w.sys, err = host.New(host.NewConfig("test").WithManual().WithClock(w.clock)); err != nil {
		t.Fatal(err)
	}
	defer w.sys.Close(t.Context())
	m := &faultyMailbox{HostedMailbox: box, path: "/user/a", world: w, at: w.place, crashing: map[*host.Envelope]*fault{}}
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
	m.here.add(&fault{verb: "reorder", left: 1})
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
	m.here.add(&fault{verb: "reorder", left: 1})
	push(first, 3)
	m.notPassed(o)
	came()
	push(second, 4)
	came(4, 3)
}

// dropping is an actor whose mailbox has given messages up.
type dropping struct{ dropped []uint64 }

func (d *dropping) Dropped(e *host.Envelope, _ host.DeadReason) {
	d.dropped = append(d.dropped, e.Correlation)
}
func (d *dropping) Reserve(int64, bool) error { return nil }

// A message instead of which the actor was to fail leaves the mailbox another way: the one that comes in the
// same envelope later is handled.
func TestTheDoomedAreForgottenWithTheirMessage(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(m *faultyMailbox, other *host.Envelope) error
		left  int
	}{
		{"dropped by the next one", func(m *faultyMailbox, other *host.Envelope) error { return m.Push(other) }, 1},
		{"given up while the actor waits for its restart", func(m *faultyMailbox, _ *host.Envelope) error { m.Trim(0); return nil }, 1},
		{"taken without a look", func(m *faultyMailbox, _ *host.Envelope) error { m.Pop(); return nil }, 0},
	} {
		w := &world{place: newPlace("", nil), clock: host.NewVirtualClock(time.Time{})}
		w.place.clock = w.clock
		var err error
		if w.sys, err = host.New(host.NewConfig("test").WithManual().WithClock(w.clock)); err != nil {
			t.Fatal(err)
		}
		defer w.sys.Close(t.Context())
		box := mailbox.New(mailbox.DropOldest).Make(host.MailboxLimits{Messages: 1, Bytes: 1 << 20}).(host.HostedMailbox)
		m, owner := &faultyMailbox{HostedMailbox: box, path: "/user/a", world: w, at: w.place, crashing: map[*host.Envelope]*fault{}}, &dropping{}
		m.Hosted(owner)
		used, other := &host.Envelope{Kind: abi.KindMessage, Correlation: 1}, &host.Envelope{Kind: abi.KindMessage, Correlation: 2}
		m.here.add(&fault{verb: "crash", left: 1})
		if err := m.Push(used); err != nil {
			t.Fatal(err)
		}
		if len(m.crashing) != 1 {
			t.Fatalf("%s: %d crashing", c.name, len(m.crashing))
		}
		if err := c.leave(m, other); err != nil {
			t.Fatal(err)
		}
		if len(owner.dropped) != c.left {
			t.Errorf("%s: %d dropped", c.name, owner.dropped)
		}
		*used = host.Envelope{Kind: abi.KindMessage, Correlation: 3}
		if err := m.Push(used); err != nil {
			t.Fatal(err)
		}
		if e := m.Peek(); e == nil || e.Correlation != 3 {
			t.Errorf("%s: %+v is taken for the message before", c.name, e)
		}
		m.here.add(&fault{verb: "crash", left: 1})
		if err := m.Push(other); err != nil {
			t.Fatal(err)
		}
		if m.Close(func(*host.Envelope) {}); len(m.crashing) != 0 {
			t.Errorf("%s: %d are remembered behind the end", c.name, len(m.crashing))
		}
	}
}
