package natscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/cluster"
	parts "github.com/wasmactors/wasmactors/host/service"
)

// Keepers have an account of their own for what bundles keep in the cluster: the events of keys, and what services share. Nodes that keep
// nothing ask a keeper, on a subject of the bundle, which they may only publish to if their token was for it. NATS lets a client name any
// subject for the answer, and what its server answers there is published by the server, which may do everything: so a member could have a
// stored message sent to the subject of another bundle. Such answers have headers of the server, or are JSON. A request has no headers and
// is CBOR, so none of them is one. For the same reason a keeper answers on inboxes only.

func (d *Description) subjectOfKeys() string { return d.subject() + ".q." }
func (d *Description) subjectKeys(bundle string) string {
	return string(parts.AppendSharedName([]byte(d.subjectOfKeys()), bundle))
}
func (d *Description) subjectOfValues() string { return d.subject() + ".v." }
func (d *Description) subjectValues(bundle string) string {
	return string(parts.AppendSharedName([]byte(d.subjectOfValues()), bundle))
}

// keeperOp is what a keeper is asked to do.
type keeperOp uint8

const (
	keysOpen keeperOp = iota + 1
	keysLast
	keysFence
	keysAppend
	keysReplace
	keysRead
	valuesOpen
	valuesPut
	valuesGet
	valuesWatch
	keysSpare
	keysList
)

// keeperRequest is one of a node.
type keeperRequest struct {
	Op     keeperOp `cbor:"1,keyasint"`
	Kind   string   `cbor:"2,keyasint,omitempty"` // of keys, or the service
	Shard  int      `cbor:"3,keyasint,omitempty"`
	Name   string   `cbor:"4,keyasint,omitempty"` // of a key
	Record []byte   `cbor:"5,keyasint,omitempty"` // or a value; none: it is removed
	At     uint64   `cbor:"6,keyasint,omitempty"` // the fence, what is to be replaced, the least that a copy must have, or what was seen
	Stay   int64    `cbor:"7,keyasint,omitempty"` // seconds after which a value is forgotten; 0: never
	Now    bool     `cbor:"8,keyasint,omitempty"` // the answer does not wait for a change
}

// keeperAnswer is a keeper's, or a part of it.
type keeperAnswer struct {
	Code   uint8         `cbor:"1,keyasint,omitempty"` // of an error
	Text   string        `cbor:"2,keyasint,omitempty"`
	At     uint64        `cbor:"3,keyasint,omitempty"`
	Record []byte        `cbor:"4,keyasint,omitempty"` // the fence, or a value
	List   []keeperEntry `cbor:"5,keyasint,omitempty"`
	Part   int           `cbor:"6,keyasint,omitempty"` // counts from 0
	More   bool          `cbor:"7,keyasint,omitempty"` // another part follows, or there are more changes
}

type keeperEntry struct {
	At     uint64 `cbor:"1,keyasint"`
	Record []byte `cbor:"2,keyasint"`
	Name   string `cbor:"3,keyasint,omitempty"`
	Count  int    `cbor:"4,keyasint,omitempty"` // records of a key that is listed, their bytes, and when the last was stored, ns since 1970
	Bytes  int64  `cbor:"5,keyasint,omitempty"`
	Time   int64  `cbor:"6,keyasint,omitempty"`
}

var keeperDecoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 1 << 16, MaxMapPairs: 16, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// Errors as they travel: positions in this list, from 1 on, so that it is only added to. Of any other one it is not known what has been done.
var keeperErrors = []error{cluster.ErrFenced, cluster.ErrBusy, cluster.ErrFull, cluster.ErrLong, errBehind, cluster.ErrConflict, parts.ErrFull, parts.ErrNotWritten}

// Bounds of what is asked.
const (
	unknownError  = 255
	notWritten    = 8         // the code of service.ErrNotWritten
	mostAsked     = 512       // requests that wait at a keeper
	bytesAsked    = 64 << 20  // of those
	bytesUnder    = 128 << 20 // of requests that are carried out
	bytesOfAPart  = 960 << 10 // of records in one answer, unless it has one
	mostText      = 512       // of an error, in bytes
	mostShards    = 4096
	mostKeysRead  = 8  // keys whose records are in memory to be answered, each with cluster.MaxRead bytes at most
	mostOpening   = 64 // requests that wait for a journal to open
	partOverhead  = 32 // of a record in an answer
	longestStay   = 1 << 32
	keepersAnswer = "keepers"
)

