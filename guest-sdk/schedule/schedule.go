// Package schedule makes an actor run at set times: by cron expressions, periods and single times that
// outlive the actor, its restarts and those of the host.
//
//	func (r *reports) Started(ctx *actor.Context) error {
//		schedule.Set(ctx, schedule.Entry{Name: "nightly", Cron: "0 3 * * *", Zone: "Europe/Berlin"}, nil)
//		return nil
//	}
//
//	func (r *reports) Receive(ctx *actor.Context, msg *actor.Message) error {
//		if run, ok := schedule.RunOf(msg); ok {
//			... // run.ID is the same if this run comes again
//			return ctx.Reply(nil)
//		}
//
// Setting an entry again that already exists changes nothing, so an actor may set its own whenever it
// starts. The actor is found by its path: it needs a name of its own.
package schedule

import (
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Name is the name of the service, and of the grant.
const Name = "schedule"

// Timeout is how long a request waits for its answer.
var Timeout = 30 * time.Second

// Delivery is how a run reaches the actor.
type Delivery string

// The kinds of delivery. The zero value is Ask.
const (
	Ask  Delivery = "ask"  // an ask, again until it is answered without an error: at least once
	Once Delivery = "once" // an ask that is not repeated: at most once
	Tell Delivery = "tell" // a tell, at most once
)

// Missed says what happens to runs whose time has passed while the system did not run.
type Missed string

// The ways to deal with them. The zero value is RunOnce.
const (
	RunOnce Missed = "once" // one for all of them
	Skip    Missed = "skip" // none that is late
	RunAll  Missed = "all"  // each, the latest Most of them
)

// Entry says what runs when: one of Cron, Every and At is given.
type Entry struct {
	Name  string        // 1 to 64 of A-Z a-z 0-9 . _ -
	Cron  string        // five fields, or six with seconds before them; or @daily and its like
	Every time.Duration // whole seconds
	At    time.Time     // a single time, to the nanosecond; one that has passed is refused
	Zone  string        // of Cron, such as Europe/Berlin; "" is UTC
	From  time.Time     // Every: the first run, to the nanosecond; zero: after one period

	To      string        // path of another actor; "" is this one
	Payload actor.Encoder // what the run carries, nil for nothing

	Delivery Delivery
	Timeout  time.Duration // how long an ask waits; 0 is 30 s
	Overlap  bool          // a run may begin while another is under way

	Missed   Missed
	Most     int           // RunAll: 1 to 100; 0 is 10
	Deadline time.Duration // how late a run may begin; 0: any, with Skip a minute
}

// MarshalCBOR implements actor.Encoder.
func (e *Entry) MarshalCBOR(w *abi.Writer) { e.write(w, false) }

func (e *Entry) write(w *abi.Writer, onlyNew bool) {
	n := 1
	for _, has := range [...]bool{e.Cron != "", e.Every != 0, !e.At.IsZero(), e.Zone != "", !e.From.IsZero(), e.To != "", e.Payload != nil,
		e.Delivery != "", e.Timeout != 0, e.Overlap, e.Missed != "", e.Most != 0, e.Deadline != 0, onlyNew} {
		if has {
			n++
		}
	}
	w.Map(n)
	text(w, "name", e.Name, true)
	text(w, "cron", e.Cron, false)
	number(w, "every", int64(e.Every))
	if !e.At.IsZero() {
		number(w, "at_ns", e.At.UnixNano())
	}
	text(w, "zone", e.Zone, false)
	if !e.From.IsZero() {
		number(w, "from", e.From.UnixNano())
	}
	text(w, "to", e.To, false)
	if e.Payload != nil {
		w.Text("payload")
		e.Payload.MarshalCBOR(w)
	}
	text(w, "delivery", string(e.Delivery), false)
	number(w, "timeout", int64(e.Timeout))
	flag(w, "overlap", e.Overlap)
	text(w, "missed", string(e.Missed), false)
	number(w, "most", int64(e.Most))
	number(w, "deadline", int64(e.Deadline))
	flag(w, "only_new", onlyNew)
}

func text(w *abi.Writer, key, v string, always bool) {
	if v != "" || always {
		w.Text(key)
		w.Text(v)
	}
}

func number(w *abi.Writer, key string, v int64) {
	if v != 0 {
		w.Text(key)
		w.Int(v)
	}
}

func flag(w *abi.Writer, key string, v bool) {
	if v {
		w.Text(key)
		w.Bool(v)
	}
}

// State is the outcome of Set.
type State struct {
	Changed bool      // it was not there, or said something else
	Next    time.Time // zero: there is none
}

// Set makes or changes an entry. then, which may be nil, is called when the entry is durable.
// Errors are service.ErrDenied (least, to), ErrQuota, ErrBadRequest (also for an At that has passed),
// ErrTooLarge, ErrUnavailable.
func Set(ctx *actor.Context, e Entry, then func(ctx *actor.Context, s State, err error) error) {
	set(ctx, &e, false, then)
}

// SetNew is Set, with service.ErrExists if there is an entry of the name.
func SetNew(ctx *actor.Context, e Entry, then func(ctx *actor.Context, s State, err error) error) {
	set(ctx, &e, true, then)
}

func set(ctx *actor.Context, e *Entry, onlyNew bool, then func(ctx *actor.Context, s State, err error) error) {
	args := actor.Func(func(w *abi.Writer) { e.write(w, onlyNew) })
	if then == nil {
		then = func(ctx *actor.Context, _ State, err error) error {
			if err != nil {
				ctx.Warn("the entry " + e.Name + " was not set: " + err.Error())
			}
			return nil
		}
	}
	service.Ask(ctx, Name, "set", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var s State
		if err == nil {
			err = fields(m.Reader(), func(key string, r *abi.Reader) bool {
				switch key {
				case "changed":
					s.Changed = r.Bool()
				case "next":
					s.Next = at(r.Int())
				default:
					return false
				}
				return true
			})
		}
		return then(ctx, s, err)
	})
}

