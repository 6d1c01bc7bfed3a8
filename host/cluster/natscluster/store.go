package natscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/histogram"
)

// A store is a stream that keeps the last value of each key. All changes have one order, which is that of the stream. What
// has changed is told by the stream's leader to whoever listens, and whoever has missed something reads on from where it was.

const (
	putTime   = 2 * time.Second
	readTime  = time.Second
	lookEvery = time.Second // for changes of which nobody has told
	batch     = 512         // entries that are read at once
	mostPuts  = 256         // under way
	maxKey    = 1600        // of a table: two names, of which each byte may take three
	maxValue  = 512 << 10
)

// underWay is the code of an error for which the client's library has no name: another change of the key, which is under way between
// the servers, was before this one.
const underWay jetstream.ErrorCode = 10164

// With this code and text the server refuses what does not fit any more, before anything is written.
const (
	storeFailed jetstream.ErrorCode = 10077
	storeFull                       = "maximum bytes exceeded"
)

var (
	errBusy  = fmt.Errorf("natscluster: too many changes are under way; %w", service.ErrNotWritten)
	errShut  = fmt.Errorf("natscluster: the node has left the cluster; %w", service.ErrNotWritten)
	errValue = fmt.Errorf("natscluster: keys have 1 to %d characters of A-Z a-z 0-9 _ . ~ - and do not begin or end with '.'; values have %d bytes at most; %w", maxKey, maxValue, service.ErrNotWritten)
)

type store struct {
	nc     *nats.Conn
	what   string // that does not answer
	stream string
	prefix string // of the subjects of keys, with '.'
	told   string // of those on which changes are told
	keys   int    // bytes of a key, at most
	size   int64  // bytes of all, at most
	names  bool   // keys are names in which '=' stands for bytes that a subject cannot have
	ends   bool   // values may be forgotten after a time
	aside  bool   // it is made aside, and no event says that it takes time

	// trouble is called with what the last change came to: nil if the store has answered.
	trouble func(error)
	why     func(error) error    // what is behind the error of a request
	took    *histogram.Histogram // nil: it is not measured

	under atomic.Int64
	wrong atomic.Pointer[error] // why the stream is not what it should be; nil: it is
	mu    sync.Mutex
	shut  bool
	wait  sync.WaitGroup
	over  chan struct{}
}

// streamConfig is the stream's.
func (s *store) streamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.stream, Subjects: []string{s.prefix + ">"}, Retention: jetstream.LimitsPolicy, MaxMsgsPerSubject: 1, MaxMsgSize: maxValue + 1024,
		MaxBytes: s.size, AllowMsgTTL: s.ends, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: replicas, AllowDirect: true, DenyDelete: true,
		RePublish: &jetstream.RePublish{Source: s.prefix + ">", Destination: s.told + ">"},
	}
}

// validKey reports whether a key may be written here. Those of the directory have '=', too: see shard.Key.
func (s *store) validKey(key string) bool {
	if s.names {
		key = strings.ReplaceAll(key, "=", "_")
	}
	return validKey(key, s.keys)
}

func validKey(key string, most int) bool {
	if key == "" || len(key) > most || key[0] == '.' || key[len(key)-1] == '.' || strings.Contains(key, "..") {
		return false
	}
	for i := range len(key) {
		c := key[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '~' || c == '.') {
			return false
		}
	}
	return true
}

// begin says whether something may be begun, which ends with wait.Done.
func (s *store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.wait.Add(1)
	return true
}

func (s *store) close() {
	s.mu.Lock()
	if !s.shut {
		s.shut = true
		close(s.over)
	}
	s.mu.Unlock()
	s.wait.Wait()
}

// Put implements cluster.Directory.
func (s *store) Put(key string, value []byte, revision uint64, done func(uint64, error)) {
	s.putFor(key, value, revision, 0, done)
}

