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

// Page is some events, and where to go on.
type Page struct {
	Events []Event
	// Next is the From of the next page: a number (ByID) or an offset (ByTag).
	Next uint64
	// More says that there are further events now.
	More bool
}

// Bytes is about how much the events take in memory: more than was asked for if the first one alone is larger.
func (p *Page) Bytes() (n int) {
	for i := range p.Events {
		n += shownBytes(&p.Events[i])
	}
	return n
}

// PageByID is the beginning of what [Journal.ByID] yields: at most 256 events, and about so many bytes of them with their
// IDs, types and tags, but one event at least if there is one. bytes is 1 to 262144; less or more is taken as the nearest. It waits until what is durable can be
// found, or ctx ends, and not for further events: Query.Live is ignored.
func (j *Journal) PageByID(ctx context.Context, id string, q Query, bytes int) (p Page, err error) {
	to := q.To
	if to == 0 {
		to = math.MaxUint64
	}
	p.Next = max(q.From, 1)
	if err := j.settled(ctx); err != nil || p.Next > to {
		return p, err
	}
	if p.Events, p.More, err = j.index.events(id, p.Next, to, pageBytes(bytes)); err != nil {
		return p, err
	}
	if n := len(p.Events); n > 0 {
		p.Next = p.Events[n-1].Number + 1
		return p, nil
	}
	m, err := j.index.meta(id)
	p.Next = max(p.Next, m.deleted+1) // so nobody waits for what will not come
	return p, err
}

// PageByTag is the beginning of what [Journal.ByTag] yields, as [Journal.PageByID].
func (j *Journal) PageByTag(ctx context.Context, tag string, q Query, bytes int) (p Page, err error) {
	p.Next = q.From
	if err := j.settled(ctx); err != nil {
		return p, err
	}
	p.Events, p.Next, p.More, err = j.index.tagged(tag, q.From, pageBytes(bytes))
	return p, err
}

func pageBytes(n int) int { return min(max(n, 1), chunkBytes) }

// ByID returns the events of an ID, in order. An error is the last thing it yields.
func (j *Journal) ByID(ctx context.Context, id string, q Query) iter.Seq2[Event, error] {
	return j.pages(ctx, q, func() (Page, error) { return j.PageByID(ctx, id, q, chunkBytes) }, func(next uint64) bool {
		q.From = next
		return q.To == 0 || next <= q.To
	})
}

// ByTag returns the events with a tag, in the order of their offsets: that in which they were stored, whatever their IDs.
// There is never one that comes later and has a lesser offset than one that was returned. An error is the last thing it
// yields.
func (j *Journal) ByTag(ctx context.Context, tag string, q Query) iter.Seq2[Event, error] {
	return j.pages(ctx, q, func() (Page, error) { return j.PageByTag(ctx, tag, q, chunkBytes) }, func(next uint64) bool {
		q.From = next
		return true
	})
}

// pages yields the events of one page after the other. on says where the next one begins, and is false if there can be none.
func (j *Journal) pages(ctx context.Context, q Query, page func() (Page, error), on func(next uint64) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			changed := j.Changed()
			p, err := page()
			if err == nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for i := range p.Events {
				if !yield(p.Events[i], nil) {
					return
				}
			}
			if !on(p.Next) || !p.More && !j.wait(ctx, q.Live, changed, yield) {
				return
			}
		}
	}
}

// IDs returns the IDs that have had events, in the order of their bytes.
func (j *Journal) IDs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			list, more, err := j.IDsAfter(ctx, after)
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

// IDsAfter is some IDs that have had events, in the order of their bytes, behind one, at most 256; more says that there are
// others. It waits until what is durable can be found, or ctx ends.
func (j *Journal) IDsAfter(ctx context.Context, after string) (list []string, more bool, err error) {
	if err := j.settled(ctx); err != nil {
		return nil, false, err
	}
	return j.index.ids(after)
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

// Changed is closed when there may be more than now, or when the journal has failed or ended. To wait for events take it
// first, and read then.
func (j *Journal) Changed() <-chan struct{} {
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
