// Package schedule is the service that runs actors at set times: cron expressions, periods and
// single times, which outlive the actor, the process and a crash.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/plainjson"
)

// Settings are the manifest's services.schedule.
type Settings struct {
	Entries    map[string]Planned `manifest:"entries" doc:"entries by name; guests see them and cannot change them" key:"[A-Za-z0-9._-]{1,64}" what:"letters, digits, dots, dashes and underscores, at most 64" keyreach:"none"`
	Zone       string             `manifest:"zone" doc:"zone of entries that name none, such as Europe/Berlin; default UTC" reach:"none"`
	MaxEntries int                `manifest:"max-entries" doc:"entries of all actors together; default 100000" min:"1" max:"10000000"`
	AtOnce     int                `manifest:"at-once" doc:"runs under way at a time; default 256" min:"1" max:"10000"`
	PerActor   int                `manifest:"per-actor" doc:"runs under way at a time for one actor; default 16" min:"1" max:"10000"`
}

// Planned is an entry of the manifest.
type Planned struct {
	Actor    string        `manifest:"actor,required" doc:"path of the actor that it is for, such as /user/reports" reach:"none"`
	Cron     string        `manifest:"cron" doc:"when: five fields, or six with seconds before them, or @daily and its like" reach:"none"`
	Every    time.Duration `manifest:"every" doc:"when: again and again after so long"`
	At       string        `manifest:"at" doc:"when: a single time, 2027-01-02 15:04 or with a zone 2027-01-02T15:04:05+01:00" reach:"none"`
	Zone     string        `manifest:"zone" doc:"zone of cron and at, such as Europe/Berlin; default that of the settings" reach:"none"`
	Message  string        `manifest:"message" doc:"what the run carries, as JSON" reach:"none"`
	Delivery string        `manifest:"delivery" doc:"ask: until it is answered, at least once; once: an ask, at most once; tell: at most once; default ask" enum:"ask,once,tell"`
	Timeout  time.Duration `manifest:"timeout" doc:"how long an ask waits for its answer; default 30s"`
	Overlap  bool          `manifest:"overlap" doc:"a run may begin while another of the entry is under way"`
	Missed   string        `manifest:"missed" doc:"of runs that nobody was there for: once: one for all; skip: none that is late; all: each, the latest most; default once" enum:"once,skip,all"`
	Most     int           `manifest:"most" doc:"missed: all: how many; default 10" min:"1" max:"100"`
	Deadline time.Duration `manifest:"deadline" doc:"how late a run may begin; default any, with missed: skip a minute"`
}

// Grant is the manifest's capabilities.schedule of an actor.
type Grant struct {
	Entries int           `manifest:"entries" doc:"how many entries it may have; default 100" min:"1" max:"1000000"`
	Least   time.Duration `manifest:"least" doc:"the shortest time between two runs of an entry; default 1m"`
	Payload service.Size  `manifest:"payload" doc:"bytes that the payload of an entry may have; default 4KiB" min:"1" max:"65536"`
	To      []string      `manifest:"to" doc:"paths of other actors that its entries may be for, with * and a last **; it and those below it are always allowed" reach:"none"`
}

// Defaults of settings and grants.
const (
	DefaultMaxEntries = 100_000
	DefaultAtOnce     = 256
	DefaultPerActor   = 16
	DefaultEntries    = 100
	DefaultLeast      = time.Minute
	DefaultPayload    = 4 << 10
	MaxPayload        = 64 << 10
	MaxList           = 100 // entries in an answer
	MaxPreview        = 100 // times in an answer
)

// Service is the schedule.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "schedule", Doc: "runs actors at set times",
	Bounds:        service.Bounds{AtOnce: 64, Bytes: 1 << 20, Rate: 100, Burst: 1000, Timeout: 30 * time.Second},
	CheckSettings: func(s *Settings) error { _, err := s.planned(); return err },
	CheckGrant:    checkGrant,
	Open:          open,
})

func checkGrant(g *Grant) error {
	if g.Least != 0 && (g.Least < time.Second || g.Least > MaxPeriod) {
		return service.At("least", fmt.Errorf("%v: 1s to %v", g.Least, MaxPeriod))
	}
	for i, p := range g.To {
		if !strings.HasPrefix(p, "/user/") {
			return service.At(fmt.Sprintf("to[%d]", i), fmt.Errorf("%q is not the path of actors, such as /user/workers/*", p))
		}
	}
	return nil
}