// valid says whether a node asks for that of the bundle.
func (r *keeperRequest) valid(bundle string) bool {
	named, record := r.Name != "" && len(r.Name) <= abi.MaxName, len(r.Record) <= cluster.MaxRecord
	kind := r.Kind != "" && len(r.Kind) <= abi.MaxName && r.Shard >= 0 && r.Shard < mostShards
	switch plain := r.Stay == 0 && !r.Now; r.Op {
	case keysOpen:
		return plain && r.Kind == "" && r.Name == "" && len(r.Record) == 0
	case keysLast:
		return plain && kind && r.Name == "" && len(r.Record) == 0
	case keysFence:
		return plain && kind && record && r.Name == ""
	case keysAppend, keysReplace:
		return plain && kind && record && named
	case keysSpare:
		return plain && kind && named && len(r.Record) <= cluster.MaxSpare
	case keysRead:
		return plain && kind && named && len(r.Record) == 0
	case keysList:
		_, ok := r.keyQuery()
		return plain && ok
	}
	if !slices.Contains(sharing, r.Kind) || r.Shard != 0 {
		return false
	}
	key := ofBundle(r.Name, bundle)
	switch r.Op {
	case valuesOpen:
		return r.Name == "" && len(r.Record) == 0 && r.At == 0 && r.Stay == 0 && !r.Now
	case valuesPut:
		return key && len(r.Record) <= maxValue && r.Stay >= 0 && r.Stay <= longestStay && !r.Now
	case valuesGet:
		return key && len(r.Record) == 0 && r.At == 0 && r.Stay == 0 && !r.Now
	case valuesWatch:
		return r.Name == "" && len(r.Record) == 0 && r.Stay == 0
	}
	return false
}

// ofValues says whether what is asked for is what services share.
func (r *keeperRequest) ofValues() bool { return r.Op >= valuesOpen && r.Op <= valuesWatch }

// ofBundle says whether a key of what services share is one, and of a bundle.
func ofBundle(key, bundle string) bool {
	return validKey(key, maxSharedKey) && strings.HasPrefix(key, string(parts.AppendSharedName(nil, bundle))+".")
}

// bundleAsked is the bundle that a subject of requests is of, and whether they are for what services share; "" if no node would write it so.
func (d *Description) bundleAsked(subject string) (bundle string, values bool) {
	token, ok := strings.CutPrefix(subject, d.subjectOfKeys())
	if !ok {
		token, values = strings.CutPrefix(subject, d.subjectOfValues())
		ok = values
	}
	if ok {
		bundle, ok = nameOfToken(token)
	}
	if !ok || !abi.ValidName([]byte(bundle)) || string(parts.AppendSharedName(nil, bundle)) != token {
		return "", values
	}
	return bundle, values
}

// keeperServer answers other nodes.
type keeperServer struct {
	c       *Cluster
	opening *quotas             // requests that wait for a journal to open
	under   *quotas             // bytes of requests that are carried out
	reads   *turns              // keys whose records are read and answered
	lists   *semaphore.Weighted // that are made, of all bundles
	refused refusals
	values  valuesServer
}

func newKeeperServer(c *Cluster) *keeperServer {
	s := &keeperServer{c: c, under: newQuotas(shareOfBytes, bytesUnder, bytesSure), opening: newQuotas(shareOfOpens, mostOpening, opensSure), reads: newTurns(mostKeysRead, mostKeysOf), lists: semaphore.NewWeighted(mostLists), refused: refusals{event: c.event}}
	s.values.begins()
	return s
}

// serve answers what other nodes ask on the subjects of bundles, until the connection is closed.
func (s *keeperServer) serve(subjects string) error {
	sub, err := s.c.nodes.QueueSubscribe(subjects+"*", keepersAnswer, s.asked)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(mostAsked, bytesAsked)
}

