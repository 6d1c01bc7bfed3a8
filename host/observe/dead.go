package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// DeadLetter is a message that was not delivered.
type DeadLetter struct {
	ID        uint64    `json:"id"`
	Time      time.Time `json:"time"`
	Reason    string    `json:"reason"`
	Kind      string    `json:"kind"`
	From      string    `json:"from,omitempty"` // path, as far as it is known
	Sender    string    `json:"sender,omitempty"`
	To        string    `json:"to"` // path, or the number of a ref
	Recipient string    `json:"recipient,omitempty"`
	Key       string    `json:"key,omitempty"` // the manifest's key for the bound that was met
	Size      int       `json:"size"`          // of the payload
	Whole     bool      `json:"whole"`         // it is kept whole, and can be delivered again if it is a message
	Payload   RawJSON   `json:"payload,omitempty"`
}

// DeadPage is a part of the dead letters that are kept, oldest first.
type DeadPage struct {
	Version int          `json:"version"`
	Now     time.Time    `json:"now"`
	Total   int          `json:"total"` // that match
	Ever    uint64       `json:"ever"`  // since the start, of all kinds
	Letters []DeadLetter `json:"letters"`
}

// deadMatcher is a compiled DeadQuery.
type deadMatcher struct {
	ids      map[uint64]bool
	to, from []pathGlob
	reasons  []string
}

func (q DeadQuery) compile() (*deadMatcher, error) {
	m := &deadMatcher{reasons: q.Reasons}
	var err error
	if m.to, err = compilePaths(q.To); err != nil {
		return nil, err
	}
	if m.from, err = compilePaths(q.From); err != nil {
		return nil, err
	}
	if len(q.IDs) > maxRefs || len(q.Reasons) > maxPatterns {
		return nil, invalid("more than %d ids, or %d reasons", maxRefs, maxPatterns)
	}
	if len(q.IDs) > 0 {
		m.ids = map[uint64]bool{}
		for _, id := range q.IDs {
			m.ids[id] = true
		}
	}
	return m, nil
}

func (m *deadMatcher) match(d *host.DeadLetter) bool {
	return (m.ids == nil || m.ids[d.ID]) && matchAny(m.to, pathOf(d.Path)) && matchAny(m.from, d.From) &&
		(len(m.reasons) == 0 || glob.MatchAny(m.reasons, d.Reason.String()))
}

// pathOf is the path in what may be the text of a ref.
func pathOf(text string) string {
	if rest, ok := strings.CutPrefix(text, "wasm://"); ok {
		if at := strings.IndexByte(rest, '/'); at >= 0 {
			text = rest[at:]
		}
	}
	path, _, _ := strings.Cut(text, "#")
	return path
}

// DeadLetters are the dead letters that are kept and match.
func (o *Observer) DeadLetters(q DeadQuery) (DeadPage, error) {
	m, err := q.compile()
	if err != nil {
		return DeadPage{}, err
	}
	limit, err := limitOf(q.Limit)
	if err != nil {
		return DeadPage{}, err
	}
	if q.Offset < 0 {
		return DeadPage{}, invalid("an offset of %d", q.Offset)
	}
	all, ever := o.sys.DeadLetters()
	p := DeadPage{Version: Version, Now: o.sys.Clock().Now().UTC(), Ever: ever, Letters: []DeadLetter{}}
	for i := range all {
		if !m.match(&all[i]) {
			continue
		}
		if p.Total++; p.Total > q.Offset && len(p.Letters) < limit {
			p.Letters = append(p.Letters, o.letter(&all[i]))
		}
	}
	return p, nil
}

// mostPayload is how much of a payload is shown, in bytes.
const mostPayload = 64 << 10

func (o *Observer) letter(d *host.DeadLetter) DeadLetter {
	l := DeadLetter{
		ID: d.ID, Time: d.Time.UTC(), Reason: d.Reason.String(), Kind: d.Kind.String(), From: line(d.From), To: line(pathOf(d.To())), Key: d.Key,
		Size: d.Size, Whole: d.Whole,
	}
	if d.Sender != 0 {
		l.Sender = uidText(d.Sender)
	}
	if d.Recipient != 0 {
		l.Recipient = uidText(d.Recipient)
	}
	if len(d.Payload) < d.Size && d.Size <= mostPayload {
		if whole, err := o.sys.DeadLetter(d.ID); err == nil {
			d.Payload = whole.Payload
		}
	}
	if len(d.Payload) == d.Size {
		l.Payload = payloadJSON(d.Payload)
	}
	return l
}

// Redeliver delivers dead letters again, those that the query selects (Limit and Offset
// are ignored), oldest first. The query must select some: by ids, receiver, sender or reason.
func (o *Observer) Redeliver(q DeadQuery, dryRun bool) (Outcome, error) {
	if len(q.IDs)+len(q.To)+len(q.From)+len(q.Reasons) == 0 {
		return Outcome{}, invalid("which dead letters? Give ids, or paths of receivers (/** is all) or senders, or reasons")
	}
	m, err := q.compile()
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Version: Version, Verb: VerbRedeliver, DryRun: dryRun, Changed: []Change{}}
	all, _ := o.sys.DeadLetters()
	found := map[uint64]bool{}
	for i := range all {
		d := &all[i]
		if !m.match(d) {
			continue
		}
		found[d.ID] = true
		c := Change{ID: d.ID, Path: line(pathOf(d.To())), Ref: uidText(d.Recipient)}
		var to host.Ref
		if dryRun {
			err = o.sys.Operate().CanRedeliver(d.ID)
		} else {
			to, err = o.sys.Operate().Redeliver(d.ID)
		}
		switch {
		case err != nil:
			c.Error = reason(err)
		case dryRun:
			c.Did = "would be delivered again"
		default:
			c.Did, c.Path, c.Ref = "delivered again", to.Path(), refText(to)
		}
		out.add(c)
	}
	ids := slices.Clone(q.IDs)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if !found[id] {
			out.add(Change{ID: id, Error: "it is no longer kept, or not selected"})
		}
	}
	return out, nil
}
