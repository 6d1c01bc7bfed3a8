package natscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	parts "github.com/wasmactors/wasmactors/host/service"
)

// journals are those of bundles that are open.
type journals struct {
	mu   sync.Mutex
	over bool
	wait sync.WaitGroup
	stop context.CancelFunc
	all  context.Context
	open map[string]*opening[*Journal]
}

// opening is something that is open, or that is being opened.
type opening[T any] struct {
	turn  chan struct{} // has one while somebody opens it
	ready chan struct{} // is closed when it is open
	it    T
}

func newOpening[T any]() *opening[T] {
	return &opening[T]{turn: make(chan struct{}, 1), ready: make(chan struct{})}
}

// opened is what was opened; false: it is not yet.
func (o *opening[T]) opened() (it T, ok bool) {
	select {
	case <-o.ready:
		return o.it, true
	default:
		return it, false
	}
}

// get opens it, unless it is open, when nobody else does so. what is what does not answer until ctx ends.
func (o *opening[T]) get(ctx context.Context, what string, open func() (T, error)) (it T, err error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-o.ready:
		return o.it, nil
	case <-ctx.Done():
		return it, fmt.Errorf("natscluster: %s does not answer: %w", what, ctx.Err())
	}
	if it, ok := o.opened(); ok {
		return it, nil
	}
	if it, err = open(); err != nil {
		return it, err
	}
	o.it = it
	close(o.ready)
	return it, nil
}

func (x *journals) begins() {
	x.all, x.stop = context.WithCancel(context.Background())
	x.open = map[string]*opening[*Journal]{}
}

func (x *journals) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.all == nil {
		return false
	}
	x.wait.Add(1)
	return true
}

func (x *journals) close() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	if x.stop != nil {
		x.stop()
	}
	x.wait.Wait()
}

// of is the place of a bundle's journal.
func (x *journals) of(bundle string) (*opening[*Journal], error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.open[bundle]
	switch {
	case o != nil:
		return o, nil
	case x.over:
		return nil, errShut
	case len(x.open) >= mostJournals:
		return nil, fmt.Errorf("natscluster: the cluster keeps the keys of %d bundles, at most %d", len(x.open), mostJournals)
	}
	o = newOpening[*Journal]()
	x.open[bundle] = o
	return o, nil
}

// openKept connects to where keepers keep what bundles have, and answers other nodes, on a keeper.
func (c *Cluster) openKept() (err error) {
	if c.server == nil && c.id.URL == "" {
		return nil
	}
	if c.keys, err = c.connect(accountJournals); err != nil {
		return err
	}
	if c.server == nil {
		if c.journals.begin() {
			go func() {
				defer c.journals.wait.Done()
				c.looksAtStreams(c.journals.all)
			}()
		}
		return nil
	}
	c.serves = newKeeperServer(c)
	c.makeShared()
	return c.serves.serve(c.id.subjectOfKeys())
}

// Journal opens the log of a bundle's keys, and waits for a majority of the keepers until ctx ends.
func (c *Cluster) Journal(ctx context.Context, bundle string) (cluster.Log, error) {
	if !abi.ValidName([]byte(bundle)) {
		return nil, fmt.Errorf("natscluster: %q is no name of a bundle", bundle)
	}
	if c.keys == nil {
		return c.askedJournal(ctx, bundle)
	}
	return c.ownJournal(ctx, bundle)
}

// ownJournal opens the log of a bundle where the streams are.
func (c *Cluster) ownJournal(ctx context.Context, bundle string) (*Journal, error) {
	o, err := c.journals.of(bundle)
	if err != nil {
		return nil, err
	}
	return o.get(ctx, whatJournal, func() (*Journal, error) {
		j := &Journal{c: c, nc: c.keys, stream: c.id.streamJournal(bundle), prefix: c.id.subjectsOf(bundle), reads: make(chan struct{}, mostReads), listing: make(chan struct{}, 1)}
		if err := c.makeStreamOf(ctx, c.keys, whatJournal, c.journalConfig(bundle), false); err != nil {
			return nil, err
		}
		return j, j.adopt(ctx, bundle)
	})
}

// The release before kept the keys of all bundles in one stream, which each node could read and delete. What a bundle has there is moved
// into its own stream before its journal opens: that stream is sealed first, so that a node of the release before that still runs can
// store nothing there which would be left behind.

func (d *Description) earlierStream() string { return d.stream() + "_JOURNAL" }