// planned returns the entries of the manifest, checked.
func (s *Settings) planned() (map[string]Entry, error) {
	if _, err := location(s.Zone); err != nil {
		return nil, service.At("zone", err)
	}
	out := map[string]Entry{}
	for name, p := range s.Entries {
		at := func(key string, err error) error { return service.At("entries."+name+key, err) }
		e := Entry{
			Name: name, Cron: p.Cron, Every: p.Every, At: p.At, Zone: p.Zone, To: p.Actor, Delivery: Delivery(p.Delivery), Timeout: p.Timeout,
			Overlap: p.Overlap, Missed: Missed(p.Missed), Most: p.Most, Deadline: p.Deadline,
		}
		if e.Zone == "" && e.Every == 0 {
			e.Zone = s.Zone
		}
		if p.Message != "" {
			v, err := plainjson.Parse([]byte(p.Message))
			if err != nil {
				return nil, at(".message", fmt.Errorf("it is not JSON: %w", err))
			}
			if e.Payload, err = host.Encode(v); err != nil || len(e.Payload) > MaxPayload {
				return nil, at(".message", errors.Join(err, fmt.Errorf("at most %d bytes", MaxPayload)))
			}
		}
		if err := e.check(); err != nil {
			return nil, at("", err)
		}
		if !cleanPath(e.To) {
			return nil, at(".actor", fmt.Errorf("%q is not the path of an actor, such as /user/reports", e.To))
		}
		if _, err := e.spec(time.Unix(firstSecond, 0)); err != nil {
			return nil, at("", err)
		}
		out[name] = e
	}
	return out, nil
}

// provider is the running service.
type provider struct{ engine *engine }

func open(env *service.Env, s *Settings) (service.Provider[Grant], error) {
	manifest, err := s.planned()
	if err != nil {
		return nil, err
	}
	or := func(n, d int) int {
		if n <= 0 {
			return d
		}
		return n
	}
	g := newEngine(env.Clock, env.Log, or(s.MaxEntries, DefaultMaxEntries), or(s.AtOnce, DefaultAtOnce), or(s.PerActor, DefaultPerActor))
	deliver := &sender{env.System, env.Clock}
	g.send = deliver.send
	g.alive = func(path string, life abi.Ref) bool {
		ref, err := env.System.Lookup(path)
		return err == nil && ref.UID() == life
	}
	dir, err := env.StateDir()
	switch {
	case errors.Is(err, service.ErrNoState):
		env.Log.Debug("entries do not outlive this run: it keeps no state")
	case err != nil:
		return nil, err
	default:
		cut := int64(0)
		g.journal, cut, err = openJournal(dir, env.Rand, func(payload []byte) error {
			r, err := decodeRecord(payload)
			if err != nil {
				return err
			}
			return g.load(r)
		})
		if err != nil {
			return nil, fmt.Errorf("%w; the entries of guests are in it: bring it back from a backup, or remove it to begin without any", err)
		}
		if cut > 0 {
			env.Log.Warn("the end of the file of entries was not written whole and is cut off", "bytes", cut)
		}
	}
	if err := g.start(manifest); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return &provider{g}, nil
}

// Drain implements service.Drainer.
func (p *provider) Drain(ctx context.Context) { p.engine.drain(ctx) }

// Close implements service.Provider.
func (p *provider) Close(context.Context) error { return p.engine.close() }

type (
	setArgs struct {
		Entry
		OnlyNew bool `cbor:"only_new,omitempty"`
	}
	setAnswer struct {
		Changed bool  `cbor:"changed"`
		Next    int64 `cbor:"next"` // ns since 1970; 0: none
	}
	cancelAnswer struct {
		Cancelled bool `cbor:"cancelled"`
	}
	nameArgs struct {
		Name string `cbor:"name"`
		Of   string `cbor:"of,omitempty"`
	}
	listArgs struct {
		Of    string `cbor:"of,omitempty"`
		After string `cbor:"after,omitempty"`
		Limit int    `cbor:"limit,omitempty"`
	}
	listAnswer struct {
		Entries []View `cbor:"entries"`
		More    bool   `cbor:"more"`
	}
	previewArgs struct {
		Cron  string        `cbor:"cron,omitempty"`
		Every time.Duration `cbor:"every,omitempty"`
		At    string        `cbor:"at,omitempty"`
		Zone  string        `cbor:"zone,omitempty"`
		From  int64         `cbor:"from,omitempty"`
		N     int           `cbor:"n,omitempty"`
	}
)

// Serve implements service.Provider: what is written to the journal.
func (p *provider) Serve(_ context.Context, r *service.Request[Grant]) (any, error) {
	if r.Op == "set" || r.Op == "cancel" {
		if answer := p.engine.again(ownerOf(r)); answer != nil {
			return host.Raw(answer), nil
		}
	}
	switch r.Op {
	case "set":
		return p.set(r)
	case "cancel":
		var in nameArgs
		if err := r.Decode(&in); err != nil {
			return nil, err
		}
		of, err := ofWhom(r, in.Of)
		if err != nil {
			return nil, err
		}
		done, err := p.engine.cancel(ownerOf(r), of, in.Name)
		if err != nil {
			return nil, err
		}
		return cancelAnswer{done}, nil
	}
	return nil, r.Unknown()
}

