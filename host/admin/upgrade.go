package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Upgrade is the body of an upgrade.
type Upgrade struct {
	Module      string  `json:"module,omitempty"` // empty: the modules that have changed since they were read
	Wasm        []byte  `json:"wasm,omitempty"`   // the new code of the module, in base64
	Plan        bool    `json:"plan,omitempty"`   // only try, with copies of the actors
	Canary      float64 `json:"canary,omitempty"` // the part of the actors that goes first, 0 to 1
	Batch       int     `json:"batch,omitempty"`  // actors between two looks at the failures; 0: 100
	ProbationNS int64   `json:"probation_ns,omitempty"`
	MaxFailures int     `json:"max_failures,omitempty"` // crashes of the new code that are put up with
}

// UpgradeLine is a line of the answer to an upgrade: one of its fields is there.
type UpgradeLine struct {
	Step   *UpgradeStep   `json:"step,omitempty"`   // how far it is
	Report *UpgradeReport `json:"report,omitempty"` // the last line
	Error  *Problem       `json:"error,omitempty"`  // the last line: it could not begin, or go on
}

// UpgradeStep is how far an upgrade is.
type UpgradeStep struct {
	Module string `json:"module"`
	Stage  string `json:"stage"` // canary, all, probation or back

	Done    int   `json:"done"` // actors
	Of      int   `json:"of"`
	Crashes int   `json:"crashes"`
	LastsNS int64 `json:"lasts_ns,omitempty"` // probation
}

// UpgradeReport is what an upgrade has come to.
type UpgradeReport struct {
	PID     int             `json:"pid"`
	Plan    bool            `json:"plan"`
	Modules []UpgradeModule `json:"modules"` // those that had other code
}

// UpgradeModule is what has become of a module's actors.
type UpgradeModule struct {
	Module     string         `json:"module"`
	Before     string         `json:"before"` // SHA-256 of the code, in hexadecimal
	Now        string         `json:"now"`
	Types      []UpgradeType  `json:"types"`             // by name
	Actors     []UpgradeActor `json:"actors"`            // those with a failure, or that are restarted, by path; not all if they are many
	More       int            `json:"more,omitempty"`    // that the list does not have
	Stopped    string         `json:"stopped,omitempty"` // why it went no further
	RolledBack bool           `json:"rolled_back"`
	Crashes    int            `json:"crashes"` // of the new code
	P50NS      int64          `json:"p50_ns"`  // for how long actors have handled no message
	P99NS      int64          `json:"p99_ns"`
	MaxNS      int64          `json:"max_ns"`
}

// UpgradeType sums up the actors of a type.
type UpgradeType struct {
	Type   string         `json:"type"`
	Way    string         `json:"way"` // state, events or restart; empty: none is open
	Actors int            `json:"actors"`
	Did    map[string]int `json:"did"` // how many were: upgraded, restarted, kept (with their code), went back, paused
	Failed int            `json:"failed"`
	TimeNS int64          `json:"time_ns"` // together
}

// UpgradeActor is what has become of an actor.
type UpgradeActor struct {
	Path string `json:"path"`
	Type string `json:"type"`
	Way  string `json:"way"`
	Did  string `json:"did"`
	Why  string `json:"why,omitempty"`
	Sent string `json:"sent,omitempty"` // paused: what the new code has sent where the old code would have sent something else
	Old  string `json:"old,omitempty"`  // and what that is
}

// Bounds of a report.
const (
	mostUpgraded = 1000 // actors
	mostWhy      = 600  // bytes of a reason
)

