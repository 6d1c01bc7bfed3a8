package observe

import "time"

// Store is where the durable actors of a system are kept.
type Store struct {
	Bytes   int64  `json:"bytes"` // of its files
	Limit   int64  `json:"limit"` // of them
	Full    bool   `json:"full,omitempty"`
	Failed  string `json:"failed,omitempty"` // why it has failed, for good: durable actors have stopped
	Waiting int64  `json:"waiting"`          // bytes of what leaves only once it is durable

	// Since the start.
	Records uint64 `json:"records"`
	Written uint64 `json:"written"` // bytes of records
	Refused uint64 `json:"refused"` // messages

	Since    int64 `json:"since"`     // bytes of records since the last checkpoint
	RepeatNS int64 `json:"repeat_ns"` // about how long it would take to repeat them

	Checkpoints       uint64 `json:"checkpoints"` // since the start
	CheckpointsFailed uint64 `json:"checkpoints_failed"`
	CheckpointBytes   int64  `json:"checkpoint_bytes"` // of the last one
	CheckpointActors  int    `json:"checkpoint_actors"`
	PauseNS           int64  `json:"pause_ns"`                   // for which durable actors rested for it
	CheckpointError   string `json:"checkpoint_error,omitempty"` // why the last try failed

	FailedAt time.Time `json:"-"`
}

// storeName is the store's name among what is down.
const storeName = "store"

// WithStore makes the observer tell of the store of durable actors. f is called by any goroutine; nil from it: there is none.
func (o Options) WithStore(f func() *Store) Options { o.store = f; return o }

// store tells of the store. One that has failed, or is full, makes the system not ready.
func (o *Observer) store(s *System) {
	if o.o.store == nil {
		return
	}
	s.Store = o.o.store()
	switch x := s.Store; {
	case x == nil:
	case x.Failed != "":
		s.Ready = false
		s.Down = append(s.Down, Outage{storeName, x.FailedAt.UTC(), line(x.Failed)})
	case x.Full:
		s.Ready = false
		s.Down = append(s.Down, Outage{storeName, s.Now, "it is full: raise store.size"})
	}
}
