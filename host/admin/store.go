package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/observe"
)

// Store is what a running system keeps its durable actors in.
type Store interface {
	// Actors are those that the store has, by path.
	Actors(ctx context.Context) ([]StoredActor, error)
	// Checkpoint has the state of all of them written, and gives back the space of what came before.
	Checkpoint(ctx context.Context) error
	// Events calls f with what actors have stored, and idle before it waits for more. It ends with the error of f or idle,
	// with the cause with which ctx ends, or when there is nothing more to come.
	Events(ctx context.Context, q EventQuery, f func(StoredEvent) error, idle func() error) error
}

// EventQuery says which events of actors that keep them: of an ID, or with a tag; of all IDs if both are "".
type EventQuery struct {
	ID, Tag string
	From    uint64 // number (of an ID) or offset (of a tag)
	Follow  bool   // also those to come: of an ID, or with a tag
}

// StoredEvent is an event that an actor has stored.
type StoredEvent struct {
	ID      string          `json:"id"`
	Number  uint64          `json:"number"`
	Offset  uint64          `json:"offset"`
	Type    string          `json:"type"` // with its version
	Tags    []string        `json:"tags,omitempty"`
	Time    time.Time       `json:"time"`
	Payload json.RawMessage `json:"payload"` // what the CBOR is in JSON
}

// StoredActor is what a store has of an actor.
type StoredActor struct {
	Path       string  `json:"path"`
	Type       string  `json:"type"`
	Ref        abi.Ref `json:"ref"`
	Ended      bool    `json:"ended,omitempty"` // it has stopped for good
	Records    int     `json:"records"`         // since the last checkpoint
	Bytes      int64   `json:"bytes"`           // of them
	Turns      uint64  `json:"turns"`
	Last       int64   `json:"last"`       // time of the last record, ns since 1970
	Checkpoint int64   `json:"checkpoint"` // bytes of its state in the last checkpoint, before they are compressed
}

// Stored is what a store has.
type Stored struct {
	observe.Store
	Actors []StoredActor `json:"actors"` // by path
}

// WithStore lets callers see what the store of durable actors has, and those with full access have a checkpoint made. f is
// called by any goroutine; nil from it: there is no store.
func (c Config) WithStore(f func() Store) Config { c.store = f; return c }

// checkpointTime is how long durable actors may take to come to rest for a checkpoint that a caller asks for.
const checkpointTime = 30 * time.Second

func (s *Server) store() (Store, error) {
	if s.cfg.store != nil {
		if x := s.cfg.store(); x != nil {
			return x, nil
		}
	}
	return nil, &Problem{http.StatusConflict, "no_store", "the system keeps no durable actors", "a bundle has a store with the key store"}
}

// stored answers what the store has. It is read for one caller at a time, in turn.
func (s *Server) stored(c *call) error {
	x, err := s.store()
	if err != nil {
		return err
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-c.r.Context().Done():
		return context.Cause(c.r.Context())
	}
	_ = c.rc.SetWriteDeadline(time.Time{})
	all, err := x.Actors(c.r.Context())
	_ = c.rc.SetWriteDeadline(now().Add(s.cfg.bounds.readTime))
	if err != nil {
		return err
	}
	done := Stored{Actors: append([]StoredActor{}, all...)}
	if x := s.at().model.System().Store; x != nil {
		done.Store = *x
	}
	return c.json(done)
}

// storedEvents answers what actors have stored, a line each, and with follow what they store from now on.
func (s *Server) storedEvents(c *call) error {
	x, err := s.store()
	if err != nil {
		return err
	}
	q := EventQuery{ID: c.query.Get("id"), Tag: c.query.Get("tag")}
	if q.Follow, err = c.flag("follow"); err != nil {
		return err
	}
	from, err := c.count("from", 1<<62)
	if err != nil {
		return err
	}
	q.From = uint64(from)
	switch {
	case q.ID != "" && q.Tag != "":
		return bad("bad_query", "id and tag are given", "ask for one of them")
	case q.Follow && q.ID == "" && q.Tag == "":
		return bad("bad_query", "follow needs id or tag", "say which events")
	}
	o, done, err := s.begin(c)
	if err != nil {
		return err
	}
	defer done()
	waiting := 0
	err = x.Events(c.r.Context(), q, func(e StoredEvent) error {
		if waiting++; waiting%atOnce == 0 {
			if err := o.flush(); err != nil {
				return err
			}
		}
		return o.write(strconv.FormatUint(e.Offset, 10), e)
	}, o.flush)
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if s.ctx.Err() != nil {
		reason = context.Cause(s.ctx).Error()
	}
	_ = o.write("", Notice{Event: "end", Reason: reason})
	_ = o.flush()
	return nil
}

// checkpoint has one made, and answers how the store is then.
func (s *Server) checkpoint(c *call) error {
	x, err := s.store()
	if err != nil {
		return err
	}
	s.cfg.log.Info("an operator asks for a checkpoint", "from", c.r.RemoteAddr)
	ctx, cancel := context.WithTimeout(c.r.Context(), checkpointTime)
	defer cancel()
	_ = c.rc.SetWriteDeadline(time.Time{})
	err = x.Checkpoint(ctx)
	_ = c.rc.SetWriteDeadline(now().Add(s.cfg.bounds.readTime))
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return &Problem{http.StatusServiceUnavailable, "no_checkpoint", err.Error(), "the log before goes on; try again when the actors have less to do"}
	}
	var done observe.Store
	if x := s.at().model.System().Store; x != nil {
		done = *x
	}
	return c.json(done)
}
