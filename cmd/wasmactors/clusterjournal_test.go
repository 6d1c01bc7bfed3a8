package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
)

// spoiltLog is a log that says of each key what is wrong with it.
type spoiltLog struct {
	why    error
	erased int
}

func (l *spoiltLog) Look(_, _ string, done func(journal.Kept, error)) {
	done(journal.Kept{Records: 7}, l.why)
}

func (l *spoiltLog) Erase(_, _ string, _ time.Duration, done func(error)) {
	l.erased++
	done(nil)
}

// A key of which the journal has what cannot be read is deleted: nothing else mends it. If the journal does not answer nothing is tried.
func TestWhatCannotBeReadIsDeleted(t *testing.T) {
	for _, c := range []struct {
		why    error
		erased int
	}{{nil, 1}, {fmt.Errorf("%w: of ann", journal.ErrSpoilt), 1}, {cluster.ErrLong, 1}, {errors.New("no answer"), 0}} {
		l := &spoiltLog{why: c.why}
		k, err := erase(context.Background(), l, "regs", "ann")
		if l.erased != c.erased || (err == nil) != (c.erased == 1) || k.Records != 7 {
			t.Errorf("%v: erased %d times, %v", c.why, l.erased, err)
		}
	}
}
