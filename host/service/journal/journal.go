// Package journal is the service by which guests read the events of actors with `durable: events`: page by page, by actor or
// by tag, those that there are and those to come. docs/services/journal.md states the guarantees.
package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/time/rate"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Settings are those of the service.
type Settings struct{}

// Grant says which events an actor may read.
type Grant struct {
	IDs  []string `manifest:"ids" doc:"patterns of the paths of actors whose events may be read" reach:"none"`
	Tags []string `manifest:"tags" doc:"patterns of the tags whose events may be read, of all actors; * is any run of characters" reach:"none"`
}

// Bounds of grants and of requests.
const (
	MaxPatterns  = 16  // of a key of a grant
	MaxPath      = 128 // bytes of a pattern
	MaxWildcards = 8   // in a pattern
	MaxTag       = 128 // bytes of a tag

	MaxEvents    = 256       // of a page
	DefaultBytes = 48 << 10  // of a page: it fits the inbox of a guest
	MaxBytes     = 256 << 10 // of a page
	MaxWait      = 20 * time.Second
)

// How often a request that waits looks into the index. It is woken whenever anybody has stored something.
const (
	looksASecond = 50
	looksAtOnce  = 16
)

// mostLooked is how many chunks of IDs one request looks through.
var mostLooked = 16

// Service is the service of events that are kept.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "journal", Doc: "the events that actors keep (durable: events)",
	CheckGrant: func(g *Grant) error {
		if len(g.IDs)+len(g.Tags) == 0 {
			return errors.New("it grants nothing: ids and tags have patterns of whose events may be read")
		}
		if n := len(g.IDs); n > MaxPatterns {
			return service.At("ids", fmt.Errorf("%d patterns, at most %d", n, MaxPatterns))
		}
		if n := len(g.Tags); n > MaxPatterns {
			return service.At("tags", fmt.Errorf("%d patterns, at most %d", n, MaxPatterns))
		}
		for i, p := range g.IDs {
			if err := glob.CheckPath(p, MaxPath, MaxWildcards); err != nil {
				return service.At(fmt.Sprintf("ids[%d]", i), err)
			}
		}
		for i, p := range g.Tags {
			if err := checkTag(p); err != nil {
				return service.At(fmt.Sprintf("tags[%d]", i), err)
			}
		}
		return nil
	},
	Open: func(env *service.Env, _ *Settings) (service.Provider[Grant], error) {
		return &provider{env, newPlaces(env.Rand)}, nil
	},
})

// checkTag says what is wrong with a tag, or with a pattern of tags.
func checkTag(p string) error {
	switch {
	case p == "" || len(p) > MaxTag:
		return fmt.Errorf("a tag has 1 to %d bytes, not %d", MaxTag, len(p))
	case strings.ContainsFunc(p, func(r rune) bool { return r < 0x21 || r > 0x7e }):
		return fmt.Errorf("the tag %q is not printable ASCII without spaces", p)
	case strings.Count(p, "*")+strings.Count(p, "?") > MaxWildcards:
		return fmt.Errorf("the tag %q has more than %d wildcards", p, MaxWildcards)
	}
	return nil
}

// provider answers requests. The journal is that of the system, see [persist.Attach].
type provider struct {
	env    *service.Env
	places places
}

// Close implements [service.Provider].
func (*provider) Close(context.Context) error { return nil }

// Serve implements [service.Provider].
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	j := persist.Of(p.env.System)
	if j == nil {
		return nil, service.Errorf(service.Unavailable, "no actor of this bundle keeps events: durable: events in the manifest says which do")
	}
	switch r.Op {
	case "read":
		return p.read(ctx, j, r)
	case "ids":
		return p.ids(ctx, j, r)
	case "info":
		return p.info(ctx, j, r)
	}
	return nil, r.Unknown()
}

// readArgs are the arguments of read.
type readArgs struct {
	ID    string        `cbor:"id"`
	Tag   string        `cbor:"tag"`
	From  uint64        `cbor:"from"`
	To    uint64        `cbor:"to"`
	Limit int           `cbor:"limit"`
	Bytes int           `cbor:"bytes"`
	Wait  time.Duration `cbor:"wait"`
}

