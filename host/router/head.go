package router

import (
	"slices"
	"strconv"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// head is the behaviour of a router.
type head struct {
	Config
	managed, admits []glob.Path

	logic    Logic
	asks     *questions // nil: the router does not ask on its own
	queue    *queue     // nil: it does not balance
	routees  []Routee
	missing  []string                   // paths of routees that do not exist now
	boxes    map[abi.Ref]*workerMailbox // of a balancing pool, by routee
	leaving  map[abi.Ref]bool           // children that were removed and have not ended yet
	size     int                        // of a pool; a restart restores it
	next     int                        // name of the next child
	numbers  uint64                     // of routees
	messages int                        // routed, for the resizer
	due      bool                       // the resizer is to be asked
	over     *overNodes                 // nil: all routees are on this node
	picked   []int
	msg      host.Message // the logic gets a pointer to it, so that nothing is allocated
}

// Start implements host.Behaviour. The logic starts over.
func (h *head) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	h.logic = h.make(ctx.Head().Draw())
	h.asks = nil
	if a, ok := h.logic.(asking); ok {
		h.asks = newQuestions(h, a.plan(), ctx.Head().Draw())
	}
	if b, ok := h.logic.(*balancing); ok {
		h.queue, _ = ctx.Head().Mailbox().(*queue)
		h.queue.begin(ctx.System(), ctx.Self())
		b.head, h.boxes = h, map[abi.Ref]*workerMailbox{}
	}
	h.routees, h.missing, h.leaving, h.messages, h.due = nil, nil, map[abi.Ref]bool{}, 0, false
	h.beginOverNodes(ctx)
	for size := h.adopt(ctx); size < h.size && h.nodes == nil; size++ {
		if err := h.spawn(ctx); err != nil {
			return failed(err)
		}
	}
	h.missing = slices.Clone(h.paths)
	h.renew(ctx)
	h.refresh(ctx)
	h.changed()
	return nil
}

// adopt takes over children that have survived a restart, and returns how many there are.
func (h *head) adopt(ctx *host.Context) int {
	children := ctx.Children()
	if len(children) == 0 {
		h.next = 0
	}
	for _, ref := range children {
		if h.queue != nil { // their mailboxes belong to the previous queue
			ctx.Stop(ref)
			continue
		}
		if ctx.Watch(ref) == nil && len(h.routees) < h.size {
			h.join(Routee{Ref: ref, Name: ref.Name(), sys: ctx.System()})
			if h.nodes != nil {
				h.over.on[ref.UID()] = nodeOf(ref.Name())
			}
		}
	}
	return len(h.routees)
}

// spawn makes a routee.
func (h *head) spawn(ctx *host.Context) error {
	worker := h.worker
	var box *workerMailbox
	if h.queue != nil {
		box = &workerMailbox{queue: h.queue}
		worker = worker.WithMailbox(func(l host.MailboxLimits) host.Mailbox { box.limits = l; return box })
	}
	for {
		ref, err := ctx.Spawn(strconv.Itoa(h.next), worker)
		h.next++
		if err == host.ErrNameTaken {
			continue
		}
		if err != nil {
			return err
		}
		if box != nil {
			h.boxes[ref.UID()] = box
			h.queue.join(box, ref)
		}
		h.join(Routee{Ref: ref, Name: ref.Name(), sys: ctx.System()})
		return ctx.Watch(ref)
	}
}

// changed tells the logic and the queue that the routees have changed.
func (h *head) changed() {
	if len(h.routees) > 0 {
		changed(h.logic, h.routees)
	}
	if h.pool && h.nodes == nil {
		h.size = 0
		for i := range h.routees {
			if h.routees[i].own() {
				h.size++
			}
		}
	}
	if h.queue != nil {
		h.queue.setHasRoutees(len(h.routees) > 0)
	}
}

// Handle implements host.Behaviour.
func (h *head) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		var ok bool
		h.msg, ok = ctx.Head().Next()
		if h.due { // after the turn of a message, which was routed without the resizer's change
			h.due = false
			_ = h.resize(ctx, h.resizer.change(h.routees)) // if there is no room for more, perhaps there is later
		}
		if !ok {
			return nil
		}
		switch h.msg.Kind {
		case abi.KindMessage:
			h.receive(ctx)
		case abi.KindTerminated:
			h.ended(ctx, h.msg.Sender)
		case abi.KindTimer:
			if h.msg.Correlation == refillTimer {
				h.retry(ctx)
			} else if h.asks != nil {
				h.asks.tick(ctx, h.msg.Correlation)
			}
		case abi.KindReply, abi.KindReplyError, abi.KindAskTimeout:
			if h.asks != nil {
				h.asks.answer(ctx, h.msg)
			}
		}
	}
}

func (h *head) receive(ctx *host.Context) {
	m := &h.msg
	if len(m.Headers) > 0 {
		if op, ok := abi.FindHeader(m.Headers, Header); ok {
			h.manage(ctx, *m, string(op))
			return
		}
	}
	if r := h.resizer; r != nil {
		h.due = h.messages%r.Every == 0 || len(h.routees) == 0
		h.messages++
	}
	h.renew(ctx)
	if len(h.missing) > 0 {
		h.refresh(ctx)
	}
	if h.asks != nil && m.Correlation != 0 && !m.Sender.IsZero() {
		if err := h.asks.ask(ctx, &h.msg); err != nil {
			ctx.Head().Refuse(err)
		}
		return
	}
	if err := h.route(ctx); err != nil {
		ctx.Head().Refuse(err)
	}
}

