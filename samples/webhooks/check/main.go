// Command check sends webhooks and receives what the sample delivers. It fails half of the time where it receives, crashes
// actors and kills the host where the sample runs, and compares what was acknowledged with what has arrived. It has no
// code of wasmactors.
//
//	check wasmactors samples/webhooks
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check wasmactors samples/webhooks")
		os.Exit(2)
	}
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute) // building the guest is a part of it
	defer stop()
	if err := check(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, bin, bundle string) (err error) {
	out := newOutside()
	defer out.close()
	h, err := newHost(ctx, bin, bundle, out.server.URL)
	if err != nil {
		return err
	}
	defer func() {
		if h.stop(); err != nil {
			h.showLog()
		}
		h.remove()
	}()
	if err := h.start(); err != nil {
		return err
	}
	r := &run{ctx: ctx, host: h, out: out, sender: newSender(ctx, h)}
	for _, part := range []func() error{r.signatures, r.load, r.bound, r.outage, r.compare} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// run is what the parts of the check share.
type run struct {
	ctx     context.Context
	host    *host
	out     *outside
	sender  *sender
	hooks   []*hook // that were sent with a right signature
	given   *hook   // up, by the operator
	summary string
}

// until waits for something.
func (r *run) until(what string, ok func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); ; {
		done, err := ok()
		switch {
		case err != nil:
			return err
		case done:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("after a minute still not: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// again sends again what has become a dead letter, as a busy machine may have it.
func (r *run) again() error {
	list, err := r.sender.dead()
	if err != nil {
		return err
	}
	for _, l := range list.Dead {
		if _, err := r.sender.operator("POST", "/dead/"+l.Job+"/retry", nil); err != nil {
			return err
		}
	}
	return nil
}

// arrived waits until all that was acknowledged has arrived, and the queue knows it.
func (r *run) arrived() error {
	missing := 0
	err := r.until("everything that was acknowledged has arrived", func() (bool, error) {
		missing = 0
		if err := r.again(); err != nil {
			return false, err
		}
		for _, h := range r.hooks {
			switch {
			case h.job == "" || h == r.given || h.done:
				continue
			case r.out.has(h.id):
				state, err := r.sender.state(h.job)
				if err != nil {
					return false, err
				}
				h.done = state == "delivered"
			}
			if !h.done {
				missing++
			}
		}
		return missing == 0, nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %d are missing", err, missing)
	}
	return err
}

// compare looks at all that has arrived.
func (r *run) compare() error {
	want := map[string]*hook{}
	for _, h := range r.hooks {
		if h != r.given {
			want[h.id] = h
		}
	}
	if err := r.out.compare(want); err != nil {
		return err
	}
	list, err := r.sender.dead()
	if err != nil {
		return err
	}
	if list.Total != 0 {
		return fmt.Errorf("%d dead letters are left", list.Total)
	}
	fmt.Printf("\nAll %d hooks that were acknowledged have arrived, %d of them more than once but with one idempotency key, and none whose signature was wrong.\n"+
		"Neither crashes of workers, intakes and the queue nor two kill -9 have lost one, duplicates were kept once, and an outage has ended in dead letters that were sent later.\n",
		len(want), r.out.repeated())
	return nil
}
