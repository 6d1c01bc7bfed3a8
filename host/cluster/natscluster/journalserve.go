package natscluster

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	parts "github.com/wasmactors/wasmactors/host/service"
)

// Nodes that keep nothing ask a keeper for the keys of a bundle, on a subject of the bundle, which they may only publish to if their token
// was for it. NATS lets a client name any subject for the answer, and what its server answers there is published by the server, which may
// do everything: so a member could have a stored message sent to the subject of another bundle. Such answers have headers of the server,
// or are JSON. A request has no headers and is CBOR, so none of them is one. For the same reason a keeper answers on inboxes only.

func (d *Description) subjectOfKeys() string { return d.subject() + ".q." }
func (d *Description) subjectKeys(bundle string) string {
	return string(parts.AppendSharedName([]byte(d.subjectOfKeys()), bundle))
}

// keysOp is what a keeper is asked to do.
type keysOp uint8

const (
	keysOpen keysOp = iota + 1
	keysLast
	keysFence
	keysAppend
	keysReplace
	keysRead
)

// keysRequest is one of a node.
type keysRequest struct {
	Op     keysOp `cbor:"1,keyasint"`
	Kind   string `cbor:"2,keyasint,omitempty"`
	Shard  int    `cbor:"3,keyasint,omitempty"`
	Name   string `cbor:"4,keyasint,omitempty"`
	Record []byte `cbor:"5,keyasint,omitempty"`
	At     uint64 `cbor:"6,keyasint,omitempty"` // the fence, what is to be replaced, or the least that a copy must have
}

// keysAnswer is a keeper's, or a part of it.
type keysAnswer struct {
	Code   uint8       `cbor:"1,keyasint,omitempty"` // of an error
	Text   string      `cbor:"2,keyasint,omitempty"`
	At     uint64      `cbor:"3,keyasint,omitempty"`
	Record []byte      `cbor:"4,keyasint,omitempty"` // the fence
	List   []keysEntry `cbor:"5,keyasint,omitempty"`
	Part   int         `cbor:"6,keyasint,omitempty"` // counts from 0
	More   bool        `cbor:"7,keyasint,omitempty"` // another part follows
}

type keysEntry struct {
	At     uint64 `cbor:"1,keyasint"`
	Record []byte `cbor:"2,keyasint"`
}

var keysDecoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 1 << 16, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// Errors as they travel: positions in this list, from 1 on. Of any other one it is not known what has been done.
var keysErrors = []error{cluster.ErrFenced, cluster.ErrBusy, cluster.ErrFull, cluster.ErrLong, errBehind}

// Bounds of what is asked.
const (
	unknownError  = 255
	mostAsked     = 512       // requests that wait at a keeper
	bytesAsked    = 64 << 20  // of those
	bytesUnder    = 128 << 20 // of requests that are carried out
	bytesOfAPart  = 960 << 10 // of records in one answer, unless it has one
	mostText      = 512       // of an error, in bytes
	mostShards    = 4096
	mostOpening   = 64 // requests that wait for a journal to open
	partOverhead  = 32 // of a record in an answer
	keepersAnswer = "keepers"
)

// valid says whether a node asks for that.
func (r *keysRequest) valid() bool {
	named, record := r.Name != "" && len(r.Name) <= abi.MaxName, len(r.Record) <= cluster.MaxRecord
	kind := r.Kind != "" && len(r.Kind) <= abi.MaxName && r.Shard >= 0 && r.Shard < mostShards
	switch r.Op {
	case keysOpen:
		return r.Kind == "" && r.Name == "" && len(r.Record) == 0
	case keysLast:
		return kind && r.Name == "" && len(r.Record) == 0
	case keysFence:
		return kind && record && r.Name == ""
	case keysAppend, keysReplace:
		return kind && record && named
	case keysRead:
		return kind && named && len(r.Record) == 0
	}
	return false
}

// bundleOfKeys is the bundle that a subject is of; "" if no node would write it so.
func (d *Description) bundleOfKeys(subject string) string {
	token, ok := strings.CutPrefix(subject, d.subjectOfKeys())
	var name []byte
	for i := 0; ok && i < len(token); i++ {
		if token[i] != '~' {
			name = append(name, token[i])
			continue
		}
		if i+2 >= len(token) {
			return ""
		}
		b, err := hex.DecodeString(token[i+1 : i+3])
		if err != nil {
			return ""
		}
		name, i = append(name, b...), i+2
	}
	if !abi.ValidName(name) || d.subjectKeys(string(name)) != subject {
		return ""
	}
	return string(name)
}

