package natscluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// askedValues are the values that a service of all nodes shares of a bundle, for a node that keeps nothing. It implements service.Shared, and
// its methods may be called by any goroutine.
type askedValues struct {
	c       *Cluster
	service string
	bundle  string
	subject string
	what    string
	under   atomic.Int64
}

// askedShared waits until a keeper has opened what a service shares.
func (c *Cluster) askedShared(ctx context.Context, name, bundle string) (service.Shared, error) {
	if !c.id.Shares(bundle) {
		return nil, fmt.Errorf("natscluster: the token of node %s was not for bundle %s: what services share of it is refused by the keepers", c.id.Node, bundle)
	}
	a := &askedValues{c: c, service: name, bundle: bundle, subject: c.id.subjectValues(bundle), what: whatShared(name)}
	if err := c.askOpen(ctx, a.subject, a.what, keeperRequest{Op: valuesOpen, Kind: name}); err != nil {
		return nil, err
	}
	return a, nil
}

// Lease implements service.Shared.
func (a *askedValues) Lease() time.Duration { return a.c.id.Lease }

// ask asks a keeper. done gets an error that says so if nothing was written.
func (a *askedValues) ask(r keeperRequest, d time.Duration, done func(keeperAnswer, error)) {
	r.Kind = a.service
	switch {
	case !ofBundle(r.Name, a.bundle) || len(r.Record) > maxValue || r.Stay < 0 || r.Stay > longestStay:
		go done(keeperAnswer{}, errValue)
		return
	}
	b := mustEncode(r)
	a.c.journals.do(&a.under, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		done(a.c.askOnce(ctx, a.subject, a.what, b))
	}, func(err error) {
		if errors.Is(err, cluster.ErrBusy) {
			err = errBusy
		}
		done(keeperAnswer{}, err)
	})
}

// Put implements service.Shared.
func (a *askedValues) Put(key string, value []byte, revision uint64, stay int64, done func(at uint64, ok bool, err error)) {
	a.ask(keeperRequest{Op: valuesPut, Name: key, Record: value, At: revision, Stay: stay}, putTime+turnTime, func(x keeperAnswer, err error) {
		switch {
		case errors.Is(err, cluster.ErrConflict):
			done(0, false, nil)
		case errors.Is(err, nats.ErrNoResponders): // no keeper has got it
			done(0, false, fmt.Errorf("%w; %w", err, service.ErrNotWritten))
		case err == nil && x.At == 0:
			done(0, false, errAnswers)
		default:
			done(x.At, err == nil, err)
		}
	})
}

// Get implements service.Shared.
func (a *askedValues) Get(key string, done func(value []byte, revision uint64, err error)) {
	a.ask(keeperRequest{Op: valuesGet, Name: key}, readTime+turnTime, func(x keeperAnswer, err error) {
		if err != nil || x.At == 0 {
			x.Record, x.At = nil, 0
		}
		done(x.Record, x.At, err)
	})
}

// Watch implements service.Shared.
func (a *askedValues) Watch(each func(key string, value []byte, revision uint64), ready func()) (stop func()) {
	if !a.c.journals.begin() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(a.c.journals.all)
	go func() {
		defer a.c.journals.wait.Done()
		defer cancel()
		a.watch(ctx, each, sync.OnceFunc(ready))
	}()
	return cancel
}

// answerTime is how long the answer to a request for changes may take beyond the time for which a keeper waits.
const answerTime = time.Second

// watch asks for changes since the last one, any keeper, until ctx ends.
func (a *askedValues) watch(ctx context.Context, each func(key string, value []byte, revision uint64), ready func()) {
	refused := refusals{event: a.c.event}
	for seen, now := uint64(0), true; ctx.Err() == nil; {
		once, cancel := context.WithTimeout(ctx, holdTime+answerTime)
		x, err := a.c.askOnce(once, a.subject, a.what, mustEncode(keeperRequest{Op: valuesWatch, Kind: a.service, At: seen, Now: now}))
		cancel()
		if err == nil {
			if err = a.follows(seen, &x); err != nil {
				refused.tell(0, err.Error())
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil { // the next one is answered by another keeper, if this one has ended
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
			continue
		}
		for _, e := range x.List {
			each(e.Name, e.Record, e.At)
		}
		seen = x.At
		if now = x.More; !now {
			ready()
		}
	}
}

// tryAgain is how long a watch waits after an answer that is none.
const tryAgain = 20 * time.Millisecond

// follows says what is wrong with changes that are to follow a revision: they are of the bundle, in order, and go on from there.
func (a *askedValues) follows(seen uint64, x *keeperAnswer) error {
	last := seen
	for _, e := range x.List {
		if e.At <= last || !ofBundle(e.Name, a.bundle) || len(e.Record) > maxValue {
			return fmt.Errorf("%w: %s of bundle %s", errAnswers, a.what, a.bundle)
		}
		last = e.At
	}
	if x.At < last || x.More && x.At == seen {
		return fmt.Errorf("%w: %s of bundle %s", errAnswers, a.what, a.bundle)
	}
	return nil
}
