package workplace_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/internal/errs"
	"github.com/wasmactors/wasmactors/host/internal/workplace"
)

func TestDispatcher(t *testing.T) {
	usual := workplace.Dispatcher{}
	for _, c := range []struct {
		d            workplace.Dispatcher
		text         string
		messages     int32 // of 16
		guest, other bool  // it may be a guest's, or that of an actor in Go
	}{
		{usual, "", 16, true, true},
		{usual.WithThroughput(4), "4 messages at a time", 4, true, true},
		{usual.WithThroughput(workplace.MaxThroughput), "10000 messages at a time", 10_000, true, true},
		{usual.WithThroughput(workplace.MaxThroughput + 1), "10001 messages at a time", 10_001, false, false},
		{usual.WithThroughput(-1), "", 16, false, false},
		{usual.WithDeadline(time.Second), "1s at a time", -16, true, true},
		{usual.WithDeadline(time.Second).WithThroughput(3), "3 messages at a time, 1s at a time", -3, true, true},
		{usual.WithDeadline(-1), "", 16, false, false},
		{workplace.OnPool("files").WithThroughput(2), `the pool "files", 2 messages at a time`, 2, false, true},
		{workplace.Pinned(), "a thread of its own", 16, false, true},
	} {
		d := c.d
		if got := d.String(); got != c.text {
			t.Errorf("%q instead of %q", got, c.text)
		}
		if got := workplace.Messages(&d, 16); got != c.messages {
			t.Errorf("%q: %d messages, not %d", c.text, got, c.messages)
		}
		for _, guest := range []bool{true, false} {
			may := c.other
			if guest {
				may = c.guest
			}
			if err := workplace.CheckDispatcher(&d, guest); (err == nil) != may || err != nil && !errors.Is(err, errs.ErrBadProps) {
				t.Errorf("%q, guest %v: %v", c.text, guest, err)
			}
		}
	}
	if workplace.Messages(nil, math.MaxInt) != math.MaxInt32 || workplace.PoolOf(nil) != "" || workplace.Pins(nil) || workplace.DeadlineOf(nil) != 0 {
		t.Error("no dispatcher is not the usual one")
	}
	files, pinned, late := workplace.OnPool("files"), workplace.Pinned(), usual.WithDeadline(3)
	if workplace.PoolOf(&files) != "files" || workplace.Pins(&files) || !workplace.Pins(&pinned) || workplace.DeadlineOf(&late) != 3 {
		t.Error("a dispatcher does not say what it was made with")
	}
}
