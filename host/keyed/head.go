package keyed

import (
	"errors"
	"hash/maphash"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// head is the behaviour of a keeper.
type head struct {
	Config
	managed []glob.Path
	past    past
	book

	msg    host.Message // the key's function is given a pointer to it
	read   abi.Reader
	digits []byte
	alarm  time.Time // what the timer is set to; zero: it is not
	seed   maphash.Seed

	moving func(name string) bool // keys that are not started again; nil: none
	over   func(ctx *host.Context, name string, failed bool)
	busy   func(name string)
}

// Times and numbers of the keeper's own.
const (
	lookTimer    = 1           // the key of its only timer
	answerWithin = time.Minute // for an actor to come to the request to end
	firstPenalty = 100 * time.Millisecond
	mostPenalty  = time.Minute
	mostFailures = 16       // from there on the penalty does not grow
	looksATurn   = 1000     // actors looked at within one turn
	leastSpare   = 16 << 10 // bytes of the bound kept free: ending an actor takes some, too
	candidates   = 32       // actors looked at to make room
)

// Start implements host.Behaviour. What waited before a restart is handled anew.
func (h *head) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	h.book, h.alarm, h.seed = newBook(), time.Time{}, maphash.MakeSeed()
	now := ctx.Now()
	for _, ref := range ctx.Children() { // those that the strategy keeps
		if ctx.Watch(ref) == nil {
			h.begun(&entry{name: ref.Name(), pos: -1}, ref, now, now.Add(h.idle))
		}
	}
	h.arm(ctx)
	ctx.Unstash()
	return nil
}

// Handle implements host.Behaviour.
func (h *head) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		var ok bool
		if h.msg, ok = ctx.Head().Next(); !ok {
			return nil
		}
		h.take(ctx)
	}
}

// take handles the message.
func (h *head) take(ctx *host.Context) {
	switch h.msg.Kind {
	case abi.KindMessage:
		h.receive(ctx)
	case abi.KindTerminated:
		h.terminated(ctx)
	case abi.KindTimer:
		h.alarm = time.Time{}
		h.look(ctx)
	case abi.KindReply, abi.KindAskTimeout: // to the request to end: no
		h.stays(ctx, abi.Ref(h.msg.Correlation))
	}
}

func (h *head) receive(ctx *host.Context) {
	below := ctx.Head().Below()
	if below == "" && len(h.msg.Headers) > 0 {
		if op, ok := abi.FindHeader(h.msg.Headers, Header); ok {
			h.manage(ctx, string(op))
			return
		}
	}
	name, err := h.nameOf(below)
	if err == nil {
		err = h.pass(ctx, name)
	}
	h.outcome(ctx, err)
}

// outcome is what becomes of a message that could not be passed on.
func (h *head) outcome(ctx *host.Context, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrNoKey): // it is for none of the actors
		h.complain(ctx, err)
	default:
		ctx.Head().Refuse(err)
	}
}

// pass hands the message to the actor of a key, which it may have to start, or keeps it waiting.
func (h *head) pass(ctx *host.Context, name string) error {
	e := h.entries[name]
	if e == nil {
		e = &entry{name: name, pos: -1}
		return h.admit(ctx, e)
	}
	switch e.state {
	case awake:
		if _, alive := ctx.System().Load(e.ref); !alive { // it has ended, and the news is about to come
			h.leave(e)
			return h.keep(ctx, e)
		}
		h.touch(e)
		return ctx.Head().Hand(e.ref)
	case granted:
		return h.start(ctx, e)
	case failed:
		if ctx.Now().Before(timeOf(e.until)) {
			return ErrFailed
		}
		return h.admit(ctx, e)
	default:
		return h.keep(ctx, e)
	}
}

// keep makes the message wait for the next actor of a key.
func (h *head) keep(ctx *host.Context, e *entry) error {
	size := int64(len(h.msg.Payload) + len(h.msg.Headers))
	switch {
	case int(e.held) >= max(1, h.buffer/4), h.waits >= h.buffer, e.held > 0 && e.bytes+size > h.bytes/4, h.weight+size > h.bytes:
		return ErrBuffer
	case ctx.Head().StashFor(e.name) != nil:
		return ErrBuffer
	}
	h.hold(e, size)
	return nil
}

