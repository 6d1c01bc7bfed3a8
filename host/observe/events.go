package observe

import (
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Event is something that has happened. Its JSON is host.Event's, with its number.
type Event struct {
	host.Event
	Number uint64 // from 1, of those that the observer has seen
}

// MaxEventBytes is about how many bytes written by guests the kept events may hold.
const MaxEventBytes = 4 << 20

// events keeps the last events and passes new ones to the listeners.
type events struct {
	sub  *host.Subscription
	most int
	done chan struct{}

	mu      sync.Mutex
	kept    []Event // a ring once it is full
	head    int     // the oldest
	bytes   int
	number  uint64
	streams []*listener
	ended   bool
}

// listener is a stream with its filter.
type listener struct {
	*Stream[Event]
	wants *eventMatcher
}

// backlog is how many events may wait for the observer.
const backlog = 4096

func observeEvents(sys *host.System, most int) *events {
	e := &events{sub: sys.Subscribe(backlog, nil), most: most, done: make(chan struct{})}
	go e.pump()
	return e
}

func (e *events) close() {
	e.sub.Close()
	<-e.done
}

func (e *events) pump() {
	defer close(e.done)
	for h := range e.sub.C() {
		e.take(h)
	}
	e.mu.Lock()
	e.ended = true
	streams := e.streams
	e.streams = nil
	e.mu.Unlock()
	for _, s := range streams {
		s.end("the system has ended, or is observed no more")
	}
}

// take keeps an event and hands it on.
func (e *events) take(h host.Event) {
	e.mu.Lock()
	e.number++
	x := Event{h, e.number}
	e.keep(x)
	streams := e.streams
	e.mu.Unlock()
	for _, s := range streams {
		if s.wants.match(&x) {
			s.put(x)
		}
		if s.wants.over(&x) {
			s.end("the actor has stopped: " + line(x.Note))
		}
	}
}

// keep enters an event, and drops the oldest ones that are too many. e.mu is held.
func (e *events) keep(x Event) {
	e.bytes += weight(&x)
	e.kept = append(e.kept, x)
	for len(e.kept)-e.head > e.most || e.bytes > MaxEventBytes && len(e.kept)-e.head > 1 {
		e.bytes -= weight(&e.kept[e.head])
		e.kept[e.head] = Event{}
		e.head++
	}
	if e.head > len(e.kept)/2 && e.head > 64 {
		n := copy(e.kept, e.kept[e.head:])
		clear(e.kept[n:])
		e.kept, e.head = e.kept[:n], 0
	}
}

// weight is about what an event holds, in bytes.
func weight(x *Event) int {
	n := 400 + len(x.Text) + len(x.Note)
	if d := x.Dead; d != nil {
		n += 200 + len(d.Payload) + len(d.Path)
	}
	if m := x.Mail; m != nil {
		n += 100 + len(m.Payload)
	}
	if f := x.Failure; f != nil {
		n += len(f.Reason) + len(f.Message) + len(f.GuestStack)
		for _, s := range f.Stack {
			n += 16 + len(s)
		}
	}
	if r := x.Refused; r != nil {
		n += len(r.Type) + len(r.Name) + len(r.Reason)
	}
	return n
}

// Events are past events, and with Follow also those to come. The stream of one path ends
// when the actor there has stopped.
func (o *Observer) Events(q EventQuery) (*Stream[Event], error) {
	m, err := q.compile()
	if err != nil {
		return nil, err
	}
	buffer := q.Buffer
	switch {
	case buffer == 0:
		buffer = 256
	case buffer < 0 || buffer > 65536:
		return nil, invalid("a buffer of %d events", buffer)
	}
	e := o.events
	e.mu.Lock()
	defer e.mu.Unlock()
	var history []Event
	for i := e.head; i < len(e.kept); i++ {
		if x := &e.kept[i]; x.Number > q.After && !x.Time.Before(q.Since) && m.match(x) {
			history = append(history, *x)
		}
	}
	s := newStream[Event](len(history) + buffer)
	for _, x := range history {
		s.put(x)
	}
	if !q.Follow || e.ended {
		s.end("")
		return s, nil
	}
	l := &listener{s, m}
	s.stop = func() { e.remove(l) }
	e.streams = append(slices.Clone(e.streams), l)
	return s, nil
}

func (e *events) remove(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams = slices.DeleteFunc(slices.Clone(e.streams), func(x *listener) bool { return x == l })
}

// eventMatcher is a compiled EventQuery.
type eventMatcher struct {
	paths []pathGlob
	one   string // the only path, if it has no patterns
	types []string
	kinds map[host.EventKind]bool
	level int

	but struct {
		paths []pathGlob
		types []string
		kinds map[host.EventKind]bool
	}
}

// EventKinds are the names of all kinds of events.
func EventKinds() (names []string) {
	for k := host.EventStarted; k.String() != host.EventKind(0).String(); k++ {
		names = append(names, k.String())
	}
	return names
}

// Matcher is what tells whether an event is asked for: by paths, types, kinds, level and Since. It may be called by any goroutine.
func (q EventQuery) Matcher() (func(*Event) bool, error) {
	m, err := q.compile()
	if err != nil {
		return nil, err
	}
	return func(e *Event) bool { return !e.Time.Before(q.Since) && m.match(e) }, nil
}

// PathMatcher is what tells whether a path matches one of the patterns, which are those of [Select].Paths; without a pattern each does.
func PathMatcher(patterns []string) (func(path string) bool, error) {
	globs, err := compilePaths(patterns)
	if err != nil {
		return nil, err
	}
	return func(path string) bool { return matchAny(globs, path) }, nil
}

func (q EventQuery) compile() (*eventMatcher, error) {
	m := &eventMatcher{types: q.Types}
	var err error
	if m.paths, err = compilePaths(q.Paths); err != nil {
		return nil, err
	}
	if len(q.Paths) == 1 && !glob.HasMeta(q.Paths[0]) {
		m.one = q.Paths[0]
	}
	if m.kinds, err = compileKinds(q.Types, q.Kinds); err != nil {
		return nil, err
	}
	if m.but.paths, err = compilePaths(q.But.Paths); err != nil {
		return nil, err
	}
	if m.but.kinds, err = compileKinds(q.But.Types, q.But.Kinds); err != nil {
		return nil, err
	}
	m.but.types = q.But.Types
	if q.Level != "" {
		var ok bool
		if m.level, ok = host.ParseLevel(q.Level); !ok {
			return nil, invalid("there is no level %q; the levels are %s", clip(q.Level), strings.Join(host.LevelNames(), ", "))
		}
	}
	return m, nil
}

// compileKinds reads the names of kinds, nil if there are none, and checks how many types there are.
func compileKinds(types, kinds []string) (map[host.EventKind]bool, error) {
	if len(types) > maxPatterns || len(kinds) > maxPatterns {
		return nil, invalid("more than %d types or kinds", maxPatterns)
	}
	if len(kinds) == 0 {
		return nil, nil
	}
	names, out := EventKinds(), map[host.EventKind]bool{}
	for _, k := range kinds {
		i := slices.Index(names, k)
		if i < 0 {
			return nil, invalid("there is no event %q; the events are %s", clip(k), strings.Join(names, ", "))
		}
		out[host.EventStarted+host.EventKind(i)] = true
	}
	return out, nil
}

func (m *eventMatcher) match(x *Event) bool {
	if m.but.kinds[x.Kind] || glob.MatchAny(m.but.types, x.Type) || len(m.but.paths) > 0 && matchAny(m.but.paths, x.Ref.Path()) {
		return false
	}
	if m.kinds != nil && !m.kinds[x.Kind] || len(m.types) > 0 && !glob.MatchAny(m.types, x.Type) {
		return false
	}
	if x.Kind == host.EventLog && x.Level < m.level {
		return false
	}
	if len(m.paths) == 0 || matchAny(m.paths, x.Ref.Path()) {
		return true
	}
	d := x.Dead
	return d != nil && (matchAny(m.paths, d.Path) || matchAny(m.paths, d.From))
}

// over reports whether the stream of one actor is over.
func (m *eventMatcher) over(x *Event) bool {
	return m.one != "" && x.Kind == host.EventStopped && x.Ref.Path() == m.one
}
