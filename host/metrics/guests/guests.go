// Package guests is the service to which guests send their own figures: an actor,
// /system/metrics, which takes updates of the metrics that a manifest grants and no others.
//
// A guest sends it, as a tell or an ask, an array of [name, value]: a counter grows by the value, a
// gauge is set to it, a histogram observes it. Permissions are looked up by the sender that
// the host states. docs/metrics.md has the rest.
package guests

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/metrics/exposition"
	"github.com/wasmactors/wasmactors/host/service/fair"
)

// Name is the service's below /system, Path its path.
const (
	Name = "metrics"
	Path = "/system/" + Name
)

// Prefix begins the names of guests' metrics where they are shown, so that they
// are never taken for the host's or another program's.
const Prefix = "wasmactors_guest_"

// Bounds.
const (
	MaxMetrics = 50   // of a grant
	MaxBuckets = 30   // of a histogram
	MaxUpdates = 100  // in a message
	MaxSenders = 1000 // whose values a gauge of a grant can have
	MaxValue   = 1e15 // of one update, whatever its sign
)

// Metric is a metric that an actor may write.
type Metric struct {
	Name    string
	Kind    exposition.Kind
	Help    string
	Buckets []float64 // histogram: the bounds, ascending; nil: DefaultBuckets
}

// DefaultBuckets are for times in seconds.
var DefaultBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}

// NameRule is what names look like, as a regular expression.
const NameRule = `[a-z][a-z0-9_]{0,62}`

// validName checks NameRule without a regular expression, which would be compiled at every start of a program.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 63
}

// Check says what is wrong with a metric. Names follow Prometheus' conventions.
func (m *Metric) Check() error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("the metric %s: %s", m.Name, fmt.Sprintf(format, args...))
	}
	total := strings.HasSuffix(m.Name, "_total")
	switch {
	case !validName(m.Name):
		return no("a name must be lower-case letters, digits and _, begin with a letter and have at most 63 characters")
	case m.Kind < exposition.Counter || m.Kind > exposition.Histogram:
		return no("it must be a counter, a gauge or a histogram")
	case m.Kind == exposition.Counter && !total:
		return no("the name of a counter must end with _total")
	case m.Kind != exposition.Counter && total:
		return no("only the name of a counter may end with _total")
	case len(m.Buckets) > 0 && m.Kind != exposition.Histogram:
		return no("only a histogram may have buckets")
	case len(m.Buckets) > MaxBuckets:
		return no("%d buckets, at most %d", len(m.Buckets), MaxBuckets)
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_info"} {
		if strings.HasSuffix(m.Name, suffix) {
			return no("the ending %s is reserved by the format", suffix)
		}
	}
	for i, b := range m.Buckets {
		if b-b != 0 || i > 0 && b <= m.Buckets[i-1] {
			return no("the bounds of buckets must be numbers in ascending order")
		}
	}
	return nil
}

// Agree says what is wrong with the grants of one system together: every name must have one kind,
// one help and the same buckets, in whichever grant it is.
func Agree(a, b *Metric) error {
	switch {
	case a.Name != b.Name:
		return nil
	case a.Kind != b.Kind:
		return fmt.Errorf("the metric %s is a %s here and a %s elsewhere", a.Name, a.Kind, b.Kind)
	case a.Help != b.Help:
		return fmt.Errorf("the metric %s has different helps", a.Name)
	case !slices.Equal(a.Buckets, b.Buckets):
		return fmt.Errorf("the metric %s has different buckets", a.Name)
	}
	return nil
}

// Service takes the updates. All methods are for any goroutine.
type Service struct {
	mu     sync.Mutex
	grants map[string]*grant // by the path of the actor that has it
	paths  []string          // sorted
	names  []string          // of all metrics, sorted
}

// grant is what an actor, and those that it has spawned, may write.
type grant struct {
	by      map[string]*series
	holder  host.Ref // as it is watched
	ended   bool     // nothing is shown until it writes again
	senders map[abi.Ref]int
	refused uint64
}

// series is one metric of a grant.
type series struct {
	Metric
	value  float64             // counter; histogram: the sum
	counts []uint64            // histogram: of each bucket, and last of what is larger
	of     map[abi.Ref]float64 // gauge: by sender
}