// Cancel removes an entry for good. then, which may be nil, is called when that is durable;
// found says whether there was one.
func Cancel(ctx *actor.Context, name string, then func(ctx *actor.Context, found bool, err error) error) {
	service.Ask(ctx, Name, "cancel", named(name), Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		found := false
		if err == nil {
			err = fields(m.Reader(), func(key string, r *abi.Reader) bool {
				if key == "cancelled" {
					found = r.Bool()
					return true
				}
				return false
			})
		}
		if then == nil {
			return nil
		}
		return then(ctx, found, err)
	})
}

type named string

// MarshalCBOR implements actor.Encoder.
func (n named) MarshalCBOR(w *abi.Writer) {
	w.Map(1)
	w.Text("name")
	w.Text(string(n))
}

// Status is an entry and how it is doing.
type Status struct {
	Name     string
	Cron     string
	Every    time.Duration
	Zone     string
	To       string    // path of the actor that it is for
	Next     time.Time // zero: there is none, or it waits for a run to end
	UnderWay int       // runs
	ReadOnly bool      // it is defined in the manifest
	Runs     uint64    // that are over, since the host has started
	Missed   uint64    // planned times without a run of their own
	Retries  uint64
	Error    string // of the last attempt, "" if it went well
}

func (s *Status) read(r *abi.Reader) {
	_ = each(r, func(key string, r *abi.Reader) bool {
		switch key {
		case "name":
			s.Name = r.Text()
		case "cron":
			s.Cron = r.Text()
		case "every":
			s.Every = time.Duration(r.Int())
		case "zone":
			s.Zone = r.Text()
		case "to":
			s.To = r.Text()
		case "next":
			s.Next = at(r.Int())
		case "under_way":
			s.UnderWay = int(r.Int())
		case "read_only":
			s.ReadOnly = r.Bool()
		case "stats":
			_ = each(r, s.stat)
		default:
			return false
		}
		return true
	})
}