// putFor is Put of a value that is forgotten after so many seconds; 0: never.
func (s *store) putFor(key string, value []byte, revision uint64, stay int64, done func(uint64, error)) {
	switch {
	case !s.validKey(key) || len(value) > maxValue:
		go done(0, errValue)
		return
	case !s.begin():
		go done(0, errShut)
		return
	case s.under.Add(1) > mostPuts:
		s.under.Add(-1)
		s.wait.Done()
		go done(0, errBusy)
		return
	}
	value = append([]byte(nil), value...)
	go func() {
		defer s.wait.Done()
		began := time.Now()
		at, err := s.put(key, value, revision, stay)
		if s.took != nil {
			s.took.Observe(time.Since(began))
		}
		s.under.Add(-1)
		if errors.Is(err, cluster.ErrConflict) {
			s.trouble(nil)
		} else {
			s.trouble(err)
		}
		done(at, err)
	}()
}

func (s *store) put(key string, value []byte, revision uint64, stay int64) (uint64, error) {
	m := nats.NewMsg(s.prefix + key)
	m.Data = value
	if stay > 0 {
		m.Header.Set(jetstream.MsgTTLHeader, strconv.FormatInt(stay, 10))
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(revision, 10))
	m.Header.Set(jetstream.ExpectedStreamHeader, s.stream)
	ctx, cancel := context.WithTimeout(context.Background(), putTime)
	defer cancel()
	r, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("natscluster: %s does not answer: %w", s.what, s.why(err))
	}
	at, err := acknowledged(r.Data, s.stream)
	switch {
	case err == nil:
		return at, nil
	case isAfter(err):
		return 0, cluster.ErrConflict
	case isFull(err):
		err = service.ErrFull
	}
	return 0, fmt.Errorf("natscluster: %s: %w", s.what, err)
}