// keysServer answers other nodes.
type keysServer struct {
	c       *Cluster
	opening atomic.Int64
	under   atomic.Int64 // bytes of requests that are carried out, of all bundles, at most bytesUnder
	refused refusals
}

func (c *Cluster) serveKeys() error {
	s := &keysServer{c: c, refused: refusals{event: c.event}}
	sub, err := c.nodes.QueueSubscribe(c.id.subjectOfKeys()+"*", keepersAnswer, s.asked)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(mostAsked, bytesAsked)
}

// decodeKeys reads a request. The text says what is wrong with it.
func (d *Description) decodeKeys(m *nats.Msg) (bundle string, r keysRequest, wrong string) {
	switch bundle = d.bundleOfKeys(m.Subject); {
	case bundle == "":
		return "", r, "it is of no bundle"
	case len(m.Header) > 0:
		return "", r, "it has headers, as what a server answers has"
	case !strings.HasPrefix(m.Reply, inboxes):
		return "", r, "it is not to be answered where a node reads"
	}
	if err := keysDecoder.Unmarshal(m.Data, &r); err != nil || !r.valid() {
		return "", r, "it is malformed"
	}
	return bundle, r, ""
}

// asked answers a request. It does not wait for the journal.
func (s *keysServer) asked(m *nats.Msg) {
	bundle, r, wrong := s.c.id.decodeKeys(m)
	if wrong != "" {
		s.refused.tell(0, "a request for the keys of a bundle was refused: "+wrong)
		return
	}
	o, err := s.c.journals.of(bundle)
	if err != nil {
		s.answer(m, keysAnswer{Code: unknownError, Text: err.Error()})
		return
	}
	bytes := int64(len(m.Data))
	if s.under.Add(bytes) > bytesUnder {
		s.under.Add(-bytes)
		s.fail(m, cluster.ErrBusy)
		return
	}
	select {
	case <-o.ready:
		s.carryOut(m, o.j, &r)
		return
	default:
	}
	if !s.c.journals.begin() {
		s.under.Add(-bytes)
		return
	}
	if s.opening.Add(1) > mostOpening {
		s.opening.Add(-1)
		s.under.Add(-bytes)
		s.c.journals.wait.Done()
		s.fail(m, cluster.ErrBusy)
		return
	}
	go func() {
		defer s.c.journals.wait.Done()
		defer s.opening.Add(-1)
		j, err := s.c.ownJournal(s.c.journals.all, bundle)
		if err != nil {
			s.under.Add(-bytes)
			s.answer(m, keysAnswer{Code: unknownError, Text: err.Error()})
			return
		}
		s.carryOut(m, j, &r)
	}()
}

// carryOut does what is asked, and gives the room for it back when that is answered.
func (s *keysServer) carryOut(m *nats.Msg, j *Journal, r *keysRequest) {
	over := func() { s.under.Add(-int64(len(m.Data))) }
	at := func(at uint64, err error) {
		defer over()
		if err != nil {
			s.fail(m, err)
			return
		}
		s.answer(m, keysAnswer{At: at})
	}
	switch r.Op {
	case keysOpen:
		used, _ := j.Size()
		at(used, nil)
	case keysLast:
		j.Last(r.Kind, r.Shard, func(b []byte, n uint64, err error) {
			defer over()
			if err != nil {
				s.fail(m, err)
				return
			}
			s.answer(m, keysAnswer{At: n, Record: b})
		})
	case keysFence:
		j.Fence(r.Kind, r.Shard, r.Record, r.At, at)
	case keysAppend:
		j.Append(r.Kind, r.Shard, r.At, r.Name, r.Record, at)
	case keysReplace:
		j.Replace(r.Kind, r.Name, r.Record, r.At, at)
	case keysRead:
		j.Read(r.Kind, r.Shard, r.Name, r.At, func(list []cluster.LogEntry, err error) {
			defer over()
			if err != nil {
				s.fail(m, err)
				return
			}
			s.parts(m, list)
		})
	}
}

// parts answers with records, as many at a time as fit into a packet.
func (s *keysServer) parts(m *nats.Msg, list []cluster.LogEntry) {
	for part := 0; ; part++ {
		a, bytes := keysAnswer{Part: part}, 0
		for len(list) > 0 && (bytes == 0 || bytes+len(list[0].Record)+partOverhead <= bytesOfAPart) {
			bytes += len(list[0].Record) + partOverhead
			a.List, list = append(a.List, keysEntry(list[0])), list[1:]
		}
		a.More = len(list) > 0
		s.answer(m, a)
		if !a.More {
			return
		}
	}
}