// ServeNow implements service.Inline: what is only read.
func (p *provider) ServeNow(r *service.Request[Grant]) (answer any, err error, ok bool) {
	switch r.Op {
	case "get":
		answer, err = p.get(r)
	case "list":
		answer, err = p.list(r)
	case "preview":
		answer, err = p.preview(r)
	default:
		return nil, nil, false
	}
	return answer, err, true
}

func ownerOf(r *service.Request[Grant]) owner {
	quota := r.Grant.Entries
	if quota <= 0 {
		quota = DefaultEntries
	}
	return owner{r.Sender.Path(), r.GrantID(), quota, once.Of(r.Sender, r.Effect)}
}

// ofWhom returns the owner that a request is about: the sender, or an actor below it.
func ofWhom(r *service.Request[Grant], of string) (string, error) {
	self := r.Sender.Path()
	if of == "" || of == self {
		return self, nil
	}
	if len(of) > MaxPath || !cleanPath(of) || !within(of, self) {
		return "", service.Errorf(service.Denied, "of %.80q: an actor knows its own entries and those of actors below it", of)
	}
	return of, nil
}

func (p *provider) set(r *service.Request[Grant]) (any, error) {
	var in setArgs
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	bad := func(err error) error { return service.Errorf(service.BadRequest, "%w", err) }
	e := in.Entry
	self := r.Sender.Path()
	if err := e.check(); err != nil {
		return nil, bad(err)
	}
	switch most := int64(r.Grant.Payload); {
	case !cleanPath(self):
		return nil, service.Errorf(service.BadRequest, "%s has a name that the host chose, so its path may be gone later: an actor with entries must be named by its parent", self)
	case most == 0 && len(e.Payload) > DefaultPayload, most > 0 && int64(len(e.Payload)) > most:
		return nil, service.Errorf(service.TooLarge, "a payload of %d bytes; payload of the grant bounds it", len(e.Payload))
	case e.To == self:
		e.To = ""
	case e.To != "" && !within(e.To, self) && !allowed(r.Grant.To, e.To):
		return nil, service.Deny("to", "entries for %s", e.To)
	}
	spec, err := e.spec(p.engine.clock.Now())
	if err != nil {
		return nil, bad(err)
	}
	least := r.Grant.Least
	if least == 0 {
		least = DefaultLeast
	}
	if d := spec.Least(); !spec.Once() && d < least {
		return nil, service.Deny("least", "two runs within %v, at least %v must be between them", d, least)
	}
	x, changed, err := p.engine.set(ownerOf(r), e, spec, in.OnlyNew)
	if err != nil {
		return nil, err
	}
	return setAnswer{changed, p.engine.nextOf(x)}, nil
}

func allowed(patterns []string, path string) bool {
	return glob.MatchAnyPath(glob.CompilePaths(patterns), strings.Split(strings.TrimPrefix(path, "/"), "/"))
}

func (g *engine) nextOf(x *item) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return x.view().Next
}

func (p *provider) get(r *service.Request[Grant]) (any, error) {
	var in nameArgs
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	of, err := ofWhom(r, in.Of)
	if err != nil {
		return nil, err
	}
	v, ok := p.engine.find(ownerOf(r), of, in.Name)
	if !ok {
		return nil, service.Errorf(service.NotFound, "there is no entry %.80q", in.Name)
	}
	return v, nil
}

func (p *provider) list(r *service.Request[Grant]) (any, error) {
	in := listArgs{Limit: MaxList}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Limit < 1 || in.Limit > MaxList {
		return nil, service.Errorf(service.BadRequest, "limit %d: 1 to %d", in.Limit, MaxList)
	}
	of, err := ofWhom(r, in.Of)
	if err != nil {
		return nil, err
	}
	views, more := p.engine.list(ownerOf(r), of, in.After, in.Limit)
	return listAnswer{views, more}, nil
}

// preview answers with the next times of an entry without setting it.
func (p *provider) preview(r *service.Request[Grant]) (any, error) {
	in := previewArgs{N: 1}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.N < 1 || in.N > MaxPreview {
		return nil, service.Errorf(service.BadRequest, "n %d: 1 to %d", in.N, MaxPreview)
	}
	e := Entry{Name: "preview", Cron: in.Cron, Every: in.Every, At: in.At, Zone: in.Zone}
	spec, err := e.spec(p.engine.clock.Now())
	if err != nil {
		return nil, service.Errorf(service.BadRequest, "%w", err)
	}
	at := in.From
	if at == 0 {
		at = p.engine.now()
	}
	times := []int64{}
	for range in.N {
		next, ok := spec.Next(at)
		if !ok {
			break
		}
		times = append(times, next)
		at = next
	}
	return times, nil
}