// page is the answer to read.
type page struct {
	Events []event `cbor:"events"`
	Next   uint64  `cbor:"next"`
	More   bool    `cbor:"more,omitempty"`
}

type event struct {
	ID      string   `cbor:"id"`
	Number  uint64   `cbor:"number"`
	Offset  uint64   `cbor:"offset"`
	Type    string   `cbor:"type"`
	Version uint16   `cbor:"version"`
	Tags    []string `cbor:"tags,omitempty"`
	Time    int64    `cbor:"time"`
	Payload []byte   `cbor:"payload"`
}

func (a *readArgs) check(g *Grant) error {
	switch {
	case (a.ID == "") == (a.Tag == ""):
		return service.Errorf(service.BadRequest, "read takes id or tag, and one of them")
	case a.Limit < 0 || a.Limit > MaxEvents:
		return service.Errorf(service.BadRequest, "limit is %d, which is not between 1 and %d", a.Limit, MaxEvents)
	case a.Bytes < 0 || a.Bytes > MaxBytes:
		return service.Errorf(service.BadRequest, "bytes is %d, which is not between 1 and %d", a.Bytes, MaxBytes)
	case a.Wait < 0 || a.Wait > MaxWait:
		return service.Errorf(service.BadRequest, "wait is %v, which is not between 0 and %v", a.Wait, MaxWait)
	case a.Tag != "" && a.To != 0:
		return service.Errorf(service.BadRequest, "to is for an id: a tag has no last number")
	case a.Tag != "":
		if err := checkTag(a.Tag); err != nil {
			return service.Errorf(service.BadRequest, "%w", err)
		}
		if !glob.MatchAny(g.Tags, a.Tag) {
			return service.Deny("tags", "events with the tag %.60q are not granted", a.Tag)
		}
		return nil
	}
	return mayRead(g, a.ID)
}

func mayRead(g *Grant, id string) error {
	if id == "" || id[0] != '/' || len(id) > abi.MaxPath || strings.ContainsFunc(id, unicode.IsControl) {
		return service.Errorf(service.BadRequest, "%.60q is no path, such as /user/account/ada", id)
	}
	if !glob.MatchAnyPath(glob.CompilePaths(g.IDs), strings.Split(id[1:], "/")) {
		return service.Deny("ids", "the events of %.60q are not granted", id)
	}
	return nil
}

// read answers with the next page. If there is nothing it waits for something.
func (p *provider) read(ctx context.Context, j *persist.Journal, r *service.Request[Grant]) (any, error) {
	var a readArgs
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := a.check(r.Grant); err != nil {
		return nil, err
	}
	bytes, limit := a.Bytes, a.Limit
	if bytes == 0 {
		bytes = DefaultBytes
	}
	if limit == 0 {
		limit = MaxEvents
	}
	release, err := r.Hold(int64(bytes))
	if err != nil {
		return nil, err
	}
	defer release()
	patience := ctx
	if a.Wait > 0 {
		var cancel func()
		patience, cancel = p.env.WithTimeout(ctx, a.Wait)
		defer cancel()
	}
	q := persist.Query{From: a.From, To: a.To}
	looks := rate.NewLimiter(looksASecond, looksAtOnce)
	for {
		changed := j.Changed()
		found, err := pageOf(ctx, j, &a, q, bytes)
		switch over := a.To != 0 && found.Next > a.To; {
		case err != nil:
			return nil, failed(ctx, err)
		case len(found.Events) > 0 || over || !found.More && a.Wait == 0:
			if more := found.Bytes() - bytes; more > 0 { // a first event that is larger
				releaseMore, err := r.Hold(int64(more))
				if err != nil {
					return nil, err
				}
				defer releaseMore()
			}
			return answer(&found, a.Tag != "", limit), nil
		}
		if q.From = found.Next; found.More { // what was looked at is deleted
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if _, which := service.Receive(p.env, changed, patience.Done()); which == 1 {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			return answer(&found, a.Tag != "", limit), nil
		}
		now := p.env.Clock.Now()
		if d := looks.ReserveN(now, 1).DelayFrom(now); d > 0 {
			rest, cancel := p.env.WithTimeout(patience, d)
			service.Receive(p.env, rest.Done())
			cancel()
		}
	}
}

func pageOf(ctx context.Context, j *persist.Journal, a *readArgs, q persist.Query, bytes int) (persist.Page, error) {
	if a.Tag != "" {
		return j.PageByTag(ctx, a.Tag, q, bytes)
	}
	return j.PageByID(ctx, a.ID, q, bytes)
}

// failed is the error for a guest: what is wrong with the store is for the operator.
func failed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	e := service.Errorf(service.Unavailable, "the events cannot be read now")
	e.Err = err
	return e
}

