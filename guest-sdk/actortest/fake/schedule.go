//go:build !wasip1

package fake

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/schedule"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// Schedule is the service schedule: runs come when the time of the world reaches them. Nothing is ever missed because the system
// was down. Cron expressions with L, W and # are refused.
type Schedule struct {
	Service
	entries map[string]map[string]*entry // by the path of the owner, and the name
}

// entry is one of an actor.
type entry struct {
	s     *Schedule
	owner string
	args  map[string][]byte // as they were set

	name, to string
	cron     *cron
	every    time.Duration
	at       time.Time // of every: the first
	delivery schedule.Delivery
	timeout  time.Duration
	overlap  bool
	payload  []byte
	missed   schedule.Missed
	most     int
	deadline time.Duration

	next     time.Time
	last     time.Time // up to here runs were begun
	gone     bool
	underWay int
	runs     uint64
	lost     uint64
	retries  uint64
	err      string
}

// NewSchedule makes the service.
func NewSchedule(w *actortest.World) *Schedule {
	s := &Schedule{entries: map[string]map[string]*entry{}}
	s.begin(w, schedule.Name, s.do)
	return s
}

// Next is when an entry of an actor runs next, zero if it does not: path is the actor's that has set it.
func (s *Schedule) Next(path, name string) time.Time {
	if e := s.entries[path][name]; e != nil {
		return e.next
	}
	return time.Time{}
}

// Entries are the names of an actor's entries, sorted.
func (s *Schedule) Entries(path string) []string {
	names := make([]string, 0, len(s.entries[path]))
	for name := range s.entries[path] {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Run has an entry run now, whenever it is due.
func (s *Schedule) Run(path, name string) {
	e := s.entries[path][name]
	if e == nil {
		panic("fake: " + path + " has no entry " + name)
	}
	e.underWay++
	e.plan()
	e.carry(s.w.Now(), 0, 1)
}

func (s *Schedule) do(c *actortest.Call) (actor.Encoder, *service.Error) {
	args := map[string][]byte{}
	if err := fields(c.Reader(), func(key string, r *abi.Reader) bool {
		args[key] = append([]byte{}, r.Raw()...)
		return true
	}); err != nil {
		return nil, err
	}
	name := abi.NewReader(args["name"]).Text()
	own := s.entries[c.Path]
	switch c.Op {
	case "set":
		return s.set(c, name, args)
	case "cancel":
		e := own[name]
		if e != nil {
			e.gone = true
			delete(own, name)
		}
		return actor.Func(func(w *abi.Writer) {
			w.Map(1)
			w.Text("cancelled")
			w.Bool(e != nil)
		}), nil
	case "get":
		if own[name] == nil {
			return nil, wrong(service.NotFound, "there is no entry "+strconv.Quote(name))
		}
		return own[name], nil
	case "list":
		after, names := abi.NewReader(args["after"]).Text(), s.Entries(c.Path)
		names = names[sort.Search(len(names), func(i int) bool { return names[i] > after }):]
		more := len(names) > listed
		names = names[:min(len(names), listed)]
		return actor.Func(func(w *abi.Writer) {
			w.Map(2)
			w.Text("entries")
			w.Array(len(names))
			for _, n := range names {
				own[n].MarshalCBOR(w)
			}
			w.Text("more")
			w.Bool(more)
		}), nil
	}
	return nil, wrong(service.BadRequest, "there is no operation "+c.Op)
}

const listed = 100 // entries of a list at most

func (s *Schedule) set(c *actortest.Call, name string, args map[string][]byte) (actor.Encoder, *service.Error) {
	onlyNew := abi.NewReader(args["only_new"]).Bool()
	delete(args, "only_new")
	before := s.entries[c.Path][name]
	e := &entry{s: s, owner: c.Path, args: args, name: name}
	if err := e.read(c); err != nil {
		return nil, err
	}
	switch {
	case before != nil && onlyNew:
		return nil, wrong(service.Exists, "there is an entry "+strconv.Quote(name)+" already")
	case before != nil && same(before.args, args):
		return setAs(false, before.next), nil
	}
	e.last = s.w.Now()
	if before != nil {
		before.gone = true
		if times(before.args, args) {
			e.last = before.last
			if e.every > 0 {
				e.at = before.at
			}
		}
	}
	if s.entries[c.Path] == nil {
		s.entries[c.Path] = map[string]*entry{}
	}
	s.entries[c.Path][name] = e
	e.plan()
	return setAs(true, e.next), nil
}

func setAs(changed bool, next time.Time) actor.Encoder {
	return actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("changed")
		w.Bool(changed)
		w.Text("next")
		w.Int(nanoseconds(next))
	})
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if !bytes.Equal(a[key], b[key]) {
			return false
		}
	}
	return true
}

