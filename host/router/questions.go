package router

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Defaults of logics that ask, as Akka's.
const (
	DefaultWithin   = 5 * time.Second
	DefaultInterval = 10 * time.Millisecond
)

// ScatterGather asks all routees and answers with the first answer that is not an error; later answers are dropped. If all
// fail, the asker gets an error at once. If none answers within the time within (0 means DefaultWithin), or the asker's own
// time if that is shorter, the asker gets an error then. The routees see the router as the sender, and that time as the
// question's. A message that is not a question goes to all.
func ScatterGather(within time.Duration) Make {
	p := plan{within: within}.withDefaults()
	return func(uint64) Logic { return &gather{p} }
}

// TailChopping asks one routee at random, then another after each interval (0 means DefaultInterval), or at once when one
// has failed, and answers with the first answer that is not an error. When all have failed, or after within (0 means
// DefaultWithin), it answers with an error. Otherwise it is as [ScatterGather]. A message that is not a question goes to
// one.
func TailChopping(within, interval time.Duration) Make {
	p := plan{within: within, interval: interval, chop: true}.withDefaults()
	return func(seed uint64) Logic { return &chop{random{seed}, p} }
}

// plan is how a question is asked.
type plan struct {
	within, interval time.Duration
	chop             bool
}

func (p plan) withDefaults() plan {
	if p.within <= 0 {
		p.within = DefaultWithin
	}
	if p.interval <= 0 {
		p.interval = DefaultInterval
	}
	return p
}

// asking is a logic that makes the router itself ask the routees.
type asking interface{ plan() plan }

type gather struct{ p plan }

func (g *gather) plan() plan { return g.p }

func (g *gather) Pick(picked []int, m *host.Message, routees []Routee) ([]int, error) {
	return everyone{}.Pick(picked, m, routees)
}

type chop struct {
	random
	p plan
}

func (c *chop) plan() plan { return c.p }

// questions are the questions that a router itself asks and answers.
type questions struct {
	head *head
	plan
	rnd    uint64
	last   uint64               // number of the last question, and of the last ask
	live   map[uint64]*question // by number, which is the key of its timer
	asks   map[uint64]*question // by correlation, until each is answered or over
	begun  map[abi.Ref]int      // live ones by asker
	asked  map[abi.Ref]int      // asks, by asker
	stored map[abi.Ref]int64    // bytes of questions that may be sent again, by asker
	bytes  int64
}

// question waits for the first answer.
type question struct {
	number  uint64
	from    abi.Ref
	reply   *host.Reply
	open    int // asks that wait
	first   string
	failed  int
	sent    int
	again   any // what to send to further routees; nil: it has been sent to all
	weight  int64
	seed    uint64 // of the order in which routees are asked
	passed  uint64 // rank of the one that was asked last
	within  time.Duration
	due     time.Time
	decided bool
}

func newQuestions(h *head, p plan, seed uint64) *questions {
	return &questions{
		head: h, plan: p, rnd: seed, live: map[uint64]*question{}, asks: map[uint64]*question{},
		begun: map[abi.Ref]int{}, asked: map[abi.Ref]int{}, stored: map[abi.Ref]int64{},
	}
}

// asksFor is the factor between the bound of questions and that of asks.
const asksFor = 10

// admit reports whether one more question of a sender, with the given asks and bytes, is within the limits.
func (s *questions) admit(from abi.Ref, asks int, bytes int64) bool {
	c := &s.head.Config
	most := asksFor * c.questions
	return len(s.live) < c.questions && s.begun[from] < max(c.questions/4, 1) && len(s.asks)+asks <= most && s.asked[from]+asks <= max(most/4, asks) &&
		s.bytes+bytes <= c.bytes && (bytes == 0 || s.stored[from]+bytes <= c.bytes/4)
}

// ask begins a question: the current message.
func (s *questions) ask(ctx *host.Context, m *host.Message) error {
	h := s.head
	h.present(ctx)
	n := len(h.routees)
	if n == 0 {
		return ErrNoRoutee
	}
	asks, weight := n, int64(0)
	if s.chop {
		asks, weight = 1, int64(len(m.Payload)+len(m.Headers))
	}
	from := m.Sender.UID()
	if !s.admit(from, asks, weight) {
		return ErrBusy
	}
	if err := ctx.Head().Hold(s.bytes + weight); err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	reply, err := ctx.Later()
	if err != nil {
		_ = ctx.Head().Hold(s.bytes)
		return ErrBusy
	}
	s.last++
	within := ctx.Head().Within(s.within) // nobody waits for longer
	q := &question{number: s.last, from: from, reply: reply, within: within, due: ctx.Now().Add(within), weight: weight}
	s.live[q.number] = q
	s.begun[from]++
	if !s.chop {
		v := ctx.Head().Content(m)
		for i := range h.routees {
			s.send(ctx, q, h.routees[i].address(), v)
		}
		s.answerFailed(ctx, q)
		return nil
	}
	q.again = ctx.Head().Content(&host.Message{Headers: slices.Clone(m.Headers), Payload: slices.Clone(m.Payload)})
	s.bytes += weight
	s.stored[from] += weight
	s.rnd += 0x9e3779b97f4a7c15
	q.seed = mix(s.rnd)
	s.next(ctx, q)
	return nil
}

// rank is a routee's place in the order of a question, which is pseudorandom for each question: no two routees have the
// same. It does not depend on the other routees, so when routees are added or removed during a question, none is asked
// twice, and none that stays is left out.
func (q *question) rank(r *Routee) uint64 { return mix(q.seed ^ r.number) }

