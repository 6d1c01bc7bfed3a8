package natscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// What nodes that keep nothing ask a keeper for the keys of a bundle, see keepers.go.

// askedKeys answers what is asked for the keys of a bundle. It does not wait for the journal.
func (s *keeperServer) askedKeys(m *nats.Msg, bundle string, r *keeperRequest) {
	o, err := s.c.journals.of(bundle)
	if err != nil {
		s.over(m)
		s.answer(m, keeperAnswer{Code: unknownError, Text: err.Error()})
		return
	}
	if j, ok := o.opened(); ok {
		s.carryOut(m, j, bundle, r)
		return
	}
	if !s.c.journals.begin() {
		s.over(m)
		return
	}
	if err := s.opening.take(bundle, 1); err != nil {
		s.over(m)
		s.c.journals.wait.Done()
		s.fail(m, err)
		return
	}
	go func() {
		defer s.c.journals.wait.Done()
		defer s.opening.give(bundle, 1)
		j, err := s.c.ownJournal(s.c.journals.all, bundle)
		if err != nil {
			s.over(m)
			s.answer(m, keeperAnswer{Code: unknownError, Text: err.Error()})
			return
		}
		s.carryOut(m, j, bundle, r)
	}()
}

// carryOut does what is asked, and gives the room for it back when that is answered.
func (s *keeperServer) carryOut(m *nats.Msg, j *Journal, bundle string, r *keeperRequest) {
	at := func(at uint64, err error) {
		defer s.over(m)
		if err != nil {
			s.fail(m, err)
			return
		}
		s.answer(m, keeperAnswer{At: at})
	}
	switch r.Op {
	case keysOpen:
		used, _ := j.Size()
		at(used, nil)
	case keysLast:
		j.Last(r.Kind, r.Shard, func(b []byte, n uint64, err error) {
			defer s.over(m)
			if err != nil {
				s.fail(m, err)
				return
			}
			s.answer(m, keeperAnswer{At: n, Record: b})
		})
	case keysFence:
		j.Fence(r.Kind, r.Shard, r.Record, r.At, at)
	case keysAppend:
		j.Append(r.Kind, r.Shard, r.At, r.Name, r.Record, at)
	case keysSpare:
		j.Spare(r.Kind, r.Shard, r.At, r.Name, r.Record, at)
	case keysReplace:
		j.Replace(r.Kind, r.Name, r.Record, r.At, at)
	case keysRead:
		j.readWithin(s.reads, bundle, r.Kind, r.Shard, r.Name, r.At, func(list []cluster.LogEntry, err error) {
			defer s.over(m)
			if err != nil {
				s.fail(m, err)
				return
			}
			s.parts(m, list)
		})
	case keysList:
		q, _ := r.keyQuery()
		j.listWithin(s.lists, q, func(p cluster.KeyPage, err error) {
			defer s.over(m)
			if err != nil {
				s.fail(m, err)
				return
			}
			s.answer(m, listed(p))
		})
	}
}

// parts answers with records, as many at a time as fit into a packet.
func (s *keeperServer) parts(m *nats.Msg, list []cluster.LogEntry) {
	for part := 0; ; part++ {
		a, bytes := keeperAnswer{Part: part}, 0
		for len(list) > 0 && (bytes == 0 || bytes+len(list[0].Record)+partOverhead <= bytesOfAPart) {
			bytes += len(list[0].Record) + partOverhead
			a.List, list = append(a.List, keeperEntry{At: list[0].At, Record: list[0].Record}), list[1:]
		}
		a.More = len(list) > 0
		s.answer(m, a)
		if !a.More {
			return
		}
	}
}

// asking is the log of a bundle for a node that keeps nothing. It implements cluster.Log.
type asking struct {
	c       *Cluster
	subject string
	under   atomic.Int64
	reads   chan struct{}
	looked  atomic.Int64 // when it was last asked how many bytes there are, ns since 1970
	bytes   atomic.Uint64
}

// Size is how many bytes the bundle's journal had when a keeper was last asked, and how many it may have. It has it asked again.
func (a *asking) Size() (used, most uint64) {
	if now, at := time.Now().UnixNano(), a.looked.Load(); now-at >= int64(lookForRoom) && a.looked.CompareAndSwap(at, now) {
		a.ask(keeperRequest{Op: keysOpen}, func(x keeperAnswer, err error) {
			if err == nil {
				a.bytes.Store(x.At)
			}
		})
	}
	return a.bytes.Load(), maxJournal
}