// New makes a service with the grants of actors, by their paths, such as /user/shop.
func New(grants map[string][]Metric) (*Service, error) {
	s := &Service{grants: map[string]*grant{}}
	kinds := map[string]*Metric{}
	for path, metrics := range grants {
		if len(metrics) > MaxMetrics {
			return nil, fmt.Errorf("metrics: %s has %d metrics, at most %d", path, len(metrics), MaxMetrics)
		}
		g := &grant{by: map[string]*series{}, senders: map[abi.Ref]int{}}
		for i := range metrics {
			m := &metrics[i]
			if err := m.Check(); err != nil {
				return nil, fmt.Errorf("metrics: %s: %w", path, err)
			}
			if known := kinds[m.Name]; known != nil {
				if err := Agree(m, known); err != nil {
					return nil, fmt.Errorf("metrics: %s: %w", path, err)
				}
			} else {
				kinds[m.Name] = m
				s.names = append(s.names, m.Name)
			}
			x := &series{Metric: *m}
			if m.Kind == exposition.Histogram {
				if x.Buckets == nil {
					x.Buckets = DefaultBuckets
				}
				x.counts = make([]uint64, len(x.Buckets)+1)
			}
			g.by[m.Name] = x
		}
		s.grants[path] = g
		s.paths = append(s.paths, path)
	}
	slices.Sort(s.names)
	slices.Sort(s.paths)
	return s, nil
}

// Props makes the props of the service's actor, for System.SpawnService(Name, ...). No tree of actors
// can use more than a part of its mailbox.
func (s *Service) Props() host.Props {
	return host.Func(s.receive).WithMailbox(fair.New).WithLimits(host.Limits{Watches: 1 << 20})
}

func (s *Service) receive(ctx *host.Context, m host.Message) error {
	switch m.Kind {
	case abi.KindTerminated:
		s.gone(m.Sender)
		return nil
	case abi.KindMessage:
	default:
		return host.ErrUnhandled
	}
	err := s.update(ctx, m)
	switch {
	case m.Correlation != 0 && err != nil:
		return ctx.ReplyError(err.Error())
	case m.Correlation != 0:
		return ctx.Reply(nil)
	case err != nil:
		return host.ErrUnhandled // so that it is visible who has sent what
	}
	return nil
}

// update takes a message, as a whole or not at all.
func (s *Service) update(ctx *host.Context, m host.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, g := s.grantOf(m.Sender.Path())
	if g == nil {
		return fmt.Errorf("metrics: %s has no metrics; capabilities.metrics in the manifest grants them", m.Sender.Path())
	}
	all, err := g.read(m.Payload)
	if err == nil {
		err = g.admit(ctx, m.Sender, path, all)
	}
	if err != nil {
		g.refused++
		return err
	}
	for _, u := range all {
		u.of.take(m.Sender.UID(), u.value)
	}
	return nil
}

