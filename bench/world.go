package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	fields "github.com/wasmactors/wasmactors/bench/internal/six"
)

// The scenarios for whoever runs actors that are Go code. An actor system is adapted
// by a world; what an actor does is a behaviour, the same for all.

// addr is an actor's address: what the system itself takes.
type addr any

// msg is a message: 32 bytes, made anew for every send, as a message that nobody else
// may change must be. big replaces it where payloads are larger; in-process systems
// pass its address.
type msg struct {
	op uint32
	n  uint32
	v  uint64
	_  [16]byte
}

type big struct {
	n    uint32
	body []byte
}

// six is the struct of six fields. Its methods are generated, as those of a message of ours are.
type six = fields.Six

func sample(n int) *six { return fields.Sample(n) }

// Operations.
const (
	opPing    = 'p' // back to the sender less one
	opStart   = 's' // begin to send n windows to the sender
	opFill    = 'f' // one of a window
	opLast    = 'l' // the last of a window, to be acknowledged
	opAck     = 'a'
	opNext    = 'n' // the sender is the next in the ring
	opRing    = 'r' // on to the next less one
	opAsk     = 'q' // answer
	opCrash   = 'x' // panic, or trap
	opFail    = 'e' // return an error
	opTree    = 't' // skynet: n leaves from v
	opSum     = 'u' // skynet: v
	opDrive   = 'd' // go on
	opHandled = 'h' // say that a message was handled
)

// window is how many messages an actor sends before it needs an acknowledgement; two
// windows are under way at a time.
const window = 64

// behaviour is what an actor does with a message.
type behaviour interface{ receive(c turn, m any) }

// turn is what a behaviour can do.
type turn interface {
	self() addr
	sender() addr // for this turn
	keep() addr   // the sender, for longer
	send(to addr, m any)
	respond(m any) // to an ask from outside
	spawn(b behaviour) addr
	stop() // itself
}

// world is an actor system.
type world interface {
	spawn(b behaviour) addr             // from outside
	tell(from, to addr, m any)          // from outside, in another's name
	ask(to addr, m any) error           // from outside
	crasher(make func() behaviour) addr // an actor that is restarted whenever it panics; its successor answers at the same address
	close() error
}

// generic does every scenario.
type generic struct {
	common
	count atomic.Int64 // of crashes
}

// common is what the behaviours share: where they report.
type common struct{ done chan struct{} }

func (c *common) wait() error {
	select {
	case <-c.done:
		return nil
	case <-time.After(patience):
		return errStuck
	}
}

// actor is a behaviour for ping-pong, fan-in, fan-out, ring and ask.
type genericActor struct {
	w                 *common
	left, outstanding int
	next              addr
	received          int64
}

func (a *genericActor) receive(c turn, x any) {
	switch m := x.(type) {
	case *msg:
		a.message(c, m)
	case *big:
		if m.n == 0 {
			a.w.done <- struct{}{}
			return
		}
		c.send(c.sender(), &big{m.n - 1, m.body})
	case *six:
		if m.ID == 0 {
			a.w.done <- struct{}{}
			return
		}
		c.send(c.sender(), &six{ID: m.ID - 1, Name: m.Name, Amount: m.Amount, Price: m.Price, Active: m.Active, Tags: m.Tags})
	}
}

func (a *genericActor) message(c turn, m *msg) {
	switch m.op {
	case opPing:
		if m.n == 0 {
			a.w.done <- struct{}{}
			return
		}
		c.send(c.sender(), &msg{op: opPing, n: m.n - 1})
	case opFill:
		a.received++
	case opLast:
		a.received++
		c.send(c.sender(), &msg{op: opAck})
	case opAck:
		if a.left > 0 {
			a.left--
			a.fill(c)
			return
		}
		if a.outstanding--; a.outstanding == 0 {
			a.w.done <- struct{}{}
		}
	case opStart:
		first := min(2, int(m.n))
		a.left += int(m.n) - first
		a.outstanding += first
		for range first {
			a.fill(c)
		}
	case opNext:
		a.next = c.keep()
	case opRing:
		if m.n == 0 {
			a.w.done <- struct{}{}
			return
		}
		c.send(a.next, &msg{op: opRing, n: m.n - 1})
	case opAsk:
		c.respond(&msg{op: opAsk, n: m.n})
	case opHandled:
		c.send(c.sender(), &msg{op: opDrive})
	}
}

func (a *genericActor) fill(c turn) {
	for range window - 1 {
		c.send(c.sender(), &msg{op: opFill})
	}
	c.send(c.sender(), &msg{op: opLast})
}

