package events

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/eventbus"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
	"golang.org/x/time/rate"
)

// Bounds of the work that events make. A step is to look at a subscription, and 1 KiB of comparing.
const (
	backlog        = 1024    // events that may wait for the service
	stepsOfAll     = 500_000 // a second
	stepsOfGrant   = 50_000  // a second, of a grant
	longestPath    = 1024    // of an actor that is told of, in bytes
	budgetsToSweep = 1000
	marks          = host.Suppressed
	pathOfService  = "/system/events"
)

// provider hands the events of the system to the subscribers. It listens to the system as long as
// there are any.
type provider struct {
	env  *service.Env
	most int // subscriptions
	bus  *eventbus.Lookup[*happening, int, *subscription]
	all  *rate.Limiter

	interest atomic.Uint64 // classSet of what somebody has subscribed to

	mu      sync.Mutex
	of      map[subscriptionKey]*subscription
	counts  []int // subscriptions, by class
	budgets map[uint64]*budget
	source  *host.Subscription
	skipped uint64        // events that were not looked at, of sources before
	unseen  atomic.Uint64 // events of source that were not looked at
}

// subscriptionKey is what there can be one subscription of.
type subscriptionKey struct {
	subscriber abi.Ref
	channel    string
}

// budget is what the subscriptions of a grant may cost.
type budget struct {
	subscriptions int
	steps         *rate.Limiter
	events        *rate.Limiter
}

func newProvider(env *service.Env, most int) *provider {
	p := &provider{
		env: env, most: most, all: rate.NewLimiter(stepsOfAll, stepsOfAll),
		of: map[subscriptionKey]*subscription{}, counts: make([]int, len(classes)), budgets: map[uint64]*budget{},
	}
	p.bus = eventbus.NewLookup(func(h *happening) int { return h.class }, p.deliver, most*len(classes))
	return p
}

// Close implements [service.Provider]: the system has ended, so its events have.
func (p *provider) Close(context.Context) error { return nil }

// add enters a subscription in the place of the one that the subscriber had to the channel.
func (p *provider) add(s *subscription, grant uint64, g *Grant) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.budgetOf(grant, g)
	old := p.of[s.key]
	switch most := or(g.Subscriptions, DefaultSubscriptions); {
	case old != nil && old.budget == b: // it takes its place
	case b.subscriptions >= most:
		return service.Errorf(service.Quota, "there are %d subscriptions, which is the limit; subscriptions of the grant raises it", most)
	case old == nil && len(p.of) >= p.most:
		return service.Errorf(service.Busy, "there are %d subscriptions of all actors, which is the limit", p.most)
	}
	if old != nil {
		p.drop(old)
		defer old.feed.Stop("")
	}
	s.budget, s.since = b, p.env.Clock.Now()
	b.subscriptions++
	p.of[s.key] = s
	for c := range classes {
		if s.classes&(1<<c) != 0 {
			_, _ = p.bus.Subscribe(s, c)
			p.counts[c]++
		}
	}
	p.listen()
	s.told = p.lost()
	return nil
}

func (p *provider) find(key subscriptionKey) *subscription {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[key]
}

// remove takes a subscription out, if it is there.
func (p *provider) remove(s *subscription) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[s.key] == s {
		p.drop(s)
		p.listen()
	}
}

// drop needs the lock.
func (p *provider) drop(s *subscription) {
	delete(p.of, s.key)
	s.budget.subscriptions--
	p.bus.UnsubscribeAll(s)
	for c := range classes {
		if s.classes&(1<<c) != 0 {
			p.counts[c]--
		}
	}
}

// budgetOf is the budget of a grant. An unused budget is kept until it is full again, so that unsubscribing and subscribing
// again gains nothing.
func (p *provider) budgetOf(grant uint64, g *Grant) *budget {
	if b := p.budgets[grant]; b != nil {
		return b
	}
	if now := p.env.Clock.Now(); len(p.budgets) >= budgetsToSweep {
		for id, b := range p.budgets {
			if b.subscriptions == 0 && b.steps.TokensAt(now) >= stepsOfGrant && b.events.TokensAt(now) >= float64(b.events.Burst()) {
				delete(p.budgets, id)
			}
		}
	}
	events := or(g.Events, DefaultEvents)
	b := &budget{steps: rate.NewLimiter(stepsOfGrant, stepsOfGrant), events: rate.NewLimiter(rate.Limit(events), events)}
	p.budgets[grant] = b
	return b
}

