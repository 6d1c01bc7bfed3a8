package natscluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/service"
)

// What nodes that keep nothing ask a keeper for what services share, see keepers.go. Any keeper may answer: changes are compared with the
// revision of the key by the stream's leader. What has changed is asked for, too, from a revision on, so another keeper can go on where one
// has ended: it answers at once if there is something, and otherwise when a change comes, or a while later.

// Bounds of what is asked of a keeper for what services share.
const (
	holdTime      = 3 * time.Second        // for which a keeper waits for a change
	turnTime      = 500 * time.Millisecond // for which what is asked for waits until it is carried out
	lookAgain     = 10 * time.Millisecond  // while a copy is behind
	lookSlowly    = 200 * time.Millisecond // while there are more bundles than a keeper knows by name
	mostNamed     = 16384                  // of these
	mostHeld      = 8192                   // that wait for a change
	mostHeldOf    = 1024                   // of those, of a bundle
	mostHeldBy    = 4                      // of those, of a service, with answers to one node
	mostValues    = 8192                   // other requests that are carried out
	mostValuesOf  = 512                    // of those, of a bundle
	bytesValuesOf = 8 << 20                // of those
	bytesPutting  = 12 << 20               // of values that are being stored: all of five keepers fit into the room that is left for removals
	bytesPutOf    = 1 << 20                // of those, of a bundle
	mostReading   = 64                     // answers with values that are being read
	mostReadingOf = 16                     // of those, of a bundle
	bytesChanges  = 384 << 10              // of keys and values that are read at once, until there are as many: an answer has one more at most
)

// An answer with changes fits into a packet.
const _ = uint(maxPayload - (bytesChanges + maxValue + maxSharedKey + batch*partOverhead))

// valuesServer answers other nodes for what services share.
type valuesServer struct {
	puts, gets *semaphore.Weighted

	mu    sync.Mutex
	count int
	loads map[string]*load
	of    map[string]*served // by service
}

// load is what is carried out for a bundle. It counts users, and is forgotten without any.
type load struct {
	count      int
	bytes      int
	puts, gets *semaphore.Weighted
}

func (x *valuesServer) begins() {
	x.puts, x.gets = semaphore.NewWeighted(bytesPutting), semaphore.NewWeighted(mostReading)
	x.loads, x.of = map[string]*load{}, map[string]*served{}
}

// enter says whether a request of a bundle may be carried out, which ends with leave.
func (x *valuesServer) enter(bundle string, bytes int) *load {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.loads[bundle]
	if l == nil {
		l = &load{puts: semaphore.NewWeighted(bytesPutOf), gets: semaphore.NewWeighted(mostReadingOf)}
	}
	if x.count >= mostValues || l.count >= mostValuesOf || l.count > 0 && l.bytes+bytes > bytesValuesOf {
		return nil
	}
	x.loads[bundle] = l
	x.count++
	l.count++
	l.bytes += bytes
	return l
}

func (x *valuesServer) leave(bundle string, l *load, bytes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count--
	l.bytes -= bytes
	if l.count--; l.count == 0 {
		delete(x.loads, bundle)
	}
}

// both waits for room of a bundle, and then of all; false: there was none in time. It is given back by the function.
func both(ctx context.Context, of, all *semaphore.Weighted, n int64) (func(), bool) {
	if of.Acquire(ctx, n) != nil {
		return nil, false
	}
	if all.Acquire(ctx, n) != nil {
		of.Release(n)
		return nil, false
	}
	return func() { all.Release(n); of.Release(n) }, true
}

// askedValues answers what is asked for what services share of a bundle. It does not wait.
func (s *keeperServer) askedValues(m *nats.Msg, bundle string, r *keeperRequest) {
	st, ok := s.c.shared.of[r.Kind].opened()
	if !ok || !s.c.journals.begin() {
		s.over(m)
		s.fail(m, service.ErrNotWritten)
		return
	}
	v := s.served(r.Kind, st)
	switch r.Op {
	case valuesOpen, valuesWatch:
		defer s.c.journals.wait.Done()
		defer s.over(m)
		if r.Op == valuesOpen {
			s.answer(m, keeperAnswer{})
			return
		}
		v.asked(m.Reply, bundle, r)
		return
	}
	l := s.values.enter(bundle, len(m.Data))
	if l == nil {
		s.c.journals.wait.Done()
		s.over(m)
		s.fail(m, service.ErrNotWritten)
		return
	}
	go func() {
		defer s.c.journals.wait.Done()
		defer s.over(m)
		defer s.values.leave(bundle, l, len(m.Data))
		if r.Op == valuesPut {
			s.put(m, v, l, r)
		} else {
			s.get(m, v, l, r)
		}
	}()
}