// askedJournal waits until a keeper has opened a bundle's journal.
func (c *Cluster) askedJournal(ctx context.Context, bundle string) (cluster.Log, error) {
	if !c.id.Shares(bundle) {
		return nil, fmt.Errorf("natscluster: the token of node %s was not for bundle %s: its keys are refused by the keepers", c.id.Node, bundle)
	}
	a := &asking{c: c, subject: c.id.subjectKeys(bundle), reads: make(chan struct{}, mostReads)}
	if err := c.askOpen(ctx, a.subject, whatJournal, keeperRequest{Op: keysOpen}); err != nil {
		return nil, err
	}
	return a, nil
}

// once asks, and waits for the answer.
func (a *asking) once(ctx context.Context, r keeperRequest) (keeperAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	x, err := a.c.askOnce(ctx, a.subject, whatJournal, mustEncode(r))
	return x, a.named(err)
}

// named is the error of an answer, with the bundle that was asked for.
func (a *asking) named(err error) error {
	if share := (*ShareError)(nil); errors.As(err, &share) {
		share.Bundle, _ = a.c.id.bundleAsked(a.subject)
	}
	return err
}

// do has f done by a goroutine, whose context ends with the node's place in the cluster.
func (a *asking) do(f func(context.Context), refused func(error)) {
	a.c.journals.do(&a.under, f, refused)
}

// do has f done by a goroutine. under counts those that are under way.
func (x *journals) do(under *atomic.Int64, f func(context.Context), refused func(error)) {
	switch {
	case !x.begin():
		go refused(errShut)
		return
	case under.Add(1) > mostAppends:
		under.Add(-1)
		x.wait.Done()
		go refused(cluster.ErrBusy)
		return
	}
	go func() {
		defer x.wait.Done()
		defer under.Add(-1)
		f(x.all)
	}()
}

func (a *asking) ask(r keeperRequest, done func(keeperAnswer, error)) {
	if len(r.Record) > cluster.MaxRecord {
		go done(keeperAnswer{}, fmt.Errorf("natscluster: a record of %d bytes, at most %d", len(r.Record), cluster.MaxRecord))
		return
	}
	r.Record = slices.Clone(r.Record)
	a.do(func(ctx context.Context) { done(a.once(ctx, r)) }, func(err error) { done(keeperAnswer{}, err) })
}

func (a *asking) at(r keeperRequest, done func(uint64, error)) {
	a.ask(r, func(x keeperAnswer, err error) {
		if err == nil && x.At == 0 {
			err = errAnswers
		}
		done(x.At, err)
	})
}

// Last implements cluster.Log.
func (a *asking) Last(kind string, shard int, done func([]byte, uint64, error)) {
	a.ask(keeperRequest{Op: keysLast, Kind: kind, Shard: shard}, func(x keeperAnswer, err error) {
		if x.At == 0 {
			x.Record = nil
		}
		done(x.Record, x.At, err)
	})
}

// Fence implements cluster.Log.
func (a *asking) Fence(kind string, shard int, fence []byte, after uint64, done func(uint64, error)) {
	a.at(keeperRequest{Op: keysFence, Kind: kind, Shard: shard, Record: fence, At: after}, done)
}

// Append implements cluster.Log.
func (a *asking) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	a.at(keeperRequest{Op: keysAppend, Kind: kind, Shard: shard, Name: name, Record: record, At: fence}, done)
}

// Spare implements cluster.Log.
func (a *asking) Spare(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	a.at(keeperRequest{Op: keysSpare, Kind: kind, Shard: shard, Name: name, Record: record, At: fence}, done)
}

// Replace implements cluster.Log.
func (a *asking) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	a.at(keeperRequest{Op: keysReplace, Kind: kind, Name: name, Record: record, At: after}, done)
}

// Read implements cluster.Log.
func (a *asking) Read(kind string, shard int, name string, least uint64, done func([]cluster.LogEntry, error)) {
	a.do(func(ctx context.Context) {
		select {
		case a.reads <- struct{}{}:
			defer func() { <-a.reads }()
		case <-ctx.Done():
			done(nil, errShut)
			return
		}
		done(a.read(ctx, keeperRequest{Op: keysRead, Kind: kind, Shard: shard, Name: name, At: least}))
	}, func(err error) { done(nil, err) })
}

func (a *asking) read(ctx context.Context, r keeperRequest) (list []cluster.LogEntry, err error) {
	nc := a.c.nodes
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(a.subject, inbox, mustEncode(r)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	for part, bytes := 0, 0; ; part++ {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, errRead
		}
		x, err := decodeAnswer(m)
		if err != nil {
			return nil, a.named(err)
		}
		if x.Part != part || x.More && len(x.List) == 0 {
			return nil, errAnswers
		}
		for _, e := range x.List {
			if bytes += len(e.Record); bytes > cluster.MaxRead {
				return nil, cluster.ErrLong
			}
			list = append(list, cluster.LogEntry{At: e.At, Record: e.Record})
		}
		if !x.More {
			return list, nil
		}
	}
}