// again handles what waits for a key, before everything that has come since.
func (h *head) again(ctx *host.Context, e *entry) {
	h.released(e)
	ctx.Head().UnstashFor(e.name)
}

// maker is the actor that begins a key by the current message; 0: Go code. Go code that sends on behalf of an actor,
// such as the schedule, counts as that actor, even if it has ended.
func (h *head) maker(ctx *host.Context) abi.Ref {
	if s := h.msg.Sender; !s.IsZero() && s.Path() != "/temp" {
		return s.UID()
	}
	path := ctx.Head().Behalf()
	if path == "" {
		return 0
	}
	if ref, err := ctx.System().Lookup(path); err == nil {
		return ref.UID()
	}
	return abi.Ref(maphash.String(h.seed, path)) | noActor
}

// noActor is a bit that no ref of an actor on this node has.
const noActor = 1 << 63

// admit starts the actor of a key that has none, or makes the message wait for a place.
func (h *head) admit(ctx *host.Context, e *entry) error {
	who := h.maker(ctx)
	full := h.full(ctx)
	switch {
	case who != 0 && h.perSender > 0 && h.made[who] >= h.perSender:
		return ErrShare
	case full == nil:
		h.claim(e, who)
		return h.start(ctx, e)
	case h.atLimit != Evict || !h.evict(ctx):
		return full
	}
	h.claim(e, who)
	h.line(e)
	if err := h.keep(ctx, e); err != nil { // the place goes to another key
		h.drop()
		return err
	}
	return nil
}

// full is the bound that is reached; nil: none is.
func (h *head) full(ctx *host.Context) error {
	switch {
	case h.taken() >= h.max:
		return ErrFull
	case !h.room(ctx):
		return errBytes
	}
	return nil
}

// admits is why an actor may begin no key now; nil: it may, perhaps in the place of another key.
func (h *head) admits(ctx *host.Context, who abi.Ref) error {
	full := h.full(ctx)
	switch {
	case who != 0 && h.perSender > 0 && h.made[who] >= h.perSender:
		return ErrShare
	case full != nil && h.atLimit != Evict:
		return full
	}
	return nil
}

// room reports whether one more actor would probably stay within the bound in bytes.
func (h *head) room(ctx *host.Context) bool {
	if h.maxBytes == 0 || h.alive == 0 {
		return true
	}
	held := ctx.Head().TreeHeld()
	return held+held/int64(h.alive) <= h.maxBytes-max(h.maxBytes/16, leastSpare)
}

// evict asks the least recently used idle actor to stop. It checks at most `candidates` actors; busy ones among them count
// as used.
func (h *head) evict(ctx *host.Context) bool {
	for range min(candidates, h.alive) {
		e := h.used.First().Of
		h.touch(e)
		if e.state != awake {
			continue
		}
		if _, resting := ctx.System().Rest(e.ref); resting && h.passivate(ctx, e) {
			return true
		}
	}
	return false
}

// start starts the actor of a key and hands it the message.
func (h *head) start(ctx *host.Context, e *entry) error {
	ref, err := ctx.Spawn(e.name, h.worker)
	if err == nil {
		err = ctx.Watch(ref)
	}
	if err != nil {
		h.forget(e)
		h.promote(ctx)
		return err
	}
	h.past.drop(e.name)
	now := ctx.Now()
	h.begun(e, ref, now, now.Add(h.idle))
	h.arm(ctx)
	return ctx.Head().Hand(ref)
}

// passivate asks an actor to end; false if that is not possible now.
func (h *head) passivate(ctx *host.Context, e *entry) bool {
	if err := ctx.Head().Passivate(e.ref, answerWithin); err != nil && !errors.Is(err, host.ErrUnknown) {
		return false
	}
	h.leave(e)
	return true
}

// stays is called for an actor that was asked to end but is busy.
func (h *head) stays(ctx *host.Context, ref abi.Ref) {
	e := h.byRef[ref]
	if e == nil || e.state != leaving {
		return
	}
	h.stay(e, ctx.Now().Add(h.idle))
	if h.busy != nil {
		h.busy(e.name)
	}
	h.arm(ctx)
	h.again(ctx, e)
	for len(h.queue) > h.ending && !h.evict(ctx) { // its place was promised to another key
		h.again(ctx, h.drop())
	}
}

