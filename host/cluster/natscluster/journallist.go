package natscluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/host/cluster"
	parts "github.com/wasmactors/wasmactors/host/service"
)

// Which keys a journal has. NATS can say so of a whole stream at once only, in an answer of any size. So a consumer looks at the last record
// of each key, without its contents and some hundreds at a time, and another one at all records of the keys of the page.

// Bounds of a list.
const (
	listTime     = 4 * time.Second
	listAgain    = 300 * time.Millisecond
	mostListed   = 500             // records that are looked at at once
	mostLists    = 2               // lists for members that are made at a time, of all bundles
	listingStays = time.Minute     // before the server drops what a keeper that was lost has begun
	sizeHeader   = "Nats-Msg-Size" // of what was left out
)

// errSlowList says that a list takes too long.
var errSlowList = fmt.Errorf("natscluster: %s was not listed within %v: it has too many keys, or does not answer; ask for one kind", whatJournal, listTime)

// List implements cluster.Log.
func (j *Journal) List(q cluster.KeyQuery, done func(cluster.KeyPage, error)) {
	j.listWithin(nil, q, done)
}

// listWithin is List, but for room: a list has some until done returns, or the error is cluster.ErrBusy. nil has room for all. A bundle has one
// list made at a time.
func (j *Journal) listWithin(room *semaphore.Weighted, q cluster.KeyQuery, done func(cluster.KeyPage, error)) {
	if !q.Valid() {
		go done(cluster.KeyPage{}, errQuery)
		return
	}
	j.do(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, listTime)
		defer cancel()
		short, end := context.WithTimeout(ctx, turnTime)
		defer end()
		select {
		case j.listing <- struct{}{}:
			defer func() { <-j.listing }()
		case <-short.Done():
			done(cluster.KeyPage{}, cluster.ErrBusy)
			return
		}
		if room != nil {
			if room.Acquire(short, 1) != nil {
				done(cluster.KeyPage{}, cluster.ErrBusy)
				return
			}
			defer room.Release(1)
		}
		page, err := j.list(ctx, q)
		for errors.Is(err, errRead) && ctx.Err() == nil {
			page, err = j.list(ctx, q)
		}
		if err != nil {
			page = cluster.KeyPage{}
			if ctx.Err() != nil {
				err = errSlowList
			}
		}
		done(page, err)
	}, func(err error) { done(cluster.KeyPage{}, err) })
}

var errQuery = errors.New("natscluster: that is no question for keys")

func (j *Journal) list(ctx context.Context, q cluster.KeyQuery) (page cluster.KeyPage, err error) {
	kind := "*"
	if q.Kind != "" {
		kind = string(parts.AppendSharedName(nil, q.Kind))
	}
	first := cluster.NewFirstKeys(q)
	if err := j.look(ctx, jetstream.DeliverLastPerSubjectPolicy, []string{j.prefix + "k." + kind + ".*"}, func(k cluster.KeyID, _ int64, _ time.Time) {
		first.Add(k)
	}); err != nil {
		return page, err
	}
	keys, more := first.Keys()
	if page.More = more; len(keys) == 0 {
		return page, nil
	}
	at, subjects := map[cluster.KeyID]int{}, []string{}
	for i, k := range keys {
		at[k] = i
		page.Keys = append(page.Keys, cluster.KeyInfo{KeyID: k})
		subjects = append(subjects, j.key(k.Kind, k.Name))
	}
	return page, j.look(ctx, jetstream.DeliverAllPolicy, subjects, func(k cluster.KeyID, bytes int64, stored time.Time) {
		if i, ok := at[k]; ok {
			x := &page.Keys[i]
			x.Records, x.Bytes, x.Last = x.Records+1, x.Bytes+bytes, max(x.Last, stored.UnixNano())
		}
	})
}

// look looks at the records of keys that there are, without their contents.
func (j *Journal) look(ctx context.Context, which jetstream.DeliverPolicy, subjects []string, each func(k cluster.KeyID, bytes int64, stored time.Time)) error {
	js, err := jetstream.New(j.nc)
	if err != nil {
		return err
	}
	c, err := js.CreateConsumer(ctx, j.stream, jetstream.ConsumerConfig{
		DeliverPolicy: which, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: listingStays, FilterSubjects: subjects,
	})
	if err != nil {
		return fmt.Errorf("natscluster: %s cannot be listed: %w", whatJournal, j.c.why(err))
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		_ = js.DeleteConsumer(end, j.stream, c.CachedInfo().Name)
	}()
	number := uint64(0)
	for left := c.CachedInfo().NumPending; left > 0; {
		// A consumer that has just begun on another keeper may miss a request: it is made again.
		batch, err := c.Fetch(int(min(left, mostListed)), jetstream.FetchMaxWait(listAgain))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			is, err := m.Metadata()
			if err != nil {
				return err
			}
			if number++; is.Sequence.Consumer != number {
				return errRead // something was lost on the way
			}
			left = is.NumPending
			if k, ok := j.keyOf(m.Subject()); ok {
				size, _ := strconv.ParseInt(last(m.Headers(), sizeHeader), 10, 64)
				each(k, max(size, 0), is.Timestamp)
			}
		}
		if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoHeartbeat) && !errors.Is(err, nats.ErrTimeout) {
			return errors.Join(errRead, err)
		}
		if ctx.Err() != nil {
			return errRead
		}
	}
	return nil
}