// times reports whether two entries run at the same times.
func times(a, b map[string][]byte) bool {
	for _, key := range []string{"cron", "every", "at", "at_ns", "zone", "from"} {
		if !bytes.Equal(a[key], b[key]) {
			return false
		}
	}
	return true
}

func isName(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// read takes the arguments of a set.
func (e *entry) read(c *actortest.Call) *service.Error {
	now := e.s.w.Now()
	e.to, e.delivery, e.timeout, e.missed, e.most = c.Path, schedule.Ask, 30*time.Second, schedule.RunOnce, 10
	expression, zone := "", ""
	kinds := 0
	for key, raw := range e.args {
		r := abi.NewReader(raw)
		switch key {
		case "name":
			r.Text()
		case "cron":
			expression = r.Text()
			kinds++
		case "every":
			e.every = time.Duration(r.Int())
			kinds++
		case "at_ns":
			e.at = time.Unix(0, r.Int()).UTC()
			kinds++
		case "zone":
			zone = r.Text()
		case "from":
		case "to":
			e.to = r.Text()
		case "payload":
			e.payload = raw
		case "delivery":
			e.delivery = schedule.Delivery(r.Text())
		case "timeout":
			e.timeout = time.Duration(r.Int())
		case "overlap":
			e.overlap = r.Bool()
		case "missed":
			e.missed = schedule.Missed(r.Text())
		case "most":
			e.most = int(r.Int())
		case "deadline":
			e.deadline = time.Duration(r.Int())
		default:
			return wrong(service.BadRequest, "unknown key "+key)
		}
		if err := r.Err(); err != nil {
			return wrong(service.BadRequest, key+": "+err.Error())
		}
	}
	last := c.Path[strings.LastIndexByte(c.Path, '/')+1:]
	switch {
	case !isName(e.name):
		return wrong(service.BadRequest, "name has 1 to 64 of A-Z a-z 0-9 . _ -")
	case strings.HasPrefix(last, "$"):
		return wrong(service.BadRequest, "the actor has no name of its own")
	case kinds != 1:
		return wrong(service.BadRequest, "one of cron, every and at is given")
	case zone != "" && expression == "":
		return wrong(service.BadRequest, "zone is for cron")
	case e.delivery != schedule.Ask && e.delivery != schedule.Once && e.delivery != schedule.Tell:
		return wrong(service.BadRequest, "delivery is "+string(e.delivery))
	case e.missed != schedule.RunOnce && e.missed != schedule.Skip && e.missed != schedule.RunAll:
		return wrong(service.BadRequest, "missed is "+string(e.missed))
	case e.most < 1 || e.most > 100:
		return wrong(service.BadRequest, "most is 1 to 100")
	case e.timeout <= 0 || e.deadline < 0:
		return wrong(service.BadRequest, "timeout and deadline are more than 0")
	case expression != "":
		var err error
		if e.cron, err = parseCron(expression, zone); err != nil {
			return wrong(service.BadRequest, err.Error())
		}
	case e.every != 0:
		if e.every < time.Second || e.every%time.Second != 0 || e.every > 366*24*time.Hour {
			return wrong(service.BadRequest, "every has whole seconds, one at least, and 366 days at most")
		}
		e.at = now.Add(e.every)
		if raw := e.args["from"]; raw != nil {
			e.at = time.Unix(0, abi.NewReader(raw).Int()).UTC()
		}
	case !e.at.After(now):
		return wrong(service.BadRequest, "at: that time has passed")
	}
	if e.missed == schedule.Skip && e.deadline == 0 {
		e.deadline = time.Minute
	}
	return nil
}

// after is the first time of the entry after another, zero if there is none.
func (e *entry) after(t time.Time) time.Time {
	switch {
	case e.cron != nil:
		return e.cron.next(t)
	case e.every > 0 && t.Before(e.at):
		return e.at
	case e.every > 0:
		return e.at.Add((t.Sub(e.at)/e.every + 1) * e.every)
	case e.at.After(t):
		return e.at
	}
	return time.Time{}
}

// plan waits for the next run, unless one that is under way must end before.
func (e *entry) plan() {
	e.next = time.Time{}
	if e.gone || e.underWay > 0 && !e.overlap {
		return
	}
	due := e.after(e.last)
	if e.next = due; due.IsZero() {
		return
	}
	e.s.w.After(due.Sub(e.s.w.Now()), func() {
		if !e.gone && e.next.Equal(due) {
			e.begin()
		}
	})
}

const countUpTo = 1000 // missed runs are counted up to this number

// begin begins a run of what is due: the latest time for all of them, or each of the latest.
func (e *entry) begin() {
	var due []time.Time
	for at := e.after(e.last); !at.IsZero() && !at.After(e.s.w.Now()); at = e.after(at) {
		due = append(due, at)
	}
	if len(due) == 0 {
		e.plan()
		return
	}
	late := func(t time.Time) bool { return e.deadline > 0 && e.s.w.Now().Sub(t) > e.deadline }
	i := len(due) - 1
	if late(due[i]) { // all of them are
		e.lost += uint64(len(due))
		e.last = due[i]
		e.plan()
		return
	}
	if e.missed == schedule.RunAll {
		for n := 1; n < e.most && i > 0 && !late(due[i-1]); n++ {
			i--
		}
	}
	e.lost += uint64(i)
	e.last = due[i]
	e.underWay++
	e.plan()
	e.carry(due[i], uint64(min(i, countUpTo)), 1)
}

// carry carries out one attempt.
func (e *entry) carry(planned time.Time, missed uint64, attempt int) {
	now := e.s.w.Now()
	switch {
	case e.gone:
		e.over()
		return
	case e.deadline > 0 && now.Sub(planned) > e.deadline:
		e.lost++
		e.over()
		return
	}
	if attempt > 1 {
		e.retries++
	}
	again := func(text string) {
		e.err = text
		e.s.w.After(min(time.Second<<min(attempt-1, 30), 5*time.Minute), func() { e.carry(planned, missed, attempt+1) })
	}
	to := e.s.w.Find(e.to)
	if to == nil {
		again("there is no actor " + e.to)
		return
	}
	message := &run{e, planned, missed, attempt}
	if e.delivery == schedule.Tell {
		e.s.Tell(to.Ref(), message)
		e.done("")
		return
	}
	ended := false
	end := func(text string) {
		switch {
		case ended:
		case text != "" && e.delivery == schedule.Ask:
			ended = true
			again(text)
		default:
			ended = true
			e.done(text)
		}
	}
	e.s.w.After(e.timeout, func() { end("no answer in time") })
	e.s.Ask(to.Ref(), message, func(answer actortest.Sent) {
		if answer.Kind == actortest.ReplyError {
			end("the actor has failed: " + answer.Text())
			return
		}
		end("")
	})
}

func (e *entry) done(text string) {
	e.err = text
	e.runs++
	e.over()
}

// over ends a run, and begins with what became due meanwhile.
func (e *entry) over() {
	e.underWay--
	if own := e.s.entries[e.owner]; e.cron == nil && e.every == 0 && e.underWay == 0 && own[e.name] == e && !e.last.Before(e.at) {
		delete(own, e.name) // a single time has run
		e.gone = true
	}
	e.plan()
}

// run is the message of a run.
type run struct {
	e       *entry
	planned time.Time
	missed  uint64
	attempt int
}

// MarshalCBOR implements actor.Encoder.
func (x *run) MarshalCBOR(w *abi.Writer) {
	w.Map(6)
	w.Text("run")
	w.Text(x.e.owner + ":" + x.e.name + "@" + x.planned.UTC().Format(time.RFC3339Nano))
	w.Text("entry")
	w.Text(x.e.name)
	w.Text("planned")
	w.Int(x.planned.UnixNano())
	w.Text("attempt")
	w.Int(int64(x.attempt))
	w.Text("missed")
	w.Uint(x.missed)
	w.Text("payload")
	if x.e.payload == nil {
		w.Null()
	} else {
		w.Raw(x.e.payload)
	}
}

// MarshalCBOR implements actor.Encoder: the entry as get and list show it.
func (e *entry) MarshalCBOR(w *abi.Writer) {
	n := 5
	for _, key := range []string{"cron", "every", "zone"} {
		if e.args[key] != nil {
			n++
		}
	}
	w.Map(n)
	w.Text("name")
	w.Text(e.name)
	for _, key := range []string{"cron", "every", "zone"} {
		if raw := e.args[key]; raw != nil {
			w.Text(key)
			w.Raw(raw)
		}
	}
	w.Text("to")
	w.Text(e.to)
	w.Text("next")
	w.Int(nanoseconds(e.next))
	w.Text("under_way")
	w.Int(int64(e.underWay))
	w.Text("stats")
	w.Map(4)
	w.Text("runs")
	w.Uint(e.runs)
	w.Text("missed")
	w.Uint(e.lost)
	w.Text("retries")
	w.Uint(e.retries)
	w.Text("error")
	w.Text(e.err)
}