// acknowledged is the sequence of what was stored, as a stream's leader answers. The error is a *jetstream.APIError if it says why not.
func acknowledged(b []byte, stream string) (uint64, error) {
	var ack struct {
		Seq    uint64              `json:"seq"`
		Stream string              `json:"stream"`
		Error  *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(b, &ack); {
	case err != nil:
		return 0, err
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream != stream || ack.Seq == 0:
		return 0, errors.New("the answer is none")
	}
	return ack.Seq, nil
}

// isAfter says that something else was stored before, which is not what was expected.
func isAfter(err error) bool {
	var x *jetstream.APIError
	return errors.As(err, &x) && (x.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || x.ErrorCode == underWay)
}

// isFull says that something does not fit any more.
func isFull(err error) bool {
	var x *jetstream.APIError
	return errors.As(err, &x) && x.ErrorCode == storeFailed && x.Description == storeFull
}

// Watch implements cluster.Directory.
func (s *store) Watch(each func(cluster.Entry)) (stop func()) {
	return s.follow(each, func() {})
}

// follow is Watch, and calls ready after all that there was.
func (s *store) follow(each func(cluster.Entry), ready func()) (stop func()) {
	if !s.begin() {
		return func() {}
	}
	w := &watch{store: s, each: each, ready: ready, over: make(chan struct{}), news: make(chan *nats.Msg, 1024)}
	go w.run()
	return sync.OnceFunc(func() { close(w.over) })
}

// watch is one of a store.
type watch struct {
	*store
	each  func(cluster.Entry)
	ready func() // nil: it was called
	over  chan struct{}
	news  chan *nats.Msg
	seen  uint64 // all up to this sequence was told
	of    string // what keys begin with that are read, with '.'; "": all
	bytes int    // that are read at once, about; 0: as many as there are
}

func (w *watch) run() {
	defer w.wait.Done()
	sub, err := w.nc.ChanSubscribe(w.told+">", w.news)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	behind := true
	for {
		if behind {
			behind = !w.read()
		}
		if !behind && w.ready != nil {
			w.ready()
			w.ready = nil
		}
		var again <-chan time.Time
		if behind {
			again = time.After(20 * time.Millisecond)
		}
		select {
		case <-w.over:
			return
		case <-w.store.over:
			return
		case m := <-w.news:
			switch e, ok := w.entry(m); {
			case !ok && e.Revision == w.seen+1:
				w.seen++
			case ok && e.Revision == w.seen+1:
				w.tell(e)
			case e.Revision > w.seen || e.Revision == 0:
				behind = true
			}
		case <-tick.C:
			behind = true
		case <-again:
		}
	}
}

// mostLines bounds the headers of an entry: those of a node and of the server are fewer.
const mostLines = 24

// whole says whether a message has all the headers that the server has added to those with which it was stored. A member that
// writes an empty line into its own hides them: then there is more of it than was read.
func whole(m *nats.Msg) bool {
	lines := 0
	for _, v := range m.Header {
		lines += len(v)
	}
	read := nats.Msg{Subject: m.Subject, Reply: m.Reply, Header: m.Header, Data: m.Data}
	return lines > 0 && lines <= mostLines && m.Size() <= read.Size()
}

// last is the header that the server has added: it does so after those with which a message was stored.
func last(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// entry is a change as the server tells it; false if no node writes such. Then it has its revision, 0 if that is not known.
func (w *watch) entry(m *nats.Msg) (e cluster.Entry, ok bool) {
	if !whole(m) {
		return e, false
	}
	at, err := strconv.ParseUint(last(m.Header, jetstream.SequenceHeader), 10, 64)
	key, ours := strings.CutPrefix(last(m.Header, jetstream.SubjectHeader), w.prefix)
	switch {
	case err != nil:
		return e, false
	case !ours || !w.validKey(key) || len(m.Data) > maxValue:
		return cluster.Entry{Revision: at}, false
	}
	return cluster.Entry{Key: key, Value: m.Data, Revision: at}, at > 0
}

func (w *watch) tell(e cluster.Entry) {
	w.seen = e.Revision
	w.each(e)
}

// read tells of what has changed since; false if that failed, or there is more.
func (w *watch) read() bool {
	inbox := w.nc.NewInbox()
	sub, err := w.nc.SubscribeSync(inbox)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }()
	ask := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q,"batch":%d,"max_bytes":%d}`, w.seen+1, w.prefix+w.of+">", batch, w.bytes)
	if w.nc.PublishRequest("$JS.API.DIRECT.GET."+w.stream, inbox, ask) != nil {
		return false
	}
	until := time.Now().Add(readTime)
	for n := 0; ; n++ {
		m, err := sub.NextMsg(time.Until(until))
		if err != nil {
			return false
		}
		if len(m.Header[jetstream.SequenceHeader]) == 0 && whole(m) {
			switch m.Header.Get("Status") {
			case "404": // there is nothing after it
				return true
			case "204":
				at, err1 := strconv.ParseUint(m.Header.Get(jetstream.LastSequenceHeader), 10, 64)
				left, err2 := strconv.ParseUint(m.Header.Get(numPending), 10, 64)
				if err1 != nil || err2 != nil {
					return n < batch
				}
				w.seen = max(w.seen, at) // also past what no node writes
				return left == 0
			}
			return false
		}
		switch e, ok := w.entry(m); {
		case !ok:
			w.seen = max(w.seen, e.Revision)
		case e.Revision > w.seen:
			w.tell(e)
		}
	}
}

// changes are those of keys that begin with of, after a sequence, up to another one: as many as have about so many bytes. more says that
// there are, or may be, others; with none and at = since, nothing has answered in time.
func (s *store) changes(of string, since uint64, bytes int) (list []cluster.Entry, at uint64, more bool) {
	w := &watch{store: s, of: of, bytes: bytes, seen: since, each: func(e cluster.Entry) { list = append(list, e) }}
	more = !w.read()
	return list, w.seen, more
}

// numPending is the header that says how many entries were not read.
const numPending = "Nats-Num-Pending"

// get is the value of a key, and the revision of its last change, from the stream's leader; nil and 0 if there is none.
func (s *store) get(ctx context.Context, key string) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+s.stream, fmt.Appendf(nil, `{"last_by_subj":%q}`, s.prefix+key))
	if err != nil {
		return nil, 0, s.why(err)
	}
	var got struct {
		Message *struct {
			Data []byte `json:"data"`
			Seq  uint64 `json:"seq"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(r.Data, &got); {
	case err != nil:
		return nil, 0, err
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, 0, nil
	case got.Error != nil:
		return nil, 0, got.Error
	case got.Message == nil:
		return nil, 0, errors.New("natscluster: the directory's answer is none")
	}
	return got.Message.Data, got.Message.Seq, nil
}