// route sends the message on to the routees that the logic picks. If one of them has stopped by then, the logic is asked
// again.
func (h *head) route(ctx *host.Context) (err error) {
	for {
		if len(h.routees) == 0 {
			return ErrNoRoutee
		}
		if h.picked, err = h.logic.Pick(h.picked[:0], &h.msg, h.routees); err != nil {
			return err
		}
		if len(h.picked) == 0 {
			return ErrNoRoutee
		}
		gone := false
		for _, i := range h.picked {
			if _, alive := h.routees[i].Load(); !alive {
				h.forget(i)
				gone = true
				break // the numbers have changed
			}
		}
		if gone {
			h.refresh(ctx)
			continue
		}
		for _, i := range h.picked {
			if err := ctx.Head().PassTo(h.routees[i].address()); err != nil {
				return err
			}
		}
		return nil
	}
}

// complain answers a refused command with an error. A refused command that is not a question is unhandled.
func (h *head) complain(ctx *host.Context, err error) {
	if h.msg.Correlation == 0 || h.msg.Sender.IsZero() {
		ctx.Head().Unhandled()
		return
	}
	_ = ctx.ReplyError(err.Error())
}

// join adds a routee.
func (h *head) join(r Routee) {
	h.numbers++
	r.number = h.numbers
	h.routees = append(h.routees, r)
}

// present forgets the routees that have ended, all at once, and looks for those that have come back.
func (h *head) present(ctx *host.Context) {
	if h.drop() {
		h.refresh(ctx)
	}
}

// drop forgets the routees that have ended; false if there are none.
func (h *head) drop() bool {
	before := len(h.routees)
	h.routees = slices.DeleteFunc(h.routees, func(r Routee) bool {
		if _, alive := r.Load(); alive {
			return false
		}
		h.left(&r)
		return true
	})
	if len(h.routees) == before {
		return false
	}
	h.changed()
	return true
}

// refresh looks for the routees that are missing. One that has ended may still be at its path, under a keeper until
// the keeper has heard of the end: it counts as missing, or it would be found and forgotten again and again.
func (h *head) refresh(ctx *host.Context) {
	if len(h.missing) == 0 {
		return
	}
	missing := h.missing[:0]
	before := len(h.routees)
	for _, p := range h.missing {
		at, err := ctx.System().AddressOf(h.target(p))
		if err != nil || !at.Kept() && at.To == ctx.Self() {
			missing = append(missing, p)
			continue
		}
		r := Routee{Name: p, sys: ctx.System()}
		if at.Kept() {
			r.kept = &kept{at: at, far: at.To.UID().Node() != ctx.Self().UID().Node()}
		} else {
			r.Ref = at.To
		}
		if _, alive := r.Load(); !alive {
			missing = append(missing, p)
			continue
		}
		h.join(r)
	}
	h.missing = missing
	if len(h.routees) != before { // in the order of the paths, after the pool's own
		slices.SortStableFunc(h.routees, func(a, b Routee) int {
			return h.place(a.Name) - h.place(b.Name)
		})
		h.changed()
	}
}

// missed forgets a routee that has ended.
func (h *head) missed(ref host.Ref) {
	if i := slices.IndexFunc(h.routees, func(r Routee) bool { return r.kept == nil && r.Ref.UID() == ref.UID() }); i >= 0 {
		h.forget(i)
	}
}

// forget removes a routee; one that was named by a path may come back.
func (h *head) forget(i int) {
	h.left(&h.routees[i])
	h.routees = slices.Delete(h.routees, i, i+1)
	h.changed()
}

// left notes that an actor is no longer a routee.
func (h *head) left(r *Routee) {
	if !r.own() {
		h.missing = append(h.missing, r.Name) // renewElsewhere drops those that do not come back
	}
	delete(h.boxes, r.Ref.UID())
}

// ended handles the end of a child.
func (h *head) ended(ctx *host.Context, ref host.Ref) {
	leaves := h.leaving[ref.UID()]
	delete(h.leaving, ref.UID())
	h.missed(ref)
	if h.nodes != nil {
		h.endedOn(ctx, ref, leaves)
		return
	}
	if h.resizer != nil {
		h.due = h.size < h.resizer.Lower
	} else if h.pool && len(h.routees) == 0 && len(h.missing) == 0 {
		ctx.Stop(ctx.Self())
	}
}

// resize changes the number of a pool's routees. Those that were started last are removed first, when
// they have handled what waits for them.
func (h *head) resize(ctx *host.Context, by int) (err error) {
	by = min(by, MaxRoutees-len(h.routees)-len(h.missing))
	if h.nodes != nil {
		h.size = max(0, h.size+by)
		if by >= 0 {
			h.fill(ctx)
			return nil
		}
	}
	for ; by > 0 && err == nil; by-- {
		err = h.spawn(ctx)
	}
	for i := len(h.routees) - 1; i >= 0 && by < 0; i-- {
		if r := h.routees[i]; r.own() {
			h.leave(ctx, r.Ref)
			by++
		}
	}
	h.changed()
	return err
}

// leave removes a child and makes it stop when it has handled what waits for it.
func (h *head) leave(ctx *host.Context, ref host.Ref) {
	h.missed(ref)
	h.leaving[ref.UID()] = true
	_ = ctx.System().PoisonPill(ref)
}

// Decide implements host.Behaviour: the strategy decides about routees.
func (h *head) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour: a turn that fails has sent nothing.
func (h *head) CannotRewind() string { return "" }

// Rewind implements host.Behaviour.
func (h *head) Rewind(*host.Context) bool { return true }

// End implements host.Behaviour: askers that wait for an answer of the router itself get an error.
func (h *head) End(_ *host.Context, end host.End) {
	if h.over != nil {
		h.over.stop()
	}
	if h.asks != nil {
		h.asks.end(end)
	}
}