// listen starts or stops listening to the system, depending on whether there are subscribers. It needs the lock.
func (p *provider) listen() {
	var interest classSet
	for c, n := range p.counts {
		if n > 0 {
			interest |= 1 << c
		}
	}
	p.interest.Store(uint64(interest))
	switch {
	case interest != 0 && p.source == nil:
		p.source = p.env.System.Listen(backlog, p.wanted, p.happens)
	case interest == 0 && p.source != nil:
		p.skipped += p.source.Dropped()
		p.source.Close()
		p.source = nil
	}
}

// lost is how many events were not checked so far. It needs the lock.
func (p *provider) lost() uint64 {
	n := p.skipped + p.unseen.Load()
	if p.source != nil {
		n += p.source.Dropped()
	}
	return n
}

// wanted is the filter of the events: it runs where they happen, and must be quick.
func (p *provider) wanted(e *host.Event) bool {
	c, ok := classOf(e)
	return ok && p.interest.Load()&(1<<c) != 0 && !p.ours(e)
}

// ours reports whether an event is about the delivery of an event, which is not reported: it would cause another one.
func (p *provider) ours(e *host.Event) bool {
	if p.within(e.Ref.Path()) {
		return true
	}
	return e.Dead != nil && (p.within(e.Dead.From) || p.within(e.Dead.Path))
}

// within reports whether a path is that of the service, or below it.
func (p *provider) within(path string) bool {
	path = pathOf(path, p.env.System.Name())
	rest, ok := strings.CutPrefix(path, pathOfService)
	return ok && (rest == "" || rest[0] == '/')
}

// happens tells all subscribers of an event.
func (p *provider) happens(e *host.Event) {
	c, ok := classOf(e)
	if !ok {
		return
	}
	if !p.all.AllowN(p.env.Clock.Now(), 1+p.count(c)) {
		p.unseen.Add(1)
		return
	}
	if h := newHappening(e, c, p.env.System.Name()); h != nil {
		p.bus.Publish(h)
	}
}

func (p *provider) count(class int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[class]
}

// deliver offers an event to a subscription, if it is for it, and its grant has not used up what it may cost.
func (p *provider) deliver(h *happening, s *subscription) {
	if h.at.Before(s.since) || s.isAbout(h) {
		return
	}
	p.mu.Lock()
	lost := p.lost() - s.told
	s.told += lost
	p.mu.Unlock()
	if lost > 0 {
		s.feed.Missed(lost)
	}
	now := p.env.Clock.Now()
	if !s.budget.steps.AllowN(now, 1+s.weight*h.length>>10) {
		s.feed.Missed(1)
		return
	}
	view, ok := s.sees(h)
	switch {
	case !ok:
	case !s.budget.events.AllowN(now, 1):
		s.feed.Missed(1)
	default:
		s.feed.Offer(classes[h.class].topic, h.encode(view))
	}
}

// subscription is what an actor gets of a channel.
type subscription struct {
	key     subscriptionKey
	classes classSet
	reasons bool
	asked   compiled // no patterns: all that is granted
	granted map[group]*compiled
	weight  int
	feed    *feed.Feed
	budget  *budget
	since   time.Time
	told    uint64 // of the events that nobody has looked at
}

// wants compiles the patterns that the subscriber asks for, and those that its grant allows.
func (s *subscription) wants(paths []string, g *Grant) {
	s.asked, s.granted = compile(paths), map[group]*compiled{}
	most := 0
	for _, k := range groups {
		c := compile(g.of(k))
		s.granted[k] = &c
		most = max(most, c.weight)
	}
	s.weight = s.asked.weight + most
}

// isAbout reports whether an event is about the subscriber itself, or a message of its own: what it does about
// an event could cause the next one.
func (s *subscription) isAbout(h *happening) bool {
	me := s.key.subscriber
	return h.event.Ref.UID() == me || h.event.Dead != nil && (h.event.Dead.Sender == me || h.event.Dead.Recipient == me)
}

// sees says what of an event the subscriber may see; false if it is nothing, or not what it has asked for.
func (s *subscription) sees(h *happening) (view, bool) {
	granted := s.granted[classes[h.class].group]
	v := view{
		path:    h.path != "" && granted.match(h.elements),
		from:    h.from != "" && granted.match(h.fromElements),
		reasons: s.reasons,
	}
	if len(s.asked.paths) == 0 {
		return v, v.path || v.from
	}
	return v, v.path && s.asked.match(h.elements) || v.from && s.asked.match(h.fromElements)
}
