package admin

import (
	"net/http"
	"time"
)

// Reload is the body of a reload.
type Reload struct {
	// Restart stops all that runs and starts it anew, with new state. Without it what has changed is replaced in its
	// place, and a change that needs more is refused.
	Restart bool `json:"restart,omitempty"`
}

// Reloaded is what a reload has changed.
type Reloaded struct {
	PID       int             `json:"pid"`
	Restarted bool            `json:"restarted"`
	Modules   []string        `json:"modules"` // with other code or limits
	Actors    []ReloadedActor `json:"actors"`  // that were changed in place
	Why       []string        `json:"why"`     // that all had to start anew; empty: it was only asked for
}

// ReloadedActor is an actor that a reload has changed.
type ReloadedActor struct {
	Path  string `json:"path"`
	Did   string `json:"did"` // restarted, started, stopped or replaced
	Why   string `json:"why,omitempty"`
	Error string `json:"error,omitempty"`

	Module string `json:"module,omitempty"` // it was changed because this one has other code
}

// reload has the bundle read again.
func (s *Server) reload(c *call) error {
	var r Reload
	if err := c.decode(&r); err != nil {
		return err
	}
	if s.cfg.reload == nil {
		return &Problem{http.StatusConflict, "no_reload", "what runs in this process cannot be read again", ""}
	}
	if !s.reloading.TryLock() {
		return &Problem{http.StatusTooManyRequests, "busy", "another reload is under way", "try again when it has ended"}
	}
	defer s.reloading.Unlock()
	s.cfg.log.Info("an operator reloads the bundle", "restart", r.Restart, "from", c.r.RemoteAddr)
	_ = c.rc.SetWriteDeadline(time.Time{}) // builds take as long as they take
	done, err := s.cfg.reload(c.r.Context(), r)
	_ = c.rc.SetWriteDeadline(now().Add(s.cfg.bounds.readTime))
	if err != nil {
		return err
	}
	// Lists without elements are lists.
	done.Modules = append([]string{}, done.Modules...)
	done.Actors = append([]ReloadedActor{}, done.Actors...)
	done.Why = append([]string{}, done.Why...)
	return c.json(done)
}