func (s *Status) stat(key string, r *abi.Reader) bool {
	switch key {
	case "runs":
		s.Runs = r.Uint()
	case "missed":
		s.Missed = r.Uint()
	case "retries":
		s.Retries = r.Uint()
	case "error":
		s.Error = r.Text()
	default:
		return false
	}
	return true
}

// Get looks at an entry: one of the actor's own, or of the manifest for it. The error is
// service.ErrNotFound if there is none.
func Get(ctx *actor.Context, name string, then func(ctx *actor.Context, s Status, err error) error) {
	service.Ask(ctx, Name, "get", named(name), Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var s Status
		if err == nil {
			r := m.Reader()
			s.read(r)
			err = done(r)
		}
		return then(ctx, s, err)
	})
}

// List is the entries of the actor and those of the manifest that are for it, sorted by name, beginning after a
// name: at most 100; more says that there are others.
func List(ctx *actor.Context, after string, then func(ctx *actor.Context, entries []Status, more bool, err error) error) {
	args := actor.Func(func(w *abi.Writer) {
		w.Map(1)
		w.Text("after")
		w.Text(after)
	})
	service.Ask(ctx, Name, "list", args, Timeout, func(ctx *actor.Context, m *actor.Message, err error) error {
		var out []Status
		more := false
		if err == nil {
			err = fields(m.Reader(), func(key string, r *abi.Reader) bool {
				switch key {
				case "entries":
					for n := r.Array(); n > 0 && r.OK(); n-- {
						var s Status
						s.read(r)
						out = append(out, s)
					}
				case "more":
					more = r.Bool()
				default:
					return false
				}
				return true
			})
		}
		return then(ctx, out, more, err)
	})
}

// Run is a run, as the actor gets it.
type Run struct {
	ID      string // the same whenever it is the same run: it may come again until it is answered
	Entry   string
	Planned time.Time
	Attempt int       // from 1 on
	Missed  uint64    // earlier planned times that this run covers; 1000 means 1000 or more
	Payload actor.Raw // valid until the turn ends; null for none
}

// RunOf reads a message that is a run. Any actor that knows the ref may send a message that looks like one: a run says that
// work is due, but does not prove its sender.
func RunOf(m *actor.Message) (Run, bool) {
	var run Run
	if m.Kind() != actor.KindMessage {
		return run, false
	}
	r := m.Reader()
	if r.Peek() != abi.TypeMap {
		return run, false
	}
	err := fields(r, func(key string, r *abi.Reader) bool {
		switch key {
		case "run":
			run.ID = r.Text()
		case "entry":
			run.Entry = r.Text()
		case "planned":
			run.Planned = at(r.Int())
		case "attempt":
			run.Attempt = int(r.Int())
		case "missed":
			run.Missed = r.Uint()
		case "payload":
			run.Payload = actor.Raw(r.Raw())
		default:
			return false
		}
		return true
	})
	return run, err == nil && run.ID != "" && run.Entry != ""
}

// fields reads a whole map; what field does not know is skipped.
func fields(r *abi.Reader, field func(key string, r *abi.Reader) bool) error {
	_ = each(r, field)
	return done(r)
}

func each(r *abi.Reader, field func(key string, r *abi.Reader) bool) error {
	for n := r.Map(); n > 0 && r.OK(); n-- {
		if !field(r.Text(), r) {
			r.Skip()
		}
	}
	return r.Err()
}

// done reports an answer that this package does not understand.
func done(r *abi.Reader) error {
	if err := r.Done(); err != nil {
		return &service.Error{Code: service.Internal, Text: "the answer is not as expected: " + err.Error()}
	}
	return nil
}

func at(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(ns/1e9, ns%1e9).UTC()
}