// leaf of skynet, or a branch.
type skynet struct {
	w        *common
	total    *uint64
	parent   addr
	expected int
	sum      uint64
}

func (s *skynet) receive(c turn, x any) {
	m, ok := x.(*msg)
	if !ok {
		return
	}
	switch m.op {
	case opTree:
		s.parent = c.keep()
		if m.n == 1 {
			s.finish(c, m.v)
			return
		}
		s.expected = 10
		for i := range uint64(10) {
			child := c.spawn(&skynet{w: s.w})
			c.send(child, &msg{op: opTree, n: m.n / 10, v: m.v + i*uint64(m.n/10)})
		}
	case opSum:
		s.sum += m.v
		if s.expected--; s.expected == 0 {
			s.finish(c, s.sum)
		}
	}
}

func (s *skynet) finish(c turn, sum uint64) {
	if s.total != nil {
		*s.total = sum
		s.w.done <- struct{}{}
	} else {
		c.send(s.parent, &msg{op: opSum, v: sum})
	}
	c.stop()
}

// driver makes one step after another, each when the one before has reported.
type driver struct {
	w    *common
	left int
	step func(c turn)
}

func (d *driver) receive(c turn, x any) {
	if m, ok := x.(*msg); !ok || m.op != opDrive {
		return
	}
	if d.left == 0 {
		d.w.done <- struct{}{}
		return
	}
	d.left--
	d.step(c)
}

// once handles one message, says so and ends if it is to.
type once struct{ keep bool }

func (o *once) receive(c turn, x any) {
	if m, ok := x.(*msg); ok && m.op == opHandled {
		c.send(c.sender(), &msg{op: opDrive})
		if !o.keep {
			c.stop()
		}
	}
}

// victim panics at a crashing message.
type victim struct{ count *atomic.Int64 }

func (v *victim) receive(c turn, x any) {
	m, ok := x.(*msg)
	if !ok {
		return
	}
	switch m.op {
	case opCrash:
		v.count.Add(1)
		panic("crash")
	case opHandled:
		c.send(c.sender(), &msg{op: opDrive})
	}
}

// openWorld makes each scenario of an actor system. A system may leave some out.
func openWorld(open func(e *env) (world, error), without ...string) map[string]func(*env) (*subject, error) {
	in := func(f func(e *env, w world, g *generic) (*subject, error)) func(*env) (*subject, error) {
		return func(e *env) (*subject, error) {
			w, err := open(e)
			if err != nil {
				return nil, err
			}
			s, err := f(e, w, &generic{common: common{done: make(chan struct{}, 1024)}})
			if s != nil && s.close == nil {
				s.close = w.close
			}
			return s, err
		}
	}
	m := map[string]func(*env) (*subject, error){
		"ping-pong":    in(worldPing),
		"struct":       in(worldPing),
		"payload-1k":   in(worldPing),
		"payload-64k":  in(worldPing),
		"payload-1m":   in(worldPing),
		"fan-in":       in(worldFanIn),
		"fan-out":      in(worldFanOut),
		"pairs-1":      in(worldPairs),
		"pairs-2":      in(worldPairs),
		"ring":         in(worldRing),
		"skynet":       in(worldSkynet),
		"ask":          in(worldAsk),
		"spawn-again":  in(worldSpawn),
		"spawn-living": in(worldSpawn),
		"memory-awake": in(worldMemory),
		"crash":        in(worldCrash),
		"crash-queue":  in(worldCrashQueue),
	}
	for _, name := range without {
		delete(m, name)
	}
	return m
}

func (g *generic) actor() *genericActor { return &genericActor{w: &g.common} }

func worldPing(e *env, w world, g *generic) (*subject, error) {
	a, b := w.spawn(g.actor()), w.spawn(g.actor())
	body := make([]byte, e.size())
	return &subject{op: func(n int) error {
		var m any = &msg{op: opPing, n: uint32(n)}
		switch {
		case e.b.name == "struct":
			m = sample(n)
		case e.b.size > 0:
			m = &big{uint32(n), body}
		}
		w.tell(b, a, m)
		return g.wait()
	}}, nil
}

// fans are the actors at the broad end.
const fans = 8