// following is the index of the routee that is asked next, -1 for none.
func (q *question) following(routees []Routee) int {
	best, least := -1, uint64(0)
	for i := range routees {
		if rank := q.rank(&routees[i]); (q.sent == 0 || rank > q.passed) && (best < 0 || rank < least) {
			best, least = i, rank
		}
	}
	return best
}

// send asks one routee.
func (s *questions) send(ctx *host.Context, q *question, to host.Address, v any) {
	s.last++
	q.sent++
	if err := ctx.Ask(to.To, to.Message(v), s.last, max(q.due.Sub(ctx.Now()), 0)); err != nil {
		q.note(err.Error())
		return
	}
	s.asks[s.last] = q
	s.asked[q.from]++
	q.open++
}

func (q *question) note(reason string) {
	if q.failed++; q.failed == 1 {
		q.first = reason
	}
}

// next asks the next routee, of a question that asks one after the other.
func (s *questions) next(ctx *host.Context, q *question) {
	h := s.head
	select {
	case <-q.reply.Gone(): // nobody waits any more
		s.over(ctx, q)
		return
	default:
	}
	for looked := false; q.again != nil; {
		i := q.following(h.routees)
		if i < 0 {
			s.forget(ctx, q)
			break
		}
		if _, alive := h.routees[i].Load(); !alive {
			if h.drop(); !looked { // only once, or routees that come and go quickly would keep the router here
				looked = true
				h.refresh(ctx)
			}
			continue
		}
		if len(s.asks) >= asksFor*h.questions || s.asked[q.from] > asksFor*h.questions/4 {
			q.note(ErrBusy.Error())
			s.forget(ctx, q)
			break
		}
		to := h.routees[i].address()
		rank, open := q.rank(&h.routees[i]), q.open
		s.send(ctx, q, to, q.again)
		if q.passed = rank; q.open > open {
			_ = ctx.After(q.number, s.interval, 0, nil)
			break
		}
	}
	s.answerFailed(ctx, q)
}

// tick is the time to ask another routee.
func (s *questions) tick(ctx *host.Context, number uint64) {
	if q := s.live[number]; q != nil {
		s.next(ctx, q)
	}
}

// answer handles the outcome of an ask.
func (s *questions) answer(ctx *host.Context, m host.Message) {
	q := s.asks[m.Correlation]
	if q == nil {
		return
	}
	delete(s.asks, m.Correlation)
	if s.asked[q.from]--; s.asked[q.from] == 0 {
		delete(s.asked, q.from)
	}
	if q.open--; q.decided {
		return
	}
	switch m.Kind {
	case abi.KindReply:
		_ = q.reply.Send(host.Raw(m.Payload)) // an error says that nobody waits any more
		s.over(ctx, q)
	case abi.KindReplyError:
		q.note(reasonIn(m))
		if q.again != nil {
			ctx.Cancel(q.number)
			s.next(ctx, q)
			return
		}
		s.answerFailed(ctx, q)
	default:
		if !ctx.Now().Before(q.due) {
			s.forget(ctx, q) // its time is over
		}
		s.answerFailed(ctx, q)
	}
}

func reasonIn(m host.Message) string {
	var reason string
	if err := m.Decode(&reason); err != nil {
		return "(not a text)"
	}
	return reason
}

// answerFailed answers a question for which no routee is left.
func (s *questions) answerFailed(ctx *host.Context, q *question) {
	if q.decided || q.open > 0 || q.again != nil {
		return
	}
	_ = q.reply.Fail(s.why(q))
	s.over(ctx, q)
}

// why says why there is no answer.
func (s *questions) why(q *question) string {
	first := q.first[:min(len(q.first), 500)]
	switch {
	case q.sent == 0: // they have ended meanwhile
		return ErrNoRoutee.Error()
	case q.failed == 0:
		return fmt.Sprintf("router: none of %d routees has answered within %v", q.sent, q.within)
	case q.failed < q.sent:
		return fmt.Sprintf("router: none of %d routees has answered within %v; %d have failed, the first with: %s", q.sent, q.within, q.failed, first)
	}
	return fmt.Sprintf("router: all of %d routees have failed, the first with: %s", q.sent, first)
}

// forget drops the copy that would be sent again.
func (s *questions) forget(ctx *host.Context, q *question) {
	if q.again == nil {
		return
	}
	q.again = nil
	s.bytes -= q.weight
	_ = ctx.Head().Hold(s.bytes) // a decrease is never refused
	if s.stored[q.from] -= q.weight; s.stored[q.from] <= 0 {
		delete(s.stored, q.from)
	}
}

// over ends a question. Its open asks end by themselves.
func (s *questions) over(ctx *host.Context, q *question) {
	q.decided = true
	s.forget(ctx, q)
	if s.chop {
		ctx.Cancel(q.number)
	}
	delete(s.live, q.number)
	if s.begun[q.from]--; s.begun[q.from] == 0 {
		delete(s.begun, q.from)
	}
}

// end answers all that wait: the router ends, or starts over.
func (s *questions) end(end host.End) {
	why := "router: the router has stopped"
	if !end.Last {
		why = "router: the router was restarted"
	}
	for _, number := range slices.Sorted(maps.Keys(s.live)) {
		_ = s.live[number].reply.Fail(why)
	}
	s.live, s.asks = nil, nil
}