func (s *keeperServer) put(m *nats.Msg, v *served, l *load, r *keeperRequest) {
	if len(r.Record) > 0 { // removals always have room
		ctx, cancel := context.WithTimeout(s.c.journals.all, turnTime)
		defer cancel()
		size := int64(len(r.Name) + len(r.Record) + service.SharedOverhead)
		leave, ok := both(ctx, l.puts, s.values.puts, size)
		if !ok {
			s.fail(m, service.ErrNotWritten)
			return
		}
		defer leave()
		if !v.fits(r.Name, size) {
			s.fail(m, service.ErrFull)
			return
		}
		if err := v.room.take(ctx, v.st, size); err != nil {
			s.fail(m, err)
			return
		}
	}
	at, err := v.st.put(r.Name, r.Record, r.At, r.Stay)
	if err != nil {
		s.fail(m, err)
		return
	}
	s.answer(m, keeperAnswer{At: at})
}

func (s *keeperServer) get(m *nats.Msg, v *served, l *load, r *keeperRequest) {
	ctx, cancel := context.WithTimeout(s.c.journals.all, turnTime)
	defer cancel()
	leave, ok := both(ctx, l.gets, s.values.gets, 1)
	if !ok {
		s.fail(m, service.ErrNotWritten)
		return
	}
	defer leave()
	value, at, err := v.st.get(s.c.journals.all, r.Name)
	if err != nil {
		s.fail(m, err)
		return
	}
	s.answer(m, keeperAnswer{At: at, Record: value})
}

// room knows about how many bytes a store has, so that removals find some that values do not take.
type room struct {
	turn  chan struct{}
	had   uint64 // when its leader was last asked
	since int64  // bytes of values that this keeper has begun to store since then
	asked time.Time
}

// Bounds of what is not known of a store: while it is asked again, other keepers may store so much.
const (
	roomAge   = time.Second
	roomBytes = 1 << 20
)

// take says that values have room for so many bytes more. The error is service.ErrFull if they have not.
func (x *room) take(ctx context.Context, st *store, n int64) error {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return service.ErrNotWritten
	}
	if x.since += n; x.since > roomBytes || time.Since(x.asked) > roomAge {
		is, err := stateOf(ctx, st.nc, st.stream)
		if err != nil {
			return service.ErrNotWritten
		}
		x.had, x.since, x.asked = is.Bytes, n, time.Now()
	}
	if int64(x.had)+x.since > service.MaxSharedTotal {
		x.since -= n
		return service.ErrFull
	}
	return nil
}

// served is what a service shares, as a keeper follows its changes for other nodes.
type served struct {
	s    *keeperServer
	st   *store
	room room

	mu    sync.Mutex
	ready bool              // all that there was when this began was told
	last  map[string]uint64 // of each bundle the revision of its last change that was told
	has   *shares
	lacks bool // there are more bundles than that has room for
	held  map[string]*waiting
	count int
}

// waiting are the requests of a bundle for changes.
type waiting struct {
	all   []*poll // that wait for one
	by    map[string]int
	count int // also those that are being answered
}

// poll is a request for changes.
type poll struct {
	reply  string
	bundle string // as keys begin with it
	since  uint64
	now    bool
	until  time.Time
}

// by is the node that is answered, as its inbox says.
func (p *poll) by() string {
	token, _, _ := strings.Cut(p.reply, ".")
	return token
}

// served is what follows a service, from now on.
func (s *keeperServer) served(name string, st *store) *served {
	s.values.mu.Lock()
	defer s.values.mu.Unlock()
	v := s.values.of[name]
	if v == nil {
		v = &served{s: s, st: st, room: room{turn: make(chan struct{}, 1)}, last: map[string]uint64{}, has: newShares(), held: map[string]*waiting{}}
		s.values.of[name] = v
		st.follow(v.changed, func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.ready = true
		})
		if s.c.journals.begin() {
			go v.sweep(s.c.journals.all)
		}
	}
	return v
}

// fits says whether a value leaves its bundle within its share.
func (v *served) fits(key string, size int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.has.fits(key, size)
}

// asked takes a request for changes. It does not wait.
func (v *served) asked(reply, bundle string, r *keeperRequest) {
	p := &poll{reply: reply, bundle: string(service.AppendSharedName(nil, bundle)), since: r.At, now: r.Now, until: time.Now().Add(holdTime)}
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.held[p.bundle]
	if w == nil {
		w = &waiting{by: map[string]int{}}
	}
	if v.count >= mostHeld || w.count >= mostHeldOf || w.by[p.by()] >= mostHeldBy || !v.s.c.journals.begin() {
		v.s.fail(&nats.Msg{Reply: reply}, service.ErrNotWritten)
		return
	}
	v.held[p.bundle] = w
	v.count++
	w.count++
	w.by[p.by()]++
	if !p.now && v.unchanged(p) {
		w.all = append(w.all, p)
		v.s.c.journals.wait.Done()
		return
	}
	go func() {
		defer v.s.c.journals.wait.Done()
		v.read(p, bundle)
	}()
}