// terminated handles the end of an actor: the messages that wait for it are handled, and a key that waits
// gets its place.
func (h *head) terminated(ctx *host.Context) {
	e := h.byRef[h.msg.Sender.UID()]
	if e == nil {
		return
	}
	now := ctx.Now()
	h.ended(e)
	delete(h.entries, e.name)
	var why string
	_ = h.msg.Decode(&why)
	failed := strings.HasPrefix(why, "failed: ")
	if failed {
		h.penalize(ctx, e, now)
	} else {
		h.past.add(e.name, now)
	}
	if h.over != nil {
		h.over(ctx, e.name, failed)
	}
	if h.moving != nil && h.moving(e.name) {
		h.released(e) // what waits stays in the stash
	} else {
		h.again(ctx, e)
	}
	h.promote(ctx)
}

// promote gives a free place to the key that has waited longest.
func (h *head) promote(ctx *host.Context) {
	if len(h.queue) > 0 && h.alive+h.grants < h.max {
		e := h.next()
		e.state = granted
		h.grants++
		h.again(ctx, e)
	}
}

// penalize delays the next start of a key whose actor was stopped for a failure. The number of keys for which
// this is remembered is bounded by the number of actors.
func (h *head) penalize(ctx *host.Context, e *entry, now time.Time) {
	if h.failing >= h.max {
		return
	}
	if now.Sub(timeOf(e.started)) >= mostPenalty {
		e.failures = 0
	}
	penalty := min(firstPenalty<<min(e.failures, mostFailures), mostPenalty)
	e.failures++
	until := now.Add(penalty)
	e.state, e.until = failed, until.UnixNano()
	h.failing++
	h.entries[e.name] = e
	h.lookAt(e, until.Add(mostPenalty))
	h.arm(ctx)
}

// look looks at the actors that are due: those that were idle for long enough are asked to end.
func (h *head) look(ctx *host.Context) {
	now := ctx.Now()
	for range looksATurn {
		if len(h.due) == 0 || timeOf(h.due[0].when).After(now) {
			break
		}
		e := h.due[0]
		if e.state == failed {
			h.forget(e)
			continue
		}
		since, resting := ctx.System().Rest(e.ref)
		switch end := since.Add(h.idle); {
		case !resting: // its last turn will have ended later than now
			h.lookAt(e, now.Add(h.idle))
		case end.After(now):
			h.lookAt(e, end)
		case !h.passivate(ctx, e): // too many are asked already
			h.lookAt(e, now.Add(min(h.idle, time.Second)))
		}
	}
	h.arm(ctx)
}

// arm sets the timer to when the next actor is due. Nobody waits for that, so it must not keep the system from being
// idle: the timer has a period, which never passes, because each turn of it sets it anew or cancels it.
func (h *head) arm(ctx *host.Context) {
	if len(h.due) == 0 {
		ctx.Cancel(lookTimer)
		return
	}
	when := timeOf(h.due[0].when)
	if !h.alarm.IsZero() && !when.Before(h.alarm) {
		return
	}
	if ctx.After(lookTimer, max(when.Sub(ctx.Now()), 0), time.Hour, nil) == nil {
		h.alarm = when
	}
}

// complain answers a question to the keeper itself with an error. Any other message is unhandled.
func (h *head) complain(ctx *host.Context, err error) {
	if h.msg.Correlation == 0 || h.msg.Sender.IsZero() {
		ctx.Head().Unhandled()
		return
	}
	_ = ctx.ReplyError(err.Error())
}

// Decide implements host.Behaviour: the strategy decides.
func (h *head) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour: a turn that fails has sent nothing.
func (h *head) CannotRewind() string { return "" }

// Rewind implements host.Behaviour.
func (h *head) Rewind(*host.Context) bool { return true }

// End implements host.Behaviour. The next incarnation watches the actors that are left then: otherwise the
// ends of the others would count as watched until their news was handled.
func (h *head) End(ctx *host.Context, _ host.End) {
	for x := h.used.First(); x != nil; x = x.Next() {
		ctx.Unwatch(x.Of.ref)
	}
}