// ReportOf is a report of package upgrade as this package shows it.
func ReportOf(module, before, now string, r *upgrade.Report) UpgradeModule {
	m := UpgradeModule{
		Module: module, Before: before, Now: now, Types: []UpgradeType{}, Actors: []UpgradeActor{}, Stopped: printable.Line(r.Stopped, mostWhy), RolledBack: r.RolledBack,
		Crashes: r.Crashes, P50NS: int64(r.P50), P99NS: int64(r.P99), MaxNS: int64(r.Max),
	}
	for _, t := range r.Types {
		m.Types = append(m.Types, UpgradeType{t.Type, string(t.Way), t.Actors, t.Did, t.Failed, t.Time})
	}
	for i := range r.Actors {
		a := &r.Actors[i]
		if (a.Did == upgrade.Upgraded || a.Did == upgrade.WouldBe) && a.Why == "" {
			continue
		}
		if len(m.Actors) == mostUpgraded {
			m.More++
			continue
		}
		x := UpgradeActor{Path: a.Path, Type: a.Type, Way: string(a.Way), Did: a.Did, Why: printable.Line(a.Why, mostWhy)}
		if d := a.Differ; d != nil {
			x.Sent, x.Old = printable.Line(d.Sent, mostWhy), printable.Line(d.Old, mostWhy)
		}
		m.Actors = append(m.Actors, x)
	}
	return m
}

// StepOf is a step of package upgrade as this package shows it.
func StepOf(module string, s upgrade.Step) UpgradeStep {
	return UpgradeStep{module, string(s.Stage), s.Done, s.Of, s.Crashes, int64(s.Lasts)}
}

// WithUpgrade lets callers with full access exchange the code of living actors. f is called by one goroutine at a time, and not
// together with that of WithReload; its context ends with the request. tell is called with what is under way. An error that is a *Problem
// is the answer as it is.
func (c Config) WithUpgrade(f func(ctx context.Context, u Upgrade, tell func(UpgradeStep)) (UpgradeReport, error)) Config {
	c.upgrade = f
	return c
}

// check refuses what means nothing.
func (u *Upgrade) check() error {
	switch {
	case (u.Module == "") != (len(u.Wasm) == 0):
		return bad("bad_body", "module and wasm go together", "without both, the modules that have changed are upgraded")
	case !(u.Canary >= 0 && u.Canary <= 1):
		return bad("bad_body", "canary is a part of all actors, of 0 to 1", "")
	case u.Batch < 0 || u.MaxFailures < 0 || u.ProbationNS < 0:
		return bad("bad_body", "batch, max_failures and probation_ns are not negative", "")
	}
	return nil
}

// upgrade exchanges the code of actors, and answers with lines.
func (s *Server) upgrade(c *call) error {
	var u Upgrade
	if err := c.decode(&u); err != nil {
		return err
	}
	if err := u.check(); err != nil {
		return err
	}
	if s.cfg.upgrade == nil {
		return &Problem{http.StatusConflict, "no_upgrade", "the code of what runs in this process cannot be exchanged", ""}
	}
	if !s.reloading.TryLock() {
		return &Problem{http.StatusTooManyRequests, "busy", "another reload or upgrade is under way", "try again when it has ended"}
	}
	defer s.reloading.Unlock()
	o, done, err := s.begin(c)
	if err != nil {
		return err
	}
	defer done()
	s.cfg.log.Info("an operator upgrades actors", "module", printable.Line(u.Module, 100), "bytes", len(u.Wasm), "plan", u.Plan, "from", c.r.RemoteAddr)
	ctx, cut := context.WithCancelCause(c.r.Context())
	defer cut(nil)
	put := func(l UpgradeLine) {
		err := o.write("", l)
		if err == nil {
			err = o.flush()
		}
		if err != nil {
			cut(fmt.Errorf("the caller has gone: %w", err))
		}
	}
	report, err := s.cfg.upgrade(ctx, u, func(step UpgradeStep) { put(UpgradeLine{Step: &step}) })
	if err != nil {
		put(UpgradeLine{Error: problemOf(err)})
		return nil
	}
	report.Modules = append([]UpgradeModule{}, report.Modules...)
	put(UpgradeLine{Report: &report})
	return nil
}
