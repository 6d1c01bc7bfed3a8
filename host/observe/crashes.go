package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/internal/glob"
)

// Crash is a crash report in a line.
type Crash struct {
	ID          string    `json:"id"`
	Time        time.Time `json:"time"`
	Path        string    `json:"path"`
	Ref         string    `json:"ref"`
	Type        string    `json:"type"`
	Incarnation uint64    `json:"incarnation"`
	Kind        string    `json:"kind"`   // of the failure, such as trap
	Reason      string    `json:"reason"` // what the failure says, its first line
	Cause       string    `json:"cause"`  // kind and reason without numbers: reports of one cause have it in common
	Decided     string    `json:"decided,omitempty"`
	DelayNS     int64     `json:"delay_ns,omitempty"` // before the restart
}

// CrashCause sums up the reports of a type with one cause.
type CrashCause struct {
	Type  string    `json:"type"`
	Cause string    `json:"cause"`
	Kept  int       `json:"kept"`
	Ever  uint64    `json:"ever"` // since the oldest that is kept
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	ID    string    `json:"id"` // of the newest
}

// CrashPage is a part of the reports that match, newest first, and the causes of all that match.
type CrashPage struct {
	Version int          `json:"version"`
	Now     time.Time    `json:"now"`
	Total   int          `json:"total"` // that match
	Ever    uint64       `json:"ever"`  // since the start
	Lost    uint64       `json:"lost"`  // came too fast to be kept
	Crashes []Crash      `json:"crashes"`
	Causes  []CrashCause `json:"causes"` // most frequent first, at most MaxLimit
}

// CrashReport is a crash report in full.
type CrashReport struct {
	Version int     `json:"version"`
	Crash   Crash   `json:"crash"`
	Report  RawJSON `json:"report"` // the JSON of the event
}

// CrashQuery asks for crash reports: those that match every list that is not empty.
type CrashQuery struct {
	Paths  []string // globs as in Select
	Types  []string
	Kinds  []string // globs on the kind of failure
	Causes []string // globs on the cause, or the reason
	Since  time.Time
	Offset int
	Limit  int // 1 to MaxLimit; 0 is 100
}

type crashMatcher struct {
	paths                []pathGlob
	types, kinds, causes []string
	since                time.Time
}

func (q CrashQuery) compile() (*crashMatcher, error) {
	m := &crashMatcher{types: q.Types, kinds: q.Kinds, causes: q.Causes, since: q.Since}
	if len(q.Types) > maxPatterns || len(q.Kinds) > maxPatterns || len(q.Causes) > maxPatterns {
		return nil, invalid("more than %d types, kinds or causes", maxPatterns)
	}
	if q.Offset < 0 {
		return nil, invalid("an offset of %d", q.Offset)
	}
	var err error
	m.paths, err = compilePaths(q.Paths)
	return m, err
}

func (m *crashMatcher) match(c *Crash) bool {
	some := func(patterns []string, texts ...string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(texts, func(s string) bool { return glob.MatchAny(patterns, s) })
	}
	return matchAny(m.paths, c.Path) && some(m.types, c.Type) && some(m.kinds, c.Kind) && some(m.causes, c.Cause, c.Reason) && !c.Time.Before(m.since)
}

// Crashes are the crash reports that are kept and match.
func (o *Observer) Crashes(q CrashQuery) (CrashPage, error) {
	m, err := q.compile()
	if err != nil {
		return CrashPage{}, err
	}
	limit, err := limitOf(q.Limit)
	if err != nil {
		return CrashPage{}, err
	}
	c := o.crashes
	p := CrashPage{Version: Version, Now: o.sys.Clock().Now().UTC(), Crashes: []Crash{}, Causes: []CrashCause{}, Lost: c.sub.Dropped()}
	causes := map[[2]string]*CrashCause{}
	c.mu.Lock()
	all := c.all()
	p.Ever = c.ever + p.Lost
	for _, e := range slices.Backward(all) {
		if !m.match(&e.Crash) {
			continue
		}
		if p.Total++; p.Total > q.Offset && len(p.Crashes) < limit {
			p.Crashes = append(p.Crashes, e.Crash)
		}
		g := causes[[2]string{e.Type, e.Cause}]
		if g == nil {
			g = &CrashCause{Type: e.Type, Cause: e.Cause, ID: e.ID, Last: e.Time, Ever: c.of[e.Type].of[e.Cause].ever}
			causes[[2]string{e.Type, e.Cause}] = g
		}
		g.Kept++
		g.First = e.Time
	}
	c.mu.Unlock()
	for _, g := range causes {
		p.Causes = append(p.Causes, *g)
	}
	slices.SortFunc(p.Causes, func(a, b CrashCause) int {
		return cmp.Or(cmp.Compare(b.Ever, a.Ever), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Cause, b.Cause))
	})
	p.Causes = p.Causes[:min(len(p.Causes), MaxLimit)]
	return p, nil
}

// CrashReport is the report with an id, as failures of asks and the gateway's header
// X-Crash-Report state it. It fails with ErrNoReport if it is not kept.
func (o *Observer) CrashReport(id string) (CrashReport, error) {
	id = strings.ToLower(strings.TrimSpace(id))
	c := o.crashes
	c.mu.Lock()
	e := c.ids[id]
	c.mu.Unlock()
	if e == nil {
		return CrashReport{}, noReport(id)
	}
	raw, err := e.json()
	return CrashReport{Version: Version, Crash: e.Crash, Report: RawJSON(raw)}, err
}