func (d *Description) earlierSubjects(bundle string) string {
	return string(parts.AppendSharedName([]byte(d.subject()+".j."), bundle)) + "."
}

// moved is the subject of a record which says that all was moved, or that there was nothing. Nothing else is stored before it.
func (j *Journal) moved() string { return j.prefix + "m" }

// adopt moves what the release before has of a bundle, and goes on with what another keeper has begun.
func (j *Journal) adopt(ctx context.Context, bundle string) error {
	for told := false; ; {
		err := j.adoptOnce(ctx, bundle)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("natscluster: the events of the release before, which are in stream %s, are not moved yet: %w", j.c.id.earlierStream(), err)
		}
		if !told {
			told = true
			j.c.event(cluster.Event{Kind: cluster.EventSilent, Text: fmt.Sprintf("events of the release before are moved into a stream of bundle %s: %v", bundle, err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// errMoving says that another keeper moves it at the same time.
var errMoving = errors.New("natscluster: another node moves what the release before has, too")

func (j *Journal) adoptOnce(ctx context.Context, bundle string) error {
	own := &store{nc: j.nc, stream: j.stream, why: j.c.why}
	if _, at, err := own.get(ctx, j.moved()); err != nil || at > 0 {
		return err
	}
	once, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	done, err := j.last(once)
	if err != nil {
		return err
	}
	earlier, err := jetstream.New(j.c.nodes)
	if err != nil {
		return err
	}
	there, err := seal(once, earlier, j.c.id.earlierStream())
	if err != nil {
		return err
	}
	if !there {
		return j.copied(ctx, j.moved(), []byte("there was none"), done)
	}
	prefix, seen, n := j.c.id.earlierSubjects(bundle), uint64(0), uint64(0)
	// The leader says how far it goes: copies answer, too, and one may be behind.
	_, until, err := (&store{nc: j.c.nodes, stream: j.c.id.earlierStream(), why: j.c.why}).get(ctx, prefix+">")
	if err != nil {
		return err
	}
	for seen < until {
		before := seen
		ask := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":%d}`, seen+1, prefix+">", mostAtOnce, bytesAtOnce)
		type record struct {
			subject string
			data    []byte
		}
		var list []record
		if _, err := several(ctx, j.c.nodes, j.c.id.earlierStream(), ask, func(subject string, at uint64, b []byte) error {
			if len(subject) <= len(prefix) || subject[:len(prefix)] != prefix || at <= seen {
				return errBehind
			}
			seen, list = at, append(list, record{subject[len(prefix):], b})
			return nil
		}); err != nil {
			return err
		}
		if seen == before {
			return errBehind
		}
		for _, r := range list {
			if n++; n <= done {
				continue
			}
			if err := j.copied(ctx, j.prefix+r.subject, r.data, n-1); err != nil {
				return err
			}
		}
	}
	if n < done {
		return errMoving
	}
	return j.copied(ctx, j.moved(), []byte("moved"), n)
}

// last is the last sequence of the stream.
func (j *Journal) last(ctx context.Context) (uint64, error) {
	is, err := stateOf(ctx, j.nc, j.stream)
	return is.Last, err
}

// copied stores a record if the last one of the whole stream has a sequence: who moves the same at the same time has not.
func (j *Journal) copied(ctx context.Context, subject string, b []byte, last uint64) error {
	_, err := storeNext(ctx, j.nc, j.stream, &nats.Msg{Subject: subject, Data: b}, last)
	return err
}

// streamState is what there is in a stream, as its leader knows.
type streamState struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	Last     uint64 `json:"last_seq"`
}

func stateOf(ctx context.Context, nc *nats.Conn, stream string) (is streamState, err error) {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	r, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, nil)
	if err != nil {
		return is, err
	}
	var info struct {
		State *streamState `json:"state"`
	}
	if err := json.Unmarshal(r.Data, &info); err != nil || info.State == nil {
		return is, errors.Join(errors.New("natscluster: the stream's answer is none"), err)
	}
	return *info.State, nil
}

// storeNext stores a message if the last one of the whole stream has a sequence, and is its own sequence. The error is errMoving if not.
func storeNext(ctx context.Context, nc *nats.Conn, stream string, m *nats.Msg, last uint64) (uint64, error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Set(jetstream.ExpectedStreamHeader, stream)
	m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(last, 10))
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	r, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, err
	}
	ack, err := acknowledged(r.Data, stream)
	if isAfter(err) {
		err = errMoving
	}
	return ack, err
}