func worldFanIn(_ *env, w world, g *generic) (*subject, error) {
	sink := g.actor()
	to := w.spawn(sink)
	var from []addr
	for range fans {
		from = append(from, w.spawn(g.actor()))
	}
	return &subject{unit: fans * window, op: func(n int) error {
		before := atomic.LoadInt64(&sink.received)
		for _, f := range from {
			w.tell(to, f, &msg{op: opStart, n: uint32(n / window / fans)})
		}
		for range fans {
			if err := g.wait(); err != nil {
				return err
			}
		}
		return arrived(atomic.LoadInt64(&sink.received)-before, n)
	}}, nil
}

func arrived(got int64, want int) error {
	if got != int64(want) {
		return fmt.Errorf("%d messages have arrived of %d", got, want)
	}
	return nil
}

func worldFanOut(_ *env, w world, g *generic) (*subject, error) {
	source := w.spawn(g.actor())
	var sinks []*genericActor
	var to []addr
	for range fans {
		a := g.actor()
		sinks, to = append(sinks, a), append(to, w.spawn(a))
	}
	return &subject{unit: fans * window, op: func(n int) error {
		var before, after int64
		for _, s := range sinks {
			before += s.received
		}
		// A source that has done what it was told so far may report more than once.
		for _, t := range to {
			w.tell(t, source, &msg{op: opStart, n: uint32(n / window / fans)})
		}
		for after-before < int64(n) {
			if err := g.wait(); err != nil {
				return err
			}
			after = 0
			for _, s := range sinks {
				after += s.received
			}
		}
		return arrived(after-before, n)
	}}, nil
}

// pairs that talk at the same time.
const pairs = 64