// keyOf is the key of a subject; false: it is none that a node writes.
func (j *Journal) keyOf(subject string) (k cluster.KeyID, ok bool) {
	rest, ok := strings.CutPrefix(subject, j.prefix+"k.")
	kind, name, cut := strings.Cut(rest, ".")
	if !ok || !cut {
		return k, false
	}
	if k.Kind, ok = nameOfToken(kind); ok {
		k.Name, ok = nameOfToken(name)
	}
	return k, ok && j.key(k.Kind, k.Name) == subject
}

// nameOfToken is the inverse of service.AppendSharedName, for what that may have written and some others.
func nameOfToken(token string) (string, bool) {
	var name []byte
	for i := 0; i < len(token); i++ {
		if token[i] != '~' {
			name = append(name, token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", false
		}
		b, err := hex.DecodeString(token[i+1 : i+3])
		if err != nil {
			return "", false
		}
		name, i = append(name, b...), i+2
	}
	return string(name), true
}

// asks is the request for a page of keys: the key behind which they are is its kind, a slash, and its name.
func asksKeys(q cluster.KeyQuery) keeperRequest {
	r := keeperRequest{Op: keysList, Kind: q.Kind, Record: []byte(q.Prefix), At: uint64(q.Most)}
	if q.After.Kind != "" {
		r.Name = q.After.Kind + "/" + q.After.Name
	}
	return r
}

// keyQuery is what a request asks for.
func (r *keeperRequest) keyQuery() (q cluster.KeyQuery, ok bool) {
	q = cluster.KeyQuery{Kind: r.Kind, Prefix: string(r.Record), Most: int(min(r.At, cluster.MaxKeys+1))}
	if r.Name != "" {
		if q.After.Kind, q.After.Name, ok = strings.Cut(r.Name, "/"); !ok {
			return q, false
		}
	}
	return q, r.Shard == 0 && q.Valid()
}

// listed answers with a page.
func listed(p cluster.KeyPage) (a keeperAnswer) {
	a.More = p.More
	for _, k := range p.Keys {
		a.List = append(a.List, keeperEntry{Record: []byte(k.Kind), Name: k.Name, Count: k.Records, Bytes: k.Bytes, Time: k.Last})
	}
	return a
}

// pageOf is a page that was answered. The error is errAnswers if it is none of the query.
func (a *keeperAnswer) pageOf(q cluster.KeyQuery) (p cluster.KeyPage, err error) {
	p.More = a.More
	seen := q.After
	for _, e := range a.List {
		k := cluster.KeyInfo{KeyID: cluster.KeyID{Kind: string(e.Record), Name: e.Name}, Records: e.Count, Bytes: e.Bytes, Last: e.Time}
		one := cluster.KeyQuery{Kind: k.Kind, Prefix: k.Name, After: k.KeyID, Most: 1}
		if len(p.Keys) == q.Most || k.Kind == "" || !one.Valid() || !seen.Before(k.KeyID) || q.Kind != "" && q.Kind != k.Kind || !strings.HasPrefix(k.Name, q.Prefix) || k.Records < 0 || k.Bytes < 0 {
			return cluster.KeyPage{}, errAnswers
		}
		p.Keys, seen = append(p.Keys, k), k.KeyID
	}
	if a.More && len(p.Keys) == 0 {
		return cluster.KeyPage{}, errAnswers
	}
	return p, nil
}

// List implements cluster.Log.
func (a *asking) List(q cluster.KeyQuery, done func(cluster.KeyPage, error)) {
	if !q.Valid() {
		go done(cluster.KeyPage{}, errQuery)
		return
	}
	b := mustEncode(asksKeys(q))
	a.do(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, listTime+turnTime)
		defer cancel()
		x, err := a.c.askOnce(ctx, a.subject, "a list of "+whatJournal, b)
		if err != nil {
			done(cluster.KeyPage{}, err)
			return
		}
		done(x.pageOf(q))
	}, func(err error) { done(cluster.KeyPage{}, err) })
}
