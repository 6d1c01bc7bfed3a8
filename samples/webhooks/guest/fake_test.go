//go:build !wasip1

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// site is the whole sample in one test, in virtual time: the actors of bundle.yaml, with fakes of what they are granted.
type site struct {
	*testing.T
	w        *actortest.World
	store    *store
	gateway  *actortest.Fake
	kv       *actortest.Fake
	intake   *actortest.Actor
	queue    *actortest.Actor
	delivery *actortest.Actor

	secrets map[string]string
	answer  func(r *sent) // of the destination
	sent    []*sent
}

// sent is a request that the destination has got.
type sent struct {
	*actortest.Call
	at             time.Duration // since the start
	url, key, body string
}

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const secretOfShop = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// queueOf are args of a queue as a test wants it.
func queueOf(change func(*queueArgs)) actor.Encoder {
	a := &queueArgs{Open: 10, Dead: 5, Attempts: 4, First: time.Second, Longest: 3 * time.Second, Lease: 20 * time.Second, Remember: time.Hour}
	if change != nil {
		change(a)
	}
	return a
}

func newSite(t *testing.T) *site { return newSiteWith(t, nil) }

func newSiteWith(t *testing.T, change func(*queueArgs)) *site {
	x := &site{T: t, w: actortest.NewWorld(t, actortest.At(begin)), secrets: map[string]string{"signing.shop": secretOfShop}}
	x.answer = func(r *sent) { r.status(200) }
	x.store = &store{w: x.w, names: map[string]map[string]*entry{"jobs": {}, "dead": {}}}
	x.kv = x.w.Serve("kv", x.store.serve)
	x.w.Serve("config", x.config)
	x.w.Serve("http", x.http)
	x.gateway = x.w.Serve("gateway", nil)
	x.queue = x.w.Spawn("queue", actortest.Args(queueOf(change)))
	x.intake = x.w.Spawn("intake", actortest.Args(&intakeArgs{Tolerance: 5 * time.Minute}))
	x.deliver()
	x.w.Advance(50 * time.Millisecond)
	return x
}

// deliver starts the children of the queue, which are in the manifest.
func (x *site) deliver() {
	x.delivery = x.w.Spawn("delivery", actortest.Parent(x.queue.Ref()), actortest.Args(&deliveryArgs{Workers: 2, Timeout: 5 * time.Second}))
}

// crash restarts the queue, and with it its children, as a host does.
func (x *site) crash() {
	x.w.Stop(x.delivery)
	x.queue.Restart()
	x.w.Run()
	x.deliver()
}

func (x *site) config(c *actortest.Call) {
	key, _ := textOf(c.Field("key"))
	switch value, ok := x.secrets[key]; {
	case c.Op == "secret" && ok:
		c.Answer(actor.Bytes(value))
	case c.Op == "get" && key == "destination.shop":
		c.Answer(actor.Text("http://out/shop"))
	default:
		c.Fail(service.NotFound, key)
	}
}

func (x *site) http(c *actortest.Call) {
	r := &sent{Call: c, at: x.w.Now().Sub(begin)}
	r.url, _ = textOf(c.Field("url"))
	body := abi.NewReader(c.Field("body"))
	r.body = string(body.ByteString())
	h := abi.NewReader(c.Field("headers"))
	for range h.Array() {
		h.Array()
		if name, value := h.Text(), h.Text(); name == "idempotency-key" {
			r.key = value
		}
	}
	x.sent = append(x.sent, r)
	x.answer(r)
}

// status answers with a status; headers are names and values in turn.
func (r *sent) status(status int, headers ...string) {
	r.Answer(actor.Func(func(w *abi.Writer) {
		w.Map(2)
		w.Text("status")
		w.Int(int64(status))
		w.Text("headers")
		w.Array(len(headers) / 2)
		for i := 0; i < len(headers); i += 2 {
			w.Array(2)
			w.Text(headers[i])
			w.Text(headers[i+1])
		}
	}))
}

// reply is what the gateway is answered with.
type reply struct {
	status int // 0: not yet; -1: an error
	header map[string]string
	body   string
}