// answer is a page as it is answered: so many events of it at most.
func answer(p *persist.Page, byTag bool, limit int) page {
	if len(p.Events) > limit {
		p.Events, p.More = p.Events[:limit], true
		if last := p.Events[limit-1]; byTag {
			p.Next = last.Offset + 1
		} else {
			p.Next = last.Number + 1
		}
	}
	out := page{Events: make([]event, len(p.Events)), Next: p.Next, More: p.More}
	for i, e := range p.Events {
		out.Events[i] = event{e.ID, e.Number, e.Offset, e.Type, e.Version, e.Tags, e.Time, e.Payload}
	}
	return out
}

// idsAnswer is the answer to ids.
type idsAnswer struct {
	IDs  []string `cbor:"ids"`
	Next string   `cbor:"next,omitempty"`
}

// ids answers with the IDs that have had events and are granted, in the order of their bytes.
func (p *provider) ids(ctx context.Context, j *persist.Journal, r *service.Request[Grant]) (any, error) {
	var a struct {
		After string `cbor:"after"`
		Limit int    `cbor:"limit"`
	}
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if a.Limit < 0 || a.Limit > MaxEvents {
		return nil, service.Errorf(service.BadRequest, "limit is %d, which is not between 1 and %d", a.Limit, MaxEvents)
	}
	if a.Limit == 0 {
		a.Limit = MaxEvents
	}
	after, ok := p.places.read(a.After)
	if !ok {
		return nil, service.Errorf(service.BadRequest, "after is no path, and no next of a page of this run")
	}
	patterns := glob.CompilePaths(r.Grant.IDs)
	if len(patterns) == 0 {
		return nil, service.Deny("ids", "the list of IDs is not granted")
	}
	release, err := r.Hold(DefaultBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	out := idsAnswer{IDs: []string{}, Next: after}
	bytes, granted := 0, true
	for range mostLooked {
		list, more, err := j.IDsAfter(ctx, out.Next)
		if err != nil {
			return nil, failed(ctx, err)
		}
		for _, id := range list {
			if len(out.IDs) == a.Limit || bytes > DefaultBytes {
				return out, nil
			}
			out.Next = id
			if granted = glob.MatchAnyPath(patterns, strings.Split(strings.TrimPrefix(id, "/"), "/")); granted {
				out.IDs, bytes = append(out.IDs, id), bytes+len(id)+3
			}
		}
		if !more {
			out.Next = ""
			return out, nil
		}
	}
	if !granted {
		out.Next = p.places.hide(out.Next)
	}
	return out, nil
}

// infoAnswer is the answer to info.
type infoAnswer struct {
	Last    uint64 `cbor:"last"`
	Deleted uint64 `cbor:"deleted"`
	Bytes   int64  `cbor:"bytes"`
}

func (p *provider) info(ctx context.Context, j *persist.Journal, r *service.Request[Grant]) (any, error) {
	var a struct {
		ID string `cbor:"id"`
	}
	if err := r.Decode(&a); err != nil {
		return nil, err
	}
	if err := mayRead(r.Grant, a.ID); err != nil {
		return nil, err
	}
	if _, err := j.PageByID(ctx, a.ID, persist.Query{From: 1, To: 1}, 1); err != nil { // what is durable is found
		return nil, failed(ctx, err)
	}
	i, err := j.Info(a.ID)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return infoAnswer{i.Last, i.Deleted, i.Bytes}, nil
}
