package observe

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// DefaultCrashBytes is about how many bytes of crash reports are kept in memory, and on disk.
const DefaultCrashBytes = 8 << 20

// Crash reports are kept apart from events, and room is shared: first between the types of
// actors, then between the causes of failures of a type. The oldest report of the cause that has
// most goes, so an actor that fails in a loop only pushes out its own reports.
type crashes struct {
	sub    *host.Subscription
	most   int
	folder *CrashFolder // nil: nothing is saved
	done   chan struct{}

	mu      sync.Mutex
	types   crashHeap[*crashType]
	of      map[string]*crashType
	ids     map[string]*crashEntry
	bytes   int
	ever    uint64 // since the start
	number  uint64 // of the newest
	unsaved bool   // there are reports that are not in the file
}

// crashType has the reports of the actors of a type.
type crashType struct {
	name   string
	causes crashHeap[*crashCause]
	of     map[string]*crashCause
	bytes  int
	index  int // in the heap
}

// crashCause has the reports of one cause, oldest first.
type crashCause struct {
	text    string
	entries []*crashEntry
	ever    uint64 // since the oldest that is kept came
	bytes   int
	index   int
}

// crashEntry is a report.
type crashEntry struct {
	Crash
	number uint64
	event  *host.Event     // nil: it was read from the file
	raw    json.RawMessage // of one that was read
	bytes  int
	saved  bool
}

// crashed is what a heap sorts: the one that gives a report away comes first.
type crashed interface {
	load() (bytes int, oldest uint64)
	at(index int)
	where() int
}

func (t *crashType) load() (int, uint64) {
	_, oldest := t.causes[0].load()
	return t.bytes, oldest
}
func (t *crashType) at(i int)             { t.index = i }
func (t *crashType) where() int           { return t.index }
func (c *crashCause) load() (int, uint64) { return c.bytes, c.entries[0].number }
func (c *crashCause) at(i int)            { c.index = i }
func (c *crashCause) where() int          { return c.index }

// crashHeap implements heap.Interface.
type crashHeap[T crashed] []T

func (h crashHeap[T]) Len() int { return len(h) }
func (h crashHeap[T]) Less(i, j int) bool {
	a, olderA := h[i].load()
	b, olderB := h[j].load()
	return a > b || a == b && olderA < olderB
}
func (h crashHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at(i)
	h[j].at(j)
}
func (h *crashHeap[T]) Push(x any) {
	v := x.(T)
	v.at(len(*h))
	*h = append(*h, v)
}
func (h *crashHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	clear(old[len(old)-1:])
	*h = old[:len(old)-1]
	return last
}

// observeCrashes has a subscription of its own: other events cannot crowd failures out.
func observeCrashes(sys *host.System, most int, folder *CrashFolder) *crashes {
	c := &crashes{most: most, folder: folder, done: make(chan struct{}), of: map[string]*crashType{}, ids: map[string]*crashEntry{}}
	if folder != nil {
		for _, e := range folder.kept {
			c.insert(e)
		}
		folder.kept = nil
	}
	c.sub = sys.Subscribe(backlog, func(e *host.Event) bool { return e.Kind == host.EventFailed && e.ID != "" })
	go c.pump()
	return c
}

func (c *crashes) close() {
	c.sub.Close()
	<-c.done
}

func (c *crashes) pump() {
	defer close(c.done)
	defer func() {
		c.save(true)
		if c.folder != nil {
			c.folder.tell(c.folder.Close())
		}
	}()
	var due <-chan time.Time
	if c.folder != nil {
		t := time.NewTicker(crashSaveEvery)
		defer t.Stop()
		due = t.C
	}
	for {
		select {
		case e, open := <-c.sub.C():
			if !open {
				return
			}
			c.add(&e)
		case <-due:
			c.save(false)
		}
	}
}

// add keeps the report of a failure.
func (c *crashes) add(e *host.Event) {
	x := &crashEntry{Crash: crashOf(e), event: e, bytes: weight(&Event{Event: *e})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ever++
	c.unsaved = true
	c.insert(x)
}

// crashOf is the row of a report.
func crashOf(e *host.Event) Crash {
	x := Crash{
		ID: e.ID, Time: e.Time.UTC(), Path: line(e.Ref.Path()), Ref: refText(e.Ref), Type: e.Type, Incarnation: e.Incarnation,
		Decided: e.Directive.String(), DelayNS: int64(e.Delay),
	}
	if f := e.Failure; f != nil {
		x.Kind, x.Reason = f.Kind.String(), line(strings.TrimPrefix(f.Error(), f.Kind.String()+": "))
	}
	if e.Directive == 0 {
		x.Decided = ""
	}
	x.Cause = causeOf(x.Kind, x.Reason)
	return x
}

// mostCause bounds the text of a cause, in bytes.
const mostCause = 100

// causeOf is what reports of the same cause have in common: numbers in their texts differ.
func causeOf(kind, reason string) string {
	var b strings.Builder
	b.WriteString(kind)
	b.WriteString(": ")
	digits := false
	for _, r := range reason {
		if b.Len() >= mostCause {
			break
		}
		if r >= '0' && r <= '9' {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(r)
	}
	return b.String()
}

// insert adds a report and drops those that there is no room for. c.mu is held, or c is not
// shared yet.
func (c *crashes) insert(e *crashEntry) {
	if c.ids[e.ID] != nil {
		return
	}
	c.number++
	e.number = c.number
	t := c.of[e.Type]
	if t == nil {
		t = &crashType{name: e.Type, of: map[string]*crashCause{}}
		c.of[e.Type] = t
	}
	cause := t.of[e.Cause]
	fresh := cause == nil
	if fresh {
		cause = &crashCause{text: e.Cause}
		t.of[e.Cause] = cause
	}
	cause.entries = append(cause.entries, e)
	cause.ever++
	cause.bytes += e.bytes
	if fresh {
		heap.Push(&t.causes, cause)
	} else {
		heap.Fix(&t.causes, cause.index)
	}
	t.bytes += e.bytes
	if len(t.causes) == 1 && fresh {
		heap.Push(&c.types, t)
	} else {
		heap.Fix(&c.types, t.index)
	}
	c.bytes += e.bytes
	c.ids[e.ID] = e
	for c.bytes > c.most && len(c.ids) > 1 {
		c.evict()
	}
}

// evict drops the oldest report of the cause with most, of the type with most.
func (c *crashes) evict() {
	t := c.types[0]
	cause := t.causes[0]
	e := cause.entries[0]
	cause.entries[0] = nil
	cause.entries = cause.entries[1:]
	cause.bytes -= e.bytes
	t.bytes -= e.bytes
	c.bytes -= e.bytes
	delete(c.ids, e.ID)
	if len(cause.entries) > 0 {
		heap.Fix(&t.causes, 0)
	} else {
		heap.Pop(&t.causes)
		delete(t.of, cause.text)
	}
	if len(t.causes) > 0 {
		heap.Fix(&c.types, 0)
	} else {
		heap.Pop(&c.types)
		delete(c.of, t.name)
	}
}

// all are the reports, oldest first. c.mu is held.
func (c *crashes) all() []*crashEntry {
	list := make([]*crashEntry, 0, len(c.ids))
	for _, e := range c.ids {
		list = append(list, e)
	}
	slices.SortFunc(list, byNumber)
	return list
}

func byNumber(a, b *crashEntry) int { return cmp.Compare(a.number, b.number) }

// json is the report in full: the JSON of its event.
func (e *crashEntry) json() (json.RawMessage, error) {
	if e.event == nil {
		return e.raw, nil
	}
	return e.event.MarshalJSON()
}