// ask sends an actor a request, as the gateway does. The answer may come later.
func (x *site) ask(to *actortest.Actor, method, path, body string, headers ...string) *reply {
	got := &reply{header: map[string]string{}}
	path, query, _ := strings.Cut(path, "?")
	x.gateway.Ask(to.Ref(), actor.Func(func(w *abi.Writer) {
		w.Array(2)
		w.Text("http")
		w.Array(12)
		w.Text(method)
		w.Text(path)
		w.Text("another route")
		w.Null()
		w.Text(query)
		h := abi.NewWriter(nil)
		for _, s := range headers {
			h.Text(s)
		}
		w.ByteString(h.Bytes())
		w.ByteString([]byte(body))
		w.Null()
		w.Int(int64(len(body)))
		w.Text("127.0.0.1")
		w.Text("id")
		w.Null()
	}), func(s actortest.Sent) {
		if got.status = -1; s.Kind == actortest.ReplyError {
			got.body = s.Text()
			return
		}
		r := abi.NewReader(s.Payload)
		r.Array()
		got.status = int(r.Int())
		if !r.Null() {
			for n := r.Array(); n > 0; n -= 2 {
				k := r.Text()
				got.header[k] = r.Text()
			}
		}
		if !r.Null() {
			got.body = r.Text()
		}
	})
	return got
}

// hook sends the intake a hook with a right signature.
func (x *site) hook(id, body string) *reply {
	return x.ask(x.intake, "POST", "/hooks/shop", body, signedHeaders(id, x.w.Now(), body)...)
}

// accepted sends a hook and wants it to be kept.
func (x *site) accepted(id string) {
	x.Helper()
	r := x.hook(id, "body of "+id)
	x.w.Advance(20 * time.Millisecond)
	if r.status != 202 {
		x.Fatalf("%s: %+v", id, r)
	}
}

// operator asks what operators may, and waits for the answer.
func (x *site) operator(method, path string) *reply {
	r := x.ask(x.queue, method, path, "")
	x.w.Advance(50 * time.Millisecond)
	return r
}

// state is what GET /jobs/ID says.
func (x *site) state(id string) string {
	r := x.operator("GET", "/jobs/"+jobID("shop", id))
	_, rest, _ := strings.Cut(r.body, `"state":"`)
	state, _, _ := strings.Cut(rest, `"`)
	return state
}

// arrived is how often the destination has got the hook of an id.
func (x *site) arrived(id string) (n int) {
	for _, r := range x.sent {
		if r.key == jobID("shop", id) {
			n++
			if r.body != "body of "+id || r.url != "http://out/shop" {
				x.Errorf("%s has arrived as %+v", id, r)
			}
		}
	}
	return n
}

// store is a fake of kv. What is asked happens at once, and is answered a ms later.
type store struct {
	w       *actortest.World
	names   map[string]map[string]*entry
	version uint64
	writes  int
	// fault, if there is one, is asked before a write: the code that it is answered with, and whether it happens nevertheless.
	fault func(namespace, op string) (code service.Code, happens bool)
	// after is called instead of answering a write, if it is set and returns true.
	after func(write int) bool
}

type entry struct {
	value   []byte
	count   int64
	version uint64
	expires time.Time
}

const pageOfFake = 3

func (s *store) serve(c *actortest.Call) {
	name, _ := textOf(c.Field("namespace"))
	if name == "" {
		name = "jobs" // the workers are granted one
	}
	keys := s.names[name]
	for k, e := range keys {
		if !e.expires.IsZero() && !s.w.Now().Before(e.expires) {
			delete(keys, k)
		}
	}
	later := func(v actor.Encoder) {
		raw := abi.NewWriter(nil)
		v.MarshalCBOR(raw)
		s.w.After(time.Millisecond, func() { c.Answer(actor.Raw(raw.Bytes())) })
	}
	fail := func(code service.Code) { s.w.After(time.Millisecond, func() { c.Fail(code, "as the test wants it") }) }
	switch c.Op {
	case "get":
		key, _ := textOf(c.Field("key"))
		e := keys[key]
		if e == nil {
			fail(service.NotFound)
			return
		}
		later(actor.Func(func(w *abi.Writer) {
			w.Map(2)
			w.Text("value")
			w.ByteString(e.value)
			w.Text("version")
			w.Uint(e.version)
		}))
		return
	case "list":
		later(s.list(c, keys))
		return
	}
	code, happens := service.Code(""), true
	if s.fault != nil {
		code, happens = s.fault(name, c.Op)
	}
	var results actor.Encoder
	if happens {
		var bad service.Code
		if results, bad = s.write(c, keys); bad != "" {
			code = bad
		}
	}
	s.writes++
	n := s.writes
	switch {
	case !c.Wanted:
	case code != "":
		fail(code)
	default:
		s.w.After(time.Millisecond, func() {
			if s.after == nil || !s.after(n) {
				c.Answer(results)
			}
		})
	}
}

