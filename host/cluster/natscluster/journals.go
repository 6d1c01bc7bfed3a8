package natscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	open map[string]*opening
}

// opening is a journal that is open, or that is being opened.
type opening struct {
	turn  chan struct{} // has one while somebody opens it
	ready chan struct{} // is closed when it is open
	j     *Journal
}

func (x *journals) begins() {
	x.all, x.stop = context.WithCancel(context.Background())
	x.open = map[string]*opening{}
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
func (x *journals) of(bundle string) (*opening, error) {
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
	o = &opening{turn: make(chan struct{}, 1), ready: make(chan struct{})}
	x.open[bundle] = o
	return o, nil
}

// openJournals connects to where the journals are, and answers other nodes, on a keeper.
func (c *Cluster) openJournals() (err error) {
	if c.server == nil {
		if c.id.URL != "" {
			c.keys, err = c.connect(accountJournals)
		}
		return err
	}
	if c.keys, err = c.connect(accountJournals); err != nil {
		return err
	}
	return c.serveKeys()
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
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-o.ready:
		return o.j, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("natscluster: %s does not answer: %w", whatJournal, ctx.Err())
	}
	if o.j != nil {
		return o.j, nil
	}
	j := &Journal{c: c, nc: c.keys, stream: c.id.streamJournal(bundle), prefix: c.id.subjectsOf(bundle), reads: make(chan struct{}, mostReads)}
	if err := c.makeStreamOf(ctx, c.keys, whatJournal, c.journalConfig(bundle), false); err != nil {
		return nil, err
	}
	if err := j.adopt(ctx, bundle); err != nil {
		return nil, err
	}
	o.j = j
	close(o.ready)
	return j, nil
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
var errMoving = errors.New("natscluster: another node moves the events, too")

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
	from, err := earlier.Stream(once, j.c.id.earlierStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return j.copied(ctx, j.moved(), []byte("there was none"), done)
	}
	if err != nil {
		return err
	}
	if cfg := from.CachedInfo().Config; !cfg.Sealed {
		cfg.Sealed = true
		if _, err := earlier.UpdateStream(once, cfg); err != nil {
			return err
		}
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
	r, err := j.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+j.stream, nil)
	if err != nil {
		return 0, err
	}
	var info struct {
		State *struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := json.Unmarshal(r.Data, &info); err != nil || info.State == nil {
		return 0, errors.Join(errRead, err)
	}
	return info.State.Last, nil
}

// copied stores a record if the last one of the whole stream has a sequence: who moves the same at the same time has not.
func (j *Journal) copied(ctx context.Context, subject string, b []byte, last uint64) error {
	m := nats.NewMsg(subject)
	m.Data = b
	m.Header.Set(jetstream.ExpectedStreamHeader, j.stream)
	m.Header.Set(jetstream.ExpectedLastSeqHeader, fmt.Sprint(last))
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	r, err := j.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return err
	}
	if _, err = j.acknowledged(r.Data); errors.Is(err, cluster.ErrFenced) {
		err = errMoving
	}
	return err
}
