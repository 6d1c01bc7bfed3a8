package persist

import (
	"context"
	"iter"
	"math"
)

// Query says which events. The zero value is all that there are now.
type Query struct {
	// From is the number (ByID) or the offset (ByTag) to begin with. To go on after an event take its number or offset plus
	// 1.
	From uint64
	// To is the last number (ByID); 0: all.
	To uint64
	// Live has the iteration wait for further events when it has come to the end of those that there are, until its context
	// ends.
	Live bool
}

// ByID returns the events of an ID, in order. An error is the last thing it yields.
func (j *Journal) ByID(ctx context.Context, id string, q Query) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		to := q.To
		if to == 0 {
			to = math.MaxUint64
		}
		if err := j.settled(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		for from := max(q.From, 1); from <= to; {
			changed := j.change()
			list, more, err := j.index.events(id, from, to, chunkBytes)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for i := range list {
				if from = list[i].Number + 1; !yield(list[i], nil) {
					return
				}
			}
			if !more && from <= to && !j.wait(ctx, q.Live, changed, yield) {
				return
			}
		}
	}
}

// ByTag returns the events with a tag, in the order of their offsets: that in which they were stored, whatever their IDs.
// There is never one that comes later and has a lesser offset than one that was returned. An error is the last thing it
// yields.
func (j *Journal) ByTag(ctx context.Context, tag string, q Query) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := j.settled(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		for from := q.From; ; {
			changed := j.change()
			list, next, more, err := j.index.tagged(tag, from)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for i := range list {
				if !yield(list[i], nil) {
					return
				}
			}
			if from = next; !more && !j.wait(ctx, q.Live, changed, yield) {
				return
			}
		}
	}
}

// IDs returns the IDs that have had events, in the order of their bytes.

func (j *Journal) IDs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := j.settled(ctx); err != nil {
			yield("", err)
			return
		}
		for after := ""; ; {
			list, more, err := j.index.ids(after)
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range list {
				if after = id; !yield(id, nil) {
					return
				}
			}
			if !more {
				return
			}
		}
	}
}

// Info is what is known of an ID.
type Info struct {
	ID      string `json:"id"`
	Last    uint64 `json:"last"`              // number of the last event
	Deleted uint64 `json:"deleted,omitempty"` // events up to it are deleted
	Bytes   int64  `json:"bytes"`             // of events and snapshots
}

// Info is what is known of an ID; all 0 if it has had no events.
func (j *Journal) Info(id string) (Info, error) {
	m, err := j.index.meta(id)
	return Info{id, m.last, m.deleted, m.bytes}, err
}

// settled waits until what is durable now can be found: whoever has got an answer finds what it says.
func (j *Journal) settled(ctx context.Context) error {
	j.mu.Lock()
	at := j.durable
	j.mu.Unlock()
	return j.await(ctx, at)
}

// change is closed when there is more than now.
func (j *Journal) change() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changed
}

// wait waits for more; false if the iteration is over.
func (j *Journal) wait(ctx context.Context, live bool, changed <-chan struct{}, yield func(Event, error) bool) bool {
	if !live {
		return false
	}
	select {
	case <-changed:
		j.mu.Lock()
		err := j.err
		if j.closed && err == nil {
			err = errClosed
		}
		j.mu.Unlock()
		if err != nil {
			yield(Event{}, err)
			return false
		}
		return true
	case <-ctx.Done():
		yield(Event{}, context.Cause(ctx))
		return false
	}
}