func (s *store) list(c *actortest.Call, keys map[string]*entry) actor.Encoder {
	prefix, _ := textOf(c.Field("prefix"))
	cursor := ""
	if raw := c.Field("cursor"); raw != nil {
		cursor = string(abi.NewReader(raw).ByteString())
	}
	var found []string
	for k := range keys {
		if strings.HasPrefix(k, prefix) && k > cursor {
			found = append(found, k)
		}
	}
	slices.Sort(found)
	more := len(found) > pageOfFake
	found = found[:min(len(found), pageOfFake)]
	return actor.Func(func(w *abi.Writer) {
		n := 1
		if more {
			n++
		}
		w.Map(n)
		w.Text("entries")
		w.Array(len(found))
		for _, k := range found {
			w.Map(3)
			w.Text("key")
			w.Text(k)
			w.Text("value")
			w.ByteString(keys[k].value)
			w.Text("version")
			w.Uint(keys[k].version)
		}
		if more {
			w.Text("cursor")
			w.ByteString([]byte(found[len(found)-1]))
		}
	})
}

// change is an operation of a batch.
type change struct {
	op, key   string
	value     []byte
	delta     int64
	ttl       time.Duration
	hasIf     bool
	ifVersion uint64
}

func (ch *change) read(r *abi.Reader) {
	for range r.Map() {
		switch key := r.Text(); key {
		case "op":
			ch.op = r.Text()
		case "key":
			ch.key = r.Text()
		case "value":
			ch.value = bytes.Clone(r.ByteString())
		case "delta":
			ch.delta = r.Int()
		case "ttl":
			ch.ttl = time.Duration(r.Int())
		case "if_version":
			ch.hasIf, ch.ifVersion = true, r.Uint()
		default:
			r.Skip()
		}
	}
}

// write carries out all or nothing.
func (s *store) write(c *actortest.Call, keys map[string]*entry) (actor.Encoder, service.Code) {
	changes := []change{{op: c.Op}}
	if c.Op == "batch" {
		changes = nil
		r := abi.NewReader(c.Field("ops"))
		for range r.Array() {
			var ch change
			ch.read(r)
			changes = append(changes, ch)
		}
	} else {
		changes[0].read(c.Reader())
	}
	for _, ch := range changes {
		e := keys[ch.key]
		switch {
		case ch.hasIf && ch.ifVersion == 0 && e != nil:
			return nil, service.Exists
		case ch.hasIf && ch.ifVersion != 0 && (e == nil || e.version != ch.ifVersion):
			return nil, service.Conflict
		}
	}
	s.version++
	for _, ch := range changes {
		e := &entry{value: ch.value, version: s.version}
		if ch.ttl > 0 {
			e.expires = s.w.Now().Add(ch.ttl)
		}
		switch ch.op {
		case "put":
			keys[ch.key] = e
		case "add":
			if old := keys[ch.key]; old != nil {
				e.count = old.count
			}
			e.count += ch.delta
			keys[ch.key] = e
		case "delete":
			delete(keys, ch.key)
		}
	}
	version, first := s.version, changes[0].key
	count := int64(0)
	if e := keys[first]; e != nil {
		count = e.count
	}
	return actor.Func(func(w *abi.Writer) {
		switch c.Op {
		case "add":
			w.Map(2)
			w.Text("count")
			w.Int(count)
		default:
			w.Map(1)
		}
		w.Text("version")
		w.Uint(version)
	}), ""
}

// keysOf are the keys of a namespace with a prefix.
func (s *store) keysOf(name, prefix string) (keys []string) {
	for k := range s.names[name] {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func textOf(b []byte) (string, bool) {
	r := abi.NewReader(b)
	s := r.Text()
	return s, r.Done() == nil
}
