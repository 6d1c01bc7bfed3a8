package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

// owner is an actor that sets entries: its path, its grant in this process, and how many entries
// the grant may have.
type owner struct {
	path  string
	grant uint64
	quota int
	once  *once.Request // nil: the request has no key
}

// set makes or changes an entry. Setting an equal entry changes nothing, so that actors can set
// theirs whenever they start. A single time that has passed is refused: its run would never come. It
// returns when the entry is durable.
func (g *engine) set(o owner, e Entry, spec *Spec, onlyNew bool) (x *item, changed bool, err error) {
	g.mu.Lock()
	x, before, kept, written, err := g.enter(o, e, spec, onlyNew)
	g.mu.Unlock()
	if err != nil || written == nil {
		return x, x != nil && x != before, err
	}
	if err := written.wait(); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.requests.drop(kept)
		if g.items.get(o.path, e.Name) == x { // as if it had not been set
			g.forget(x)
			if before != nil {
				before.gone = false
				g.items.put(before)
				g.plan(before, g.now())
			}
		}
		return nil, false, unkept("the entry could not be kept", err)
	}
	return x, true, nil
}

func (g *engine) enter(o owner, e Entry, spec *Spec, onlyNew bool) (x, before *item, kept *keptRecord, b *batch, err error) {
	g.items.bind(o.path, o.grant)
	before = g.items.get(o.path, e.Name)
	switch {
	case g.closed:
		return nil, nil, nil, nil, service.Errorf(service.Unavailable, "the schedule is closing")
	case before != nil && onlyNew:
		return nil, nil, nil, nil, service.Errorf(service.Exists, "there is an entry %q already", e.Name)
	case before != nil && before.same(&e):
		return before, before, nil, nil, nil
	case before == nil && g.items.used(o.path, o.grant) >= o.quota:
		return nil, nil, nil, nil, service.Errorf(service.Quota, "%d entries, which is the limit; entries of the grant raises it", o.quota)
	case before == nil && g.items.n >= g.most:
		return nil, nil, nil, nil, service.Errorf(service.Quota, "%d entries of all actors, which is the limit; services.schedule.max-entries raises it", g.most)
	}
	now := g.clock.Now()
	if err := g.requests.room(o.path, o.once, now.UnixNano(), g.most, g.alive); err != nil {
		return nil, nil, nil, nil, err
	}
	x = &item{Entry: e, owner: o.path, grant: o.grant, created: now.UnixNano(), spec: spec, last: now.UnixNano(), doneTo: now.UnixNano(), place: -1}
	if before != nil {
		x.goOn(before)
	}
	if spec.Once() && spec.at <= x.last {
		return nil, nil, nil, nil, service.Errorf(service.BadRequest, "at %s: that time has passed, it is %s now", stamp(spec.at), stamp(now.UnixNano()))
	}
	next, _ := spec.Next(x.last)
	if kept, err = keptOf(o.path, o.once, now.UnixNano(), setAnswer{true, next}); err != nil {
		return nil, nil, nil, nil, err
	}
	if before != nil {
		g.forget(before)
	}
	g.items.put(x)
	r := x.record()
	b = g.keepFor(r, kept)
	if before != nil {
		g.stale++
	}
	g.plan(x, now.UnixNano())
	g.arm(now.UnixNano())
	return x, before, kept, b, nil
}

// goOn continues with the state of another item that runs at the same times.
func (x *item) goOn(before *item) {
	a, b := &x.Entry, &before.Entry
	if a.Cron == b.Cron && a.Every == b.Every && a.At == b.At && a.AtNS == b.AtNS && a.Zone == b.Zone && a.From == b.From {
		x.created, x.spec, x.last, x.doneTo = before.created, before.spec, before.last, before.doneTo
	}
}

// forget removes an item; a run in progress is not retried.
func (g *engine) forget(x *item) {
	x.gone = true
	x.next = 0
	g.due.set(x)
	g.items.remove(x)
	for _, r := range x.open {
		if r.again != nil && r.again.Stop() {
			r.again = nil
			delete(x.open, r.planned)
		}
	}
}

// cancel removes an entry. It returns when that is durable; false: there was none.
func (g *engine) cancel(o owner, of, name string) (bool, error) {
	g.mu.Lock()
	g.items.bind(o.path, o.grant)
	x := g.items.get(of, name)
	if x == nil {
		planned := g.items.get("", name)
		g.mu.Unlock()
		if planned != nil && planned.target() == of {
			return false, service.Errorf(service.ReadOnly, "the entry %q is declared in the manifest", name)
		}
		return false, nil
	}
	kept, err := keptOf(o.path, o.once, g.now(), cancelAnswer{true})
	if err == nil {
		err = g.requests.room(o.path, o.once, g.now(), g.most, g.alive)
	}
	if err != nil {
		g.mu.Unlock()
		return false, err
	}
	g.forget(x)
	b := g.keepFor(&record{Kind: wasCancelled, Owner: of, Name: name}, kept)
	g.arm(g.now())
	g.mu.Unlock()
	if err := b.wait(); err != nil {
		g.mu.Lock()
		g.requests.drop(kept)
		g.mu.Unlock()
		return false, unkept("that the entry is cancelled could not be kept, it may come back after a restart", err)
	}
	return true, nil
}

// keepFor is keep of a record that a request has led to; nil: one without a key.
func (g *engine) keepFor(r *record, kept *keptRecord) *batch {
	if kept != nil {
		g.requests.put(kept) // before keep, which may write all anew
		r.Request = kept
	}
	return g.keep(r)
}

// again is the answer of a request that was carried out before; nil: it was not.
func (g *engine) again(o owner) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests.find(o.path, o.once)
}

// View describes an entry.
type View struct {
	Entry
	Next     int64   `cbor:"next"` // ns since 1970; 0: none
	UnderWay int     `cbor:"under_way"`
	ReadOnly bool    `cbor:"read_only,omitempty"` // it is declared in the manifest
	Stats    outcome `cbor:"stats"`
}

func (x *item) view() View {
	v := View{Entry: x.Entry, UnderWay: len(x.open), ReadOnly: x.owner == "", Stats: x.stats}
	if x.To == "" {
		v.To = x.owner
	}
	if x.next != 0 {
		v.Next = x.next
	}
	return v
}

// find returns an actor's entry, or one of the manifest for it.
func (g *engine) find(o owner, of, name string) (View, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.items.bind(o.path, o.grant)
	x := g.items.get(of, name)
	if x == nil {
		if x = g.items.get("", name); x == nil || x.target() != of {
			return View{}, false
		}
	}
	return x.view(), true
}

// list returns the entries of an actor and those of the manifest for it, by name, after a given
// one.
func (g *engine) list(o owner, of, after string, limit int) (out []View, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.items.bind(o.path, o.grant)
	found := g.items.of(of)
	for _, x := range g.items.of("") {
		if x.target() == of {
			found = append(found, x)
		}
	}
	out = []View{}
	slices.SortFunc(found, func(a, b *item) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.owner, b.owner))
	})
	for _, x := range found {
		switch {
		case x.Name <= after && after != "":
		case len(out) == limit:
			return out, true
		default:
			out = append(out, x.view())
		}
	}
	return out, false
}

// unkept is the error of a change that the journal has not taken. The guest is not told the journal's path.
func unkept(text string, err error) error {
	if trouble := service.DiskTrouble(err); trouble != "" {
		text += ": " + trouble
	}
	return &service.Error{Code: service.Unavailable, Text: text, Err: err}
}
