package durable

import (
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wal/crashfs"
)

// As many messages may wait in a checkpoint as limits.mailbox allows.
func TestManyMessagesWaitInACheckpoint(t *testing.T) {
	thorough.SkipUnlessSlow(t) // a million messages
	const many = 1<<20 + 10
	props := Props{"a": puppet(puppetImage(t)).WithLimits(host.Limits{Mailbox: 2 * many, MailboxBytes: 4 << 30, Held: 8 << 30})}
	fs := crashfs.New()
	w, err := openSteppedAs(t, fs, props, false)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Lookup("/user/a")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Operate().Pause(ref, false); err != nil {
		t.Fatal(err)
	}
	w.rest()
	for range many {
		if err := w.Tell(ref, add); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.store.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.rest()
	after := fs.Copy()
	w.close()
	w, err = openSteppedAs(t, after, props, false)
	if err != nil {
		t.Fatal(err)
	}
	if ref, err = w.Lookup("/user/a"); err != nil {
		t.Fatal(err)
	}
	if i, err := w.View().Info(ref); err != nil || i.Mailbox != many {
		t.Errorf("%d messages wait, want %d", i.Mailbox, many)
	}
	w.close()
}