// decodeAsked reads a request. The text says what is wrong with it.
func (d *Description) decodeAsked(m *nats.Msg) (bundle string, r keeperRequest, wrong string) {
	bundle, values := d.bundleAsked(m.Subject)
	switch {
	case bundle == "":
		return "", r, "it is of no bundle"
	case len(m.Header) > 0:
		return "", r, "it has headers, as what a server answers has"
	case !strings.HasPrefix(m.Reply, inboxes):
		return "", r, "it is not to be answered where a node reads"
	}
	if err := keeperDecoder.Unmarshal(m.Data, &r); err != nil || !r.valid(bundle) || r.ofValues() != values {
		return "", r, "it is malformed"
	}
	return bundle, r, ""
}

// asked answers a request. It does not wait.
func (s *keeperServer) asked(m *nats.Msg) {
	bundle, r, wrong := s.c.id.decodeAsked(m)
	if wrong != "" {
		s.refused.tell(0, "a request for what a bundle keeps was refused: "+wrong)
		return
	}
	if err := s.under.take(bundle, int64(len(m.Data))); err != nil {
		s.refused.tell(0, err.Error())
		if r.ofValues() {
			s.fail(m, parts.ErrNotWritten)
		} else {
			s.fail(m, err)
		}
		return
	}
	if r.ofValues() {
		s.askedValues(m, bundle, &r)
	} else {
		s.askedKeys(m, bundle, &r)
	}
}

// over gives the room for a request back, when it is answered.
func (s *keeperServer) over(m *nats.Msg) {
	bundle, _ := s.c.id.bundleAsked(m.Subject)
	s.under.give(bundle, int64(len(m.Data)))
}

func (s *keeperServer) fail(m *nats.Msg, err error) {
	for i, known := range keeperErrors {
		if errors.Is(err, known) {
			a := keeperAnswer{Code: uint8(i + 1)}
			if share := (*ShareError)(nil); errors.As(err, &share) {
				a.Text = share.Of // nodes of the release before do not read it
			}
			s.answer(m, a)
			return
		}
	}
	text := err.Error()
	s.answer(m, keeperAnswer{Code: unknownError, Text: text[:min(len(text), mostText)]})
}

func (s *keeperServer) answer(m *nats.Msg, a keeperAnswer) {
	_ = s.c.nodes.Publish(m.Reply, mustEncode(a))
}

// errAnswers says that what has answered is no keeper.
var errAnswers = errors.New("natscluster: the answer of a keeper is none")

// decodeAnswer reads an answer, or a part of one.
func decodeAnswer(m *nats.Msg) (a keeperAnswer, err error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return a, nats.ErrNoResponders
	}
	if len(m.Header) > 0 || keeperDecoder.Unmarshal(m.Data, &a) != nil {
		return a, errAnswers
	}
	switch {
	case a.Code == 0:
		return a, nil
	case int(a.Code) > len(keeperErrors):
	case keeperErrors[a.Code-1] == cluster.ErrBusy && slices.Contains(shareTexts, a.Text):
		return a, &ShareError{Of: a.Text}
	default:
		return a, keeperErrors[a.Code-1]
	}
	return a, fmt.Errorf("natscluster: a keeper says %.512q", a.Text)
}

// askOnce asks a keeper, and waits for the answer until ctx ends. what is what does not answer then.
func (c *Cluster) askOnce(ctx context.Context, subject, what string, request []byte) (keeperAnswer, error) {
	m, err := c.nodes.RequestWithContext(ctx, subject, request)
	if err != nil {
		return keeperAnswer{}, fmt.Errorf("natscluster: %s does not answer: %w", what, c.why(err))
	}
	return decodeAnswer(m)
}

// askOpen asks until a keeper has opened something of a bundle, or ctx ends.
func (c *Cluster) askOpen(ctx context.Context, subject, what string, r keeperRequest) error {
	b := mustEncode(r)
	return c.insist(ctx, what, false, func() error {
		once, cancel := context.WithTimeout(ctx, putTime)
		defer cancel()
		_, err := c.askOnce(once, subject, what, b)
		return err
	})
}
