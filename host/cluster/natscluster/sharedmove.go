package natscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The release before kept what services share in streams of the account that all nodes use. A keeper seals such a stream, so that a node of
// the release before that still runs can change nothing there which would be left behind, and copies what it has into the stream of the same
// name in the keepers' account, whose revisions begin where those of the sealed one have ended: an entry's version only grows.

// sharedMoved is the key under which it is noted that all was copied, or that there was nothing. No node writes such a key.
const sharedMoved = "$moved"

// makeShares makes the stream of what a service shares, with what the release before has of it.
func (c *Cluster) makeShares(ctx context.Context, s *store) error {
	if c.server == nil {
		return c.makeStream(ctx, s)
	}
	return c.insist(ctx, s.what, s.aside, func() error { return c.makeSharesOnce(ctx, s) })
}

func (c *Cluster) makeSharesOnce(ctx context.Context, s *store) error {
	from, until, err := c.sealed(ctx, s)
	if err != nil {
		return err
	}
	cfg := s.streamConfig(max(1, len(c.id.Keepers)))
	if cfg.FirstSeq = 1; from != nil {
		cfg.FirstSeq = until + 1
	}
	if err := c.makeStreamOf(ctx, s.nc, s.what, cfg, s.aside); err != nil {
		return err
	}
	at, done, err := s.movesAlone(ctx)
	if err != nil || done {
		return err
	}
	text := "there was none"
	if from != nil {
		text = "moved"
		if at, err = s.move(ctx, from, at); err != nil {
			return err
		}
	}
	_, err = storeNext(ctx, s.nc, s.stream, &nats.Msg{Subject: s.prefix + sharedMoved, Data: []byte(text)}, at)
	return err
}

// sealed is the stream of the release before, and its last sequence, after which nothing can come; nil if there is none.
func (c *Cluster) sealed(ctx context.Context, s *store) (*store, uint64, error) {
	js, err := jetstream.New(c.nodes)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	if there, err := seal(ctx, js, s.stream); err != nil || !there {
		return nil, 0, err
	}
	is, err := stateOf(ctx, c.nodes, s.stream)
	return &store{nc: c.nodes, what: s.what, stream: s.stream, prefix: s.prefix, keys: s.keys, why: s.why}, is.Last, err
}

// seal has a stream take nothing more. It says whether there is one.
func seal(ctx context.Context, js jetstream.JetStream, name string) (there bool, err error) {
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if cfg := stream.CachedInfo().Config; !cfg.Sealed {
		cfg.Sealed = true
		_, err = js.UpdateStream(ctx, cfg)
	}
	return true, err
}

// stillMoves is how long the stream must not have grown before another keeper is taken to have given up.
const stillMoves = 2 * time.Second

// movesAlone waits until no other keeper seems to move values into the stream, and is its last sequence then. done says that all were moved.
func (s *store) movesAlone(ctx context.Context) (last uint64, done bool, err error) {
	for seen, since := uint64(0), time.Now(); ; {
		is, err := stateOf(ctx, s.nc, s.stream) // first: who stores something after this has others' attempts refused
		if err != nil {
			return 0, false, err
		}
		_, at, err := s.get(ctx, sharedMoved)
		switch {
		case err != nil || at > 0:
			return 0, at > 0, err
		case is.Messages == 0 || is.Last == seen && time.Since(since) > stillMoves:
			return is.Last, false, nil
		case is.Last != seen:
			seen, since = is.Last, time.Now()
		}
		select {
		case <-ctx.Done():
			return 0, false, ctx.Err()
		case <-time.After(reconnect):
		}
	}
}

// move copies all entries of a sealed stream, in their order, and is the sequence of the last copy. What another keeper has copied before it
// was killed is copied again: nobody else has written to the stream, or this fails.
func (s *store) move(ctx context.Context, from *store, at uint64) (uint64, error) {
	for next := uint64(1); ; {
		e, err := from.leaders(ctx, next)
		if err != nil || e == nil {
			return at, err
		}
		next = e.seq + 1
		if key, ok := strings.CutPrefix(e.Subject, s.prefix); !ok || !s.validKey(key) || len(e.Data) > maxValue {
			continue // no node writes such
		}
		m := &nats.Msg{Subject: e.Subject, Data: e.Data}
		if e.stay > 0 {
			m.Header = nats.Header{jetstream.MsgTTLHeader: {strconv.FormatInt(max(1, int64((e.stay-time.Since(e.time))/time.Second)), 10)}}
		}
		if at, err = storeNext(ctx, s.nc, s.stream, m, at); err != nil {
			return at, err
		}
	}
}

// stored is a message of a stream.
type stored struct {
	*nats.Msg
	seq  uint64
	time time.Time
	stay time.Duration // 0: for ever
}

// leaders is the first message of a key from a sequence on, as the stream's leader has it; nil if there is none.
func (s *store) leaders(ctx context.Context, from uint64) (*stored, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	r, err := s.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+s.stream, fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%q}`, from, s.prefix+">"))
	if err != nil {
		return nil, s.why(err)
	}
	var got struct {
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(r.Data, &got); {
	case err != nil:
		return nil, err
	case got.Error != nil && got.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, nil
	case got.Error != nil:
		return nil, got.Error
	case got.Message == nil || got.Message.Seq < from:
		return nil, errors.New("natscluster: the stream's answer is none")
	}
	x := got.Message
	m := &stored{Msg: &nats.Msg{Subject: x.Subject, Data: x.Data}, seq: x.Seq, time: x.Time}
	if len(x.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(x.Header)
		if stay, bad := strconv.ParseInt(h.Get(jetstream.MsgTTLHeader), 10, 64); err == nil && bad == nil && stay > 0 && stay <= longestStay {
			m.stay = time.Duration(stay) * time.Second
		}
	}
	return m, nil
}