// grantOf is the grant of the actor at a path, or of the nearest actor above it that has one.
func (s *Service) grantOf(path string) (string, *grant) {
	for path != "" {
		if g := s.grants[path]; g != nil {
			return path, g
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
	return "", nil
}

type change struct {
	of    *series
	value float64
}

// read checks a message.
func (g *grant) read(payload []byte) ([]change, error) {
	var buf [8]change
	out := buf[:0]
	r := abi.NewReader(payload)
	n := r.Array()
	if r.Err() != nil || n > MaxUpdates {
		return nil, fmt.Errorf("metrics: a message is an array of at most %d updates", MaxUpdates)
	}
	for range n {
		if r.Array() != 2 {
			return nil, fmt.Errorf("metrics: an update is [name, value]")
		}
		name := r.TextBytes()
		v, ok := numberOf(r)
		x := g.by[string(name)]
		switch {
		case r.Err() != nil || !ok:
			return nil, fmt.Errorf("metrics: an update is [name, value], the value a number")
		case x == nil:
			return nil, fmt.Errorf("metrics: %.80q is not granted; capabilities.metrics in the manifest lists what is", name)
		case !(math.Abs(v) <= MaxValue):
			return nil, fmt.Errorf("metrics: %s: the value is not between -1e15 and 1e15", x.Name)
		case x.Kind == exposition.Counter && v < 0:
			return nil, fmt.Errorf("metrics: %s: a counter can only grow", x.Name)
		}
		out = append(out, change{x, v})
	}
	if r.Done() != nil {
		return nil, fmt.Errorf("metrics: something follows the updates")
	}
	return out, nil
}

// numberOf takes whole numbers as well as others.
func numberOf(r *abi.Reader) (float64, bool) {
	switch r.Peek() {
	case abi.TypeUint, abi.TypeNint:
		return float64(r.Int()), r.OK() // beyond 63 bits it is beyond MaxValue, too
	case abi.TypeFloat:
		return r.Float(), r.OK()
	}
	return 0, false
}

// admit makes sure that what is written is removed when the actors end.
func (g *grant) admit(ctx *host.Context, sender host.Ref, path string, all []change) error {
	if g.holder.IsZero() {
		holder, err := ctx.System().Lookup(path)
		if err != nil {
			return fmt.Errorf("metrics: %s has stopped", path)
		}
		if err := ctx.Watch(holder); err != nil {
			return err
		}
		g.holder, g.ended = holder, false
	}
	gauges := slices.ContainsFunc(all, func(c change) bool { return c.of.Kind == exposition.Gauge })
	if _, known := g.senders[sender.UID()]; !gauges || known {
		return nil
	}
	if len(g.senders) >= MaxSenders {
		return fmt.Errorf("metrics: gauges of %s are written by %d actors already", path, MaxSenders)
	}
	if err := ctx.Watch(sender); err != nil {
		return err
	}
	g.senders[sender.UID()] = 1
	return nil
}

func (x *series) take(sender abi.Ref, v float64) {
	switch x.Kind {
	case exposition.Counter:
		x.value += v
	case exposition.Gauge:
		if x.of == nil {
			x.of = map[abi.Ref]float64{}
		}
		x.of[sender] = v
	case exposition.Histogram:
		at, _ := slices.BinarySearch(x.Buckets, v)
		x.counts[at]++
		x.value += v
	}
}

// gone removes what an actor that has ended has written: its parts of gauges, and everything of
// a grant if the grant was its own.
func (s *Service) gone(who host.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.paths {
		g := s.grants[path]
		if _, wrote := g.senders[who.UID()]; wrote {
			delete(g.senders, who.UID())
			for _, x := range g.by {
				delete(x.of, who.UID())
			}
		}
		if !g.holder.IsZero() && g.holder.UID() == who.UID() {
			g.holder, g.ended = host.Ref{}, true
			clear(g.senders)
			for _, x := range g.by {
				x.value, x.of = 0, nil
				clear(x.counts)
			}
		}
	}
}

// Families are the metrics as they are now, and how many messages were refused. The label
// actor is the path of the actor in the manifest.
func (s *Service) Families() []exposition.Family {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]exposition.Family, 0, len(s.names)+1)
	refused := exposition.Family{Name: RefusedName, Help: RefusedHelp, Kind: exposition.Counter}
	for _, path := range s.paths {
		refused.Series = append(refused.Series, exposition.Series{Labels: label(path), Value: float64(s.grants[path].refused)})
	}
	out = append(out, refused)
	for _, name := range s.names {
		f := exposition.Family{Name: Prefix + name}
		for _, path := range s.paths {
			x := s.grants[path].by[name]
			if x == nil {
				continue
			}
			f.Kind, f.Help = x.Kind, x.Help
			if one, ok := x.series(); ok && !s.grants[path].ended {
				one.Labels = label(path)
				f.Series = append(f.Series, one)
			}
		}
		if f.Help == "" {
			f.Help = "A metric of the bundle's own."
		}
		out = append(out, f)
	}
	return out
}

// The metric of refused messages.
const (
	RefusedName = "wasmactors_guest_metric_refusals_total"
	RefusedHelp = "Messages of guests to /system/metrics that were refused, by the actor that has the grant."
)

func label(path string) []exposition.Label { return []exposition.Label{{Name: "actor", Value: path}} }

// series is false for a gauge that is not set.
func (x *series) series() (exposition.Series, bool) {
	s := exposition.Series{Value: x.value}
	switch x.Kind {
	case exposition.Gauge:
		for _, v := range x.of { // the order makes a difference in the last digits alone
			s.Value += v
		}
		return s, len(x.of) > 0
	case exposition.Histogram:
		for i, b := range x.Buckets {
			s.Count += x.counts[i]
			s.Buckets = append(s.Buckets, exposition.Bucket{Bound: b, Count: s.Count})
		}
		s.Count += x.counts[len(x.Buckets)]
	}
	return s, true
}