// unchanged says that a bundle has not changed since, as far as this keeper was told: it is told of any later change. With the lock.
func (v *served) unchanged(p *poll) bool {
	last, ok := v.last[p.bundle]
	return v.ready && (ok || !v.lacks) && last <= p.since
}

// read answers a request with what has changed since, or has it wait for a change.
func (v *served) read(p *poll, bundle string) {
	ctx, cancel := context.WithDeadline(v.s.c.journals.all, p.until)
	defer cancel()
	for {
		list, at, more, ok := v.changes(ctx, p, bundle)
		if ok && (at > p.since || p.now) {
			a := keeperAnswer{At: at, More: more}
			for _, e := range list {
				a.List = append(a.List, keeperEntry{At: e.Revision, Record: e.Value, Name: e.Key})
			}
			v.answer(p, a)
			return
		}
		v.mu.Lock()
		if ok && v.unchanged(p) {
			v.held[p.bundle].all = append(v.held[p.bundle].all, p)
			v.mu.Unlock()
			return
		}
		again := lookAgain
		if v.lacks {
			again = lookSlowly
		}
		v.mu.Unlock()
		select { // the copy that has answered is behind, or none has
		case <-ctx.Done():
			if p.now {
				v.answer(p, keeperAnswer{Code: notWritten})
			} else {
				v.answer(p, keeperAnswer{At: p.since})
			}
			return
		case <-time.After(again):
		}
	}
}

// changes are those of a bundle that a copy of the stream has. ok says that one has answered.
func (v *served) changes(ctx context.Context, p *poll, bundle string) (list []cluster.Entry, at uint64, more, ok bool) {
	l := v.s.values.enter(bundle, 0)
	if l == nil {
		return nil, p.since, true, false
	}
	defer v.s.values.leave(bundle, l, 0)
	leave, ok := both(ctx, l.gets, v.s.values.gets, 1)
	if !ok {
		return nil, p.since, true, false
	}
	defer leave()
	list, at, more = v.st.changes(p.bundle+".", p.since, bytesChanges)
	return list, at, more, !more || at > p.since
}

// answer ends a request.
func (v *served) answer(p *poll, a keeperAnswer) { v.publish(p, mustEncode(a)) }

func (v *served) publish(p *poll, b []byte) {
	_ = v.s.c.nodes.Publish(p.reply, b)
	v.mu.Lock()
	defer v.mu.Unlock()
	w := v.held[p.bundle]
	v.count--
	if w.by[p.by()]--; w.by[p.by()] == 0 {
		delete(w.by, p.by())
	}
	if w.count--; w.count == 0 {
		delete(v.held, p.bundle)
	}
}

// changed is told of all changes in their order, and tells those who wait for one of the bundle.
func (v *served) changed(e cluster.Entry) {
	bundle, _, _ := strings.Cut(e.Key, ".")
	v.mu.Lock()
	v.has.changed(bundle, e)
	if _, ok := v.last[bundle]; ok || len(v.last) < mostNamed {
		v.last[bundle] = e.Revision
	} else {
		v.lacks = true
	}
	due := v.take(bundle, func(p *poll) bool { return p.since < e.Revision })
	v.mu.Unlock()
	if len(due) == 0 {
		return
	}
	b := mustEncode(keeperAnswer{At: e.Revision, List: []keeperEntry{{At: e.Revision, Record: e.Value, Name: e.Key}}})
	for _, p := range due {
		v.publish(p, b)
	}
}

// take is those of a bundle that wait and are to be answered; with the lock.
func (v *served) take(bundle string, due func(*poll) bool) (taken []*poll) {
	w := v.held[bundle]
	if w == nil {
		return nil
	}
	w.all = slices.DeleteFunc(w.all, func(p *poll) bool {
		if due(p) {
			taken = append(taken, p)
			return true
		}
		return false
	})
	return taken
}

// sweep answers those that have waited long enough.
func (v *served) sweep(ctx context.Context) {
	defer v.s.c.journals.wait.Done()
	tick := time.NewTicker(holdTime / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			var due []*poll
			v.mu.Lock()
			for bundle := range v.held {
				due = append(due, v.take(bundle, func(p *poll) bool { return now.After(p.until) })...)
			}
			v.mu.Unlock()
			for _, p := range due {
				v.answer(p, keeperAnswer{At: p.since})
			}
		}
	}
}