func worldPairs(_ *env, w world, g *generic) (*subject, error) {
	var left, right []addr
	for range pairs {
		left, right = append(left, w.spawn(g.actor())), append(right, w.spawn(g.actor()))
	}
	return &subject{unit: pairs, op: func(n int) error {
		for i := range left {
			w.tell(left[i], right[i], &msg{op: opPing, n: uint32(n/pairs - 1)})
		}
		for range pairs {
			if err := g.wait(); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func worldRing(e *env, w world, g *generic) (*subject, error) {
	var ring []addr
	for range e.some(10_000, 100) {
		ring = append(ring, w.spawn(g.actor()))
	}
	for i, a := range ring {
		w.tell(ring[(i+1)%len(ring)], a, &msg{op: opNext})
	}
	s := &subject{op: func(n int) error {
		w.tell(nil, ring[0], &msg{op: opRing, n: uint32(n)})
		return g.wait()
	}}
	return s, s.op(len(ring)) // all have started when the token is round
}

// leaves of skynet; contestants whose actors take longer to make get fewer.
func (e *env) leaves(most int) int { return e.some(min(1_000_000, most), 1000) }

// nodes of a tree with so many leaves.
func nodes(leaves int) (n int) {
	for ; leaves > 0; leaves /= 10 {
		n += leaves
	}
	return n
}

func worldSkynet(e *env, w world, g *generic) (*subject, error) {
	leaves := e.leaves(fewer[e.who])
	return &subject{fixed: nodes(leaves), note: leavesNote(leaves), op: func(int) error {
		var total uint64
		root := w.spawn(&skynet{w: &g.common, total: &total})
		w.tell(nil, root, &msg{op: opTree, n: uint32(leaves)})
		if err := g.wait(); err != nil {
			return err
		}
		return checkSkynet(total, leaves)
	}}, nil
}

// fewer says who builds a smaller skynet, so that it ends in seconds.
var fewer = map[string]int{
	"goroutines": 1_000_000, "erlang": 1_000_000, "proto": 1_000_000, "native": 1_000_000,
	"hollywood": 100_000, "ergo": 100_000, "goakt": 10_000, "go": 10_000, "tinygo": 100_000,
}

func leavesNote(leaves int) string {
	if leaves == 1_000_000 {
		return ""
	}
	return fmt.Sprintf("%d leaves", leaves)
}

func checkSkynet(total uint64, leaves int) error {
	if want := uint64(leaves) * uint64(leaves-1) / 2; total != want {
		return fmt.Errorf("skynet has come to %d, not %d", total, want)
	}
	return nil
}

func worldAsk(_ *env, w world, g *generic) (*subject, error) {
	a := w.spawn(g.actor())
	if many, ok := w.(interface {
		askMany(n int, to addr, m any) error
	}); ok {
		return &subject{note: "asked by a process of its own", op: func(n int) error { return many.askMany(n, a, &msg{op: opAsk}) }}, nil
	}
	return &subject{op: func(n int) error {
		for range n {
			if err := w.ask(a, &msg{op: opAsk}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func worldSpawn(e *env, w world, g *generic) (*subject, error) {
	keep := e.b.name == "spawn-living"
	d := &driver{w: &g.common, step: func(c turn) { c.send(c.spawn(&once{keep}), &msg{op: opHandled}) }}
	to := w.spawn(d)
	s := &subject{op: func(n int) error {
		d.left = n
		w.tell(nil, to, &msg{op: opDrive})
		return g.wait()
	}}
	if keep {
		if err := s.op(100); err != nil { // to warm up
			return nil, err
		}
		s.fixed = e.some(10_000, 100)
	}
	return s, nil
}

func worldMemory(e *env, w world, g *generic) (*subject, error) {
	many := e.some(10_000, 500)
	spawn, err := worldSpawn(&env{b: benchmarkOf("spawn-living"), quick: e.quick}, w, g)
	if err != nil {
		return nil, err
	}
	return &subject{value: func() (float64, error) { return residentEach(many, spawn.op) }}, nil
}

// residentEach is what each of n actors adds to the resident set.
func residentEach(n int, make func(n int) error) (float64, error) {
	before, err := resident()
	if err != nil {
		return 0, err
	}
	if err := make(n); err != nil {
		return 0, err
	}
	after, err := resident()
	if err == nil && after <= before {
		err = fmt.Errorf("%d actors take %.0f bytes less than none: something else has given memory back meanwhile", n, before-after)
	}
	return (after - before) / float64(n), err
}

func worldCrash(_ *env, w world, g *generic) (*subject, error) {
	if l, ok := w.(interface{ losesMail() }); ok {
		return lateCrash(w, l, g)
	}
	v := w.crasher(func() behaviour { return &victim{&g.count} })
	if v == nil {
		return nil, errors.ErrUnsupported
	}
	d := &driver{w: &g.common, step: func(c turn) {
		c.send(v, &msg{op: opCrash})
		c.send(v, &msg{op: opHandled})
	}}
	to := w.spawn(d)
	return &subject{op: func(n int) error {
		d.left = n
		before := g.count.Load()
		w.tell(nil, to, &msg{op: opDrive})
		if err := g.wait(); err != nil {
			return err
		}
		return arrived(g.count.Load()-before, n)
	}}, nil
}

// lateCrash is for systems that lose what arrives before the restart is over: the
// next message is sent when the successor has been made, and again if it was too early.
func lateCrash(w world, _ interface{ losesMail() }, g *generic) (*subject, error) {
	made := make(chan struct{}, 1024)
	v := w.crasher(func() behaviour {
		select {
		case made <- struct{}{}:
		default:
		}
		return &reporting{victim{&g.count}, g}
	})
	if v == nil {
		return nil, errors.ErrUnsupported
	}
	<-made
	return &subject{note: "the next message is sent when the successor is there: earlier ones are lost", op: func(n int) error {
		before := g.count.Load()
		for i := range n {
			w.tell(nil, v, &msg{op: opCrash})
			select {
			case <-made:
			case <-time.After(patience):
				return fmt.Errorf("no successor after %d crashes", i+1)
			}
			for sent := false; !sent; {
				w.tell(nil, v, &msg{op: opHandled, n: uint32(i)})
				select {
				case <-g.done:
					sent = true
				case <-time.After(time.Millisecond):
				}
			}
			for len(g.done) > 0 {
				<-g.done
			}
		}
		return arrived(g.count.Load()-before, n)
	}}, nil
}

// reporting is a victim that reports to who has started it all.
type reporting struct {
	victim
	g *generic
}

func (r *reporting) receive(c turn, x any) {
	if m, ok := x.(*msg); ok && m.op == opHandled {
		r.g.done <- struct{}{}
		return
	}
	r.victim.receive(c, x)
}

// crashes that are queued.
const crashes = 4000

func worldCrashQueue(_ *env, w world, g *generic) (*subject, error) {
	v := w.crasher(func() behaviour { return &victim{&g.count} })
	if v == nil {
		return nil, errors.ErrUnsupported
	}
	d := &driver{w: &g.common}
	d.step = func(c turn) {
		for range crashes {
			c.send(v, &msg{op: opCrash})
		}
		c.send(v, &msg{op: opHandled})
	}
	to := w.spawn(d)
	return &subject{fixed: crashes, op: func(n int) error {
		d.left = 1
		before := g.count.Load()
		w.tell(nil, to, &msg{op: opDrive})
		if err := g.wait(); err != nil {
			return fmt.Errorf("%d of %d crashes handled: %w", g.count.Load()-before, n, err)
		}
		return arrived(g.count.Load()-before, n)
	}}, nil
}