func (s *keysServer) fail(m *nats.Msg, err error) {
	for i, known := range keysErrors {
		if errors.Is(err, known) {
			s.answer(m, keysAnswer{Code: uint8(i + 1)})
			return
		}
	}
	text := err.Error()
	s.answer(m, keysAnswer{Code: unknownError, Text: text[:min(len(text), mostText)]})
}

func (s *keysServer) answer(m *nats.Msg, a keysAnswer) { _ = s.c.nodes.Publish(m.Reply, mustEncode(a)) }

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
		a.ask(keysRequest{Op: keysOpen}, func(x keysAnswer, err error) {
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
	for told := false; ; {
		_, err := a.once(ctx, keysRequest{Op: keysOpen})
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("natscluster: %s does not answer (%w): %s", whatJournal, ctx.Err(), c.waitsFor(err))
		}
		if !told {
			told = true
			c.event(cluster.Event{Kind: cluster.EventSilent, Text: c.waitsFor(err)})
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// errAnswers says that what has answered is no keeper.
var errAnswers = fmt.Errorf("natscluster: %s: the answer is none", whatJournal)

// decodeAnswer reads an answer, or a part of one.
func decodeAnswer(m *nats.Msg) (a keysAnswer, err error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return a, nats.ErrNoResponders
	}
	if len(m.Header) > 0 || keysDecoder.Unmarshal(m.Data, &a) != nil {
		return a, errAnswers
	}
	switch {
	case a.Code == 0:
		return a, nil
	case int(a.Code) <= len(keysErrors):
		return a, keysErrors[a.Code-1]
	}
	return a, fmt.Errorf("natscluster: %s: a keeper says %.512q", whatJournal, a.Text)
}

// once asks, and waits for the answer.
func (a *asking) once(ctx context.Context, r keysRequest) (keysAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	m, err := a.c.nodes.RequestWithContext(ctx, a.subject, mustEncode(r))
	if err != nil {
		return keysAnswer{}, fmt.Errorf("natscluster: %s does not answer: %w", whatJournal, a.c.why(err))
	}
	return decodeAnswer(m)
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

func (a *asking) ask(r keysRequest, done func(keysAnswer, error)) {
	if len(r.Record) > cluster.MaxRecord {
		go done(keysAnswer{}, fmt.Errorf("natscluster: a record of %d bytes, at most %d", len(r.Record), cluster.MaxRecord))
		return
	}
	r.Record = slices.Clone(r.Record)
	a.do(func(ctx context.Context) { done(a.once(ctx, r)) }, func(err error) { done(keysAnswer{}, err) })
}

func (a *asking) at(r keysRequest, done func(uint64, error)) {
	a.ask(r, func(x keysAnswer, err error) {
		if err == nil && x.At == 0 {
			err = errAnswers
		}
		done(x.At, err)
	})
}

// Last implements cluster.Log.
func (a *asking) Last(kind string, shard int, done func([]byte, uint64, error)) {
	a.ask(keysRequest{Op: keysLast, Kind: kind, Shard: shard}, func(x keysAnswer, err error) {
		if x.At == 0 {
			x.Record = nil
		}
		done(x.Record, x.At, err)
	})
}

// Fence implements cluster.Log.
func (a *asking) Fence(kind string, shard int, fence []byte, after uint64, done func(uint64, error)) {
	a.at(keysRequest{Op: keysFence, Kind: kind, Shard: shard, Record: fence, At: after}, done)
}

// Append implements cluster.Log.
func (a *asking) Append(kind string, shard int, fence uint64, name string, record []byte, done func(uint64, error)) {
	a.at(keysRequest{Op: keysAppend, Kind: kind, Shard: shard, Name: name, Record: record, At: fence}, done)
}

// Replace implements cluster.Log.
func (a *asking) Replace(kind, name string, record []byte, after uint64, done func(uint64, error)) {
	a.at(keysRequest{Op: keysReplace, Kind: kind, Name: name, Record: record, At: after}, done)
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
		done(a.read(ctx, keysRequest{Op: keysRead, Kind: kind, Shard: shard, Name: name, At: least}))
	}, func(err error) { done(nil, err) })
}

func (a *asking) read(ctx context.Context, r keysRequest) (list []cluster.LogEntry, err error) {
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
			return nil, err
		}
		if x.Part != part || x.More && len(x.List) == 0 {
			return nil, errAnswers
		}
		for _, e := range x.List {
			if bytes += len(e.Record); bytes > cluster.MaxRead {
				return nil, cluster.ErrLong
			}
			list = append(list, cluster.LogEntry(e))
		}
		if !x.More {
			return list, nil
		}
	}
}
