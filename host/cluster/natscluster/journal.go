package natscluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
	parts "github.com/wasmactors/wasmactors/host/service"
)

// The events of the keys of a bundle that are spread are in a stream of the bundle: a subject for each key, with its records, and one for
// each shard, with its last fence. A record is published with the sequence of the fence that its writer knows, and the server compares that
// with the last one of the fence's subject before it stores the record. Keepers have an account for these streams to which no other node
// connects: others ask a keeper, see journalserve.go.

// Bounds of a bundle's journal.
const (
	maxJournal   = 2 << 30        // bytes
	leastRoom    = maxJournal / 8 // is left for records that replace others
	mostJournals = 16             // bundles
	mostAppends  = 2 * mostPuts   // under way
	mostReads    = 32             // keys that are read at a time; others wait
	mostAtOnce   = 256            // records that are read at once
	bytesAtOnce  = 2 << 20        // of those, about
	lookForRoom  = time.Second    // while something is appended
	upToSequence = "Nats-UpTo-Sequence"
)

// streamJournal is the stream of a bundle: names of bundles may be longer than those of streams.
func (d *Description) streamJournal(bundle string) string {
	sum := sha256.Sum256([]byte(bundle))
	return d.stream() + "_J_" + hexName(string(sum[:16]))
}

// subjectsOf are the subjects of a bundle's journal.
func (d *Description) subjectsOf(bundle string) string {
	return string(parts.AppendSharedName([]byte(d.subject()+".k."), bundle)) + "."
}

func (c *Cluster) journalConfig(bundle string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: c.id.streamJournal(bundle), Description: "events of the keys of bundle " + bundle, Subjects: []string{c.id.subjectsOf(bundle) + ">"},
		Retention: jetstream.LimitsPolicy, MaxMsgsPerSubject: -1, MaxMsgSize: cluster.MaxRecord + 4096, MaxBytes: maxJournal, Discard: jetstream.DiscardNew,
		Storage: jetstream.FileStorage, Replicas: max(1, len(c.id.Keepers)), AllowDirect: true, DenyDelete: true, AllowRollup: true,
	}
}

const whatJournal = "the journal of the cluster's keys"

// Journal is the log of a bundle's keys. It implements cluster.Log, and may be used by any goroutine.
type Journal struct {
	c      *Cluster
	nc     *nats.Conn
	stream string
	prefix string
	under  atomic.Int64
	reads  chan struct{} // has one for each key that is being read
	looked atomic.Int64  // when it was last asked how much room there is, ns since 1970
	bytes  atomic.Uint64 // that it had then
	full   atomic.Bool

	listing chan struct{} // has one while keys are listed
}

func (j *Journal) fence(kind string, shard int) string {
	return string(parts.AppendSharedName([]byte(j.prefix+"e."), kind)) + "." + strconv.Itoa(shard)
}

func (j *Journal) key(kind, name string) string {
	return string(parts.AppendSharedName(append(parts.AppendSharedName([]byte(j.prefix+"k."), kind), '.'), name))
}

// do has f done by a goroutine, whose context ends with the node's place in the cluster.
func (j *Journal) do(f func(context.Context), refused func(error)) {
	j.c.journals.do(&j.under, f, refused)
}

// Last implements cluster.Log.
func (j *Journal) Last(kind string, shard int, done func([]byte, uint64, error)) {
	j.do(func(ctx context.Context) {
		s := &store{nc: j.nc, stream: j.stream, why: j.c.why}
		done(s.get(ctx, j.fence(kind, shard)))
	}, func(err error) { done(nil, 0, err) })
}

// Fence implements cluster.Log.
func (j *Journal) Fence(kind string, shard int, fence []byte, after uint64, done func(uint64, error)) {
	j.publish(j.fence(kind, shard), fence, after, "", true, done)
}

// Append implements cluster.Log.
func (j *Journal) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	if j.room(); j.full.Load() {
		go done(0, cluster.ErrFull)
		return
	}
	j.publish(j.key(kind, name), record, fence, j.fence(kind, shard), false, done)
}

// Spare implements cluster.Log.
func (j *Journal) Spare(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	if len(record) > cluster.MaxSpare {
		go done(0, fmt.Errorf("natscluster: a record of %d bytes, at most %d where there is room for no other", len(record), cluster.MaxSpare))
		return
	}
	j.publish(j.key(kind, name), record, fence, j.fence(kind, shard), false, done)
}

// Replace implements cluster.Log.
func (j *Journal) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	j.publish(j.key(kind, name), record, after, "", true, done)
}

// publish stores a record if the last one of a subject, of its own unless another is given, has the sequence. whole replaces all that its
// own subject has.
func (j *Journal) publish(subject string, record []byte, last uint64, of string, whole bool, done func(uint64, error)) {
	if len(record) > cluster.MaxRecord {
		go done(0, fmt.Errorf("natscluster: a record of %d bytes, at most %d", len(record), cluster.MaxRecord))
		return
	}
	m := nats.NewMsg(subject)
	m.Data = slices.Clone(record)
	m.Header.Set(jetstream.ExpectedStreamHeader, j.stream)
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	if of != "" {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", of)
	}
	if whole {
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	j.do(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, putTime)
		defer cancel()
		r, err := j.nc.RequestMsgWithContext(ctx, m)
		if err != nil {
			done(0, fmt.Errorf("natscluster: %s does not answer: %w", whatJournal, j.c.why(err)))
			return
		}
		done(j.acknowledged(r.Data))
	}, func(err error) { done(0, err) })
}

