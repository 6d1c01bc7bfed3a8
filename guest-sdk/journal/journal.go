// Package journal reads the events of actors that keep them (`durable: events`), by actor or by tag. The manifest grants it:
//
//	capabilities:
//	  journal: {ids: [/user/account/*], tags: [paid-in, paid-out]}
//
// An actor that follows a tag makes what it likes of what others have stored, such as a total:
//
//	func (t *totals) Started(ctx *actor.Context) error {
//		journal.Follow(ctx, journal.Query{Tag: "paid-in"}, func(ctx *actor.Context, p journal.Page, err error) error {
//			for i := range p.Events {
//				...
//			}
//			return err
//		})
//		return nil
//	}
//
// docs/services/journal.md says what is promised. How events are stored is in guest-sdk/persist.
package journal

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/persist"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Name is the name of the service and of its grant.
const Name = "journal"

// Bounds of the service.
const (
	MaxEvents = 256 // of a page
	MaxWait   = 20 * time.Second
)

// Timeout is how long a request waits for its answer, beyond Query.Wait.
const Timeout = 10 * time.Second

// Event is something that has happened to an actor.
type Event = rules.Event

// Query says which events: of one actor, or with one tag.
type Query struct {
	ID  string // the path of an actor below the system, such as /user/account/ada
	Tag string
	// From is the number (ID) or offset (Tag) to begin with; to go on, take Page.Next.
	From uint64
	// To is the last number; 0: all. For an ID.
	To uint64
	// Limit is how many events a page may have; 0 is [MaxEvents].
	Limit int
	// Bytes is about how many bytes of events a page may have, at most 262144; 0 is 49152. A larger event comes alone. What
	// is larger than the actor's inbox needs limits.message.
	Bytes int
	// Wait is how long Read waits for an event when there is none, at most [MaxWait]. Whoever waits has a question open: a run
	// that ends when nothing is left to do waits, too.
	Wait time.Duration
	// Every is how often Follow looks for further events; 0 is [DefaultEvery].
	Every time.Duration
}

// DefaultEvery is how often Follow looks for further events, unless the query says so.
const DefaultEvery = time.Second

// Page is some events, in order, and where the next ones begin.
type Page struct {
	Events []Event // their payloads are valid until the function that got them returns
	Next   uint64
	More   bool // there are further events now
}

// Decode reads an event's payload.
func Decode(e *Event, d actor.Decoder) error {
	r := abi.NewReader(e.Payload)
	d.UnmarshalCBOR(r)
	return r.Done()
}

// Read reads a page.
func Read(ctx *actor.Context, q Query, then func(ctx *actor.Context, p Page, err error) error) {
	service.Ask(ctx, Name, "read", q, q.Wait+Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var p Page
		if err == nil {
			err = p.read(m.Reader())
		}
		return then(ctx, p, err)
	})
}

// Follow calls each with the pages that there are, and then, looking every Query.Every, with what comes, for as long as each
// returns nil. An error that may pass (service.Code.Retry) is told, and the page is asked for again at the next look; after any
// other one it is over. It ends with the incarnation of the actor, which keeps Page.Next if it is to go on there. If each fails
// so does the turn.
func Follow(ctx *actor.Context, q Query, each func(ctx *actor.Context, p Page, err error) error) {
	q.Wait = 0
	Read(ctx, q, func(ctx *actor.Context, p Page, err error) error {
		if err == nil {
			q.From = p.Next
		}
		if err != nil || len(p.Events) > 0 {
			if failed := each(ctx, p, err); failed != nil {
				return failed
			}
		}
		switch {
		case err == nil && q.To != 0 && q.From > q.To, err != nil && !service.CodeOf(err).Retry():
		case err == nil && p.More:
			Follow(ctx, q, each)
		default:
			every := q.Every
			if every <= 0 {
				every = DefaultEvery
			}
			ctx.Poll(every, func(ctx *actor.Context, _ *actor.Message) error {
				Follow(ctx, q, each)
				return nil
			})
		}
		return nil
	})
}

