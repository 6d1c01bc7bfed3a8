package admin

import (
	"context"
	"errors"
	"net/http"
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