// acknowledged reads the server's answer to a record.
func (j *Journal) acknowledged(b []byte) (uint64, error) {
	at, err := acknowledged(b, j.stream)
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return at, nil
	case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return 0, cluster.ErrFenced
	case errors.As(err, &refused) && refused.ErrorCode == underWay:
		return 0, cluster.ErrBusy
	case isFull(err):
		return 0, cluster.ErrFull
	}
	return 0, fmt.Errorf("natscluster: %s: %w", whatJournal, err)
}

// room has it found out, now and then, whether there is room for more than what replaces records.
func (j *Journal) room() {
	now, at := time.Now().UnixNano(), j.looked.Load()
	if now-at < int64(lookForRoom) || !j.looked.CompareAndSwap(at, now) {
		return
	}
	j.do(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		if is, err := stateOf(ctx, j.nc, j.stream); err == nil {
			j.bytes.Store(is.Bytes)
			j.full.Store(is.Bytes > maxJournal-leastRoom)
		}
	}, func(error) {})
}

// Size is how many bytes the bundle's journal had when it was last asked, and how many it may have. It has it asked again.
func (j *Journal) Size() (used, most uint64) {
	j.room()
	return j.bytes.Load(), maxJournal
}

var (
	errBehind = errors.New("natscluster: the copy that has answered is behind")
	errRead   = fmt.Errorf("natscluster: %s has not answered in time", whatJournal)
)

// Read implements cluster.Log.
func (j *Journal) Read(kind string, shard int, name string, least uint64, done func([]cluster.LogEntry, error)) {
	j.readWithin(nil, "", kind, shard, name, least, done)
}

// readWithin is Read in a turn of the bundle, which ends when done returns. The error is a *ShareError if there is none. nil has turns for all.
func (j *Journal) readWithin(room *turns, bundle, kind string, shard int, name string, least uint64, done func([]cluster.LogEntry, error)) {
	j.do(func(ctx context.Context) {
		select {
		case j.reads <- struct{}{}:
			defer func() { <-j.reads }()
		case <-ctx.Done():
			done(nil, errShut)
			return
		}
		if room != nil {
			short, cancel := context.WithTimeout(ctx, turnTime)
			err := room.begin(short, bundle)
			cancel()
			if err != nil {
				done(nil, err)
				return
			}
			defer room.end(bundle)
		}
		until, err := j.extent(ctx, j.fence(kind, shard), j.key(kind, name), least)
		if err != nil || until == 0 {
			done(nil, err)
			return
		}
		done(j.records(ctx, j.key(kind, name), until))
	}, func(err error) { done(nil, err) })
}

// extent is the last sequence of a key in a copy that has all up to least, 0 if it has none. The fence's subject is asked for, too,
// since a copy that finds nothing does not say how far it is.
func (j *Journal) extent(ctx context.Context, fence, key string, least uint64) (last uint64, err error) {
	ask, err := json.Marshal(map[string]any{"multi_last": []string{fence, key}})
	if err != nil {
		return 0, err
	}
	end, err := several(ctx, j.nc, j.stream, ask, func(subject string, at uint64, _ []byte) error {
		if subject == key {
			last = at
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if upTo, err := strconv.ParseUint(end.Get(upToSequence), 10, 64); err != nil || upTo < least {
		return 0, errBehind
	}
	return last, nil
}

// records are those of a key up to the sequence of one of them.
func (j *Journal) records(ctx context.Context, key string, until uint64) (list []cluster.LogEntry, err error) {
	seen, bytes := uint64(0), 0
	for seen < until {
		ask := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":%d}`, seen+1, key, mostAtOnce, bytesAtOnce)
		before := seen
		_, err := several(ctx, j.nc, j.stream, ask, func(subject string, at uint64, b []byte) error {
			if subject != key || at <= seen {
				return errBehind
			}
			if bytes += len(b); bytes > cluster.MaxRead {
				return cluster.ErrLong
			}
			seen, list = at, append(list, cluster.LogEntry{At: at, Record: b})
			return nil
		})
		switch {
		case err != nil:
			return nil, err
		case seen == before: // another copy has answered, or what was asked for was replaced
			return nil, errBehind
		}
	}
	return list, nil
}

// several reads what a copy of the stream answers to one request. end has the headers of its last message.
func several(ctx context.Context, nc *nats.Conn, stream string, ask []byte, each func(subject string, at uint64, b []byte) error) (end nats.Header, err error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, ask); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, errRead
		}
		if len(m.Header[jetstream.SequenceHeader]) == 0 && whole(m) {
			switch m.Header.Get("Status") {
			case "204":
				return m.Header, nil
			case "404":
				return m.Header, nil // it finds nothing, and does not say how far it is
			}
			return nil, errBehind
		}
		at, err := strconv.ParseUint(last(m.Header, jetstream.SequenceHeader), 10, 64)
		if err != nil || !whole(m) {
			return nil, fmt.Errorf("natscluster: %s has a record that no node writes", whatJournal)
		}
		if err := each(last(m.Header, jetstream.SubjectHeader), at, m.Data); err != nil {
			return nil, err
		}
	}
}