// IDs lists the actors that have stored events and are granted, in the order of the bytes of their paths, after one; "" is the
// beginning. next is "" at the end, and otherwise the after of the next call. limit is at most [MaxEvents], which 0 stands for.
func IDs(ctx *actor.Context, after string, limit int, then func(ctx *actor.Context, ids []string, next string, err error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("after")
		w.Text(after)
		w.Text("limit")
		w.Int(int64(limit))
	})
	service.Ask(ctx, Name, "ids", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var ids []string
		next := ""
		if err == nil {
			r := m.Reader()
			for n := r.Map(); n > 0 && r.OK(); n-- {
				switch string(r.TextBytes()) {
				case "ids":
					for k := r.Array(); k > 0 && r.OK(); k-- {
						ids = append(ids, r.Text())
					}
				case "next":
					next = r.Text()
				default:
					r.Skip()
				}
			}
			err = r.Done()
		}
		return then(ctx, ids, next, err)
	})
}

// Info is what is known of an actor's events.
type Info struct {
	Last    uint64 // number of the last one; 0: it has stored none
	Deleted uint64 // those up to it are deleted
	Bytes   int64  // of events and snapshots
}

// Of tells what is known of an actor's events.
func Of(ctx *actor.Context, id string, then func(ctx *actor.Context, i Info, err error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("id")
		w.Text(id)
	})
	service.Ask(ctx, Name, "info", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var i Info
		if err == nil {
			r := m.Reader()
			for n := r.Map(); n > 0 && r.OK(); n-- {
				switch string(r.TextBytes()) {
				case "last":
					i.Last = r.Uint()
				case "deleted":
					i.Deleted = r.Uint()
				case "bytes":
					i.Bytes = r.Int()
				default:
					r.Skip()
				}
			}
			err = r.Done()
		}
		return then(ctx, i, err)
	})
}

// MarshalCBOR implements actor.Encoder.
func (q Query) MarshalCBOR(w *abi.Writer) {
	n := 1
	for _, there := range [...]bool{q.From != 0, q.To != 0, q.Limit != 0, q.Bytes != 0, q.Wait != 0} {
		if there {
			n++
		}
	}
	w.Map(n)
	if q.Tag != "" {
		w.Text("tag")
		w.Text(q.Tag)
	} else {
		w.Text("id")
		w.Text(q.ID)
	}
	if q.From != 0 {
		w.Text("from")
		w.Uint(q.From)
	}
	if q.To != 0 {
		w.Text("to")
		w.Uint(q.To)
	}
	if q.Limit != 0 {
		w.Text("limit")
		w.Int(int64(q.Limit))
	}
	if q.Bytes != 0 {
		w.Text("bytes")
		w.Int(int64(q.Bytes))
	}
	if q.Wait != 0 {
		w.Text("wait")
		w.Int(int64(q.Wait))
	}
}

func (p *Page) read(r *abi.Reader) error {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "events":
			k := r.Array()
			for ; k > 0 && r.OK(); k-- {
				p.Events = append(p.Events, readEvent(r))
			}
		case "next":
			p.Next = r.Uint()
		case "more":
			p.More = r.Bool()
		default:
			r.Skip()
		}
	}
	return r.Done()
}

func readEvent(r *abi.Reader) (e Event) {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		switch string(r.TextBytes()) {
		case "id":
			e.ID = r.Text()
		case "number":
			e.Number = r.Uint()
		case "offset":
			e.Offset = r.Uint()
		case "type":
			e.Type = r.Text()
		case "version":
			e.Version = uint16(r.Uint())
		case "tags":
			for k := r.Array(); k > 0 && r.OK(); k-- {
				e.Tags = append(e.Tags, r.Text())
			}
		case "time":
			e.Time = r.Int()
		case "payload":
			e.Payload = r.ByteString()
		default:
			r.Skip()
		}
	}
	return e
}
