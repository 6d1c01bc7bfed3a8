package admin

import (
	"fmt"
	"net/http"
	"os"

	"github.com/wasmactors/wasmactors/host/observe"
)

// Command is the body of a verb.
type Command struct {
	Select    observe.Select `json:"select"` // must name something
	DryRun    bool           `json:"dry_run,omitempty"`
	Subtree   bool           `json:"subtree,omitempty"`   // pause, unpause: all below, too
	Directive string         `json:"directive,omitempty"` // decide: resume, restart or stop
	Reason    string         `json:"reason,omitempty"`    // crash: what the failure says
	Kind      string         `json:"kind,omitempty"`      // crash: the kind of failure
}

// maxReason bounds a reason, in bytes.
const maxReason = 1000

// command carries out a verb.
func (s *Server) command(c *call, verb string) error {
	var cmd Command
	if err := c.decode(&cmd); err != nil {
		return err
	}
	if err := chosen(cmd.Select); err != nil {
		return err
	}
	if len(cmd.Reason) > maxReason {
		return bad("bad_body", fmt.Sprintf("a reason has at most %d bytes", maxReason), "")
	}
	out, err := s.at().model.Do(observe.Verb{Verb: verb, Select: cmd.Select, DryRun: cmd.DryRun, Subtree: cmd.Subtree, Directive: cmd.Directive, Reason: cmd.Reason, Kind: cmd.Kind})
	if err != nil {
		return err
	}
	if !cmd.DryRun {
		s.cfg.log.Info("an operator's command", "verb", verb, "changed", out.Done, "failed", out.Failed, "from", c.r.RemoteAddr)
	}
	return c.json(out)
}

// Ending is the answer to a shutdown.
type Ending struct {
	PID int `json:"pid"` // of the process that ends
}

// endAll begins the end of what runs.
func (s *Server) endAll(c *call) error {
	if s.cfg.shutdown == nil {
		return &Problem{http.StatusConflict, "no_shutdown", "this process does not end on demand", "signal it: wasmactors ps has its number"}
	}
	s.cfg.log.Info("an operator ends what runs", "from", c.r.RemoteAddr)
	err := c.json(Ending{os.Getpid()})
	s.cfg.shutdown()
	return err
}

// chosen refuses a selection that would mean everything by mistake, or take too much work.
func chosen(sel observe.Select) error {
	if sel.Empty() {
		return bad("no_selection", "select needs paths, types, states or refs", `{"select": {"paths": ["/user/**"]}} selects all`)
	}
	for name, n := range map[string]int{"paths": len(sel.Paths), "types": len(sel.Types), "states": len(sel.States), "refs": len(sel.Refs)} {
		if n > observe.MaxLimit {
			return bad("bad_body", fmt.Sprintf("select.%s has %d items; at most %d", name, n, observe.MaxLimit), "")
		}
	}
	return nil
}

// Redelivery is the body of a redelivery: it selects the dead letters with these numbers, or those that
// the other fields select; with no field set all that are kept.
type Redelivery struct {
	IDs     []uint64 `json:"ids,omitempty"`
	To      []string `json:"to,omitempty"`   // globs on the recipient's path
	From    []string `json:"from,omitempty"` // globs on the sender's path
	Reasons []string `json:"reasons,omitempty"`
	All     bool     `json:"all,omitempty"` // required if nothing else selects
	DryRun  bool     `json:"dry_run,omitempty"`
}

// redeliver sends dead letters again.
func (s *Server) redeliver(c *call) error {
	var r Redelivery
	if err := c.decode(&r); err != nil {
		return err
	}
	if len(r.IDs)+len(r.To)+len(r.From)+len(r.Reasons) == 0 && !r.All {
		return bad("no_selection", "ids, to, from or reasons are needed", `{"all": true} selects all`)
	}
	if len(r.IDs) > observe.MaxLimit || len(r.To)+len(r.From)+len(r.Reasons) > mostValues {
		return &Problem{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("at most %d ids and %d patterns", observe.MaxLimit, mostValues), ""}
	}
	q := observe.DeadQuery{IDs: r.IDs, To: r.To, From: r.From, Reasons: r.Reasons}
	if r.All {
		q.Reasons = append(q.Reasons, "*")
	}
	out, err := s.at().model.Redeliver(q, r.DryRun)
	if err != nil {
		return err
	}
	return c.json(out)
}
