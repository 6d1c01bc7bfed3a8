package main

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// front gives transfers to the till.
type front struct {
	mistake mistake
	numbers int64
}

// Started implements actor.Starter.
func (f *front) Started(ctx *actor.Context) error {
	var args note
	err := ctx.DecodeArgs(&args)
	f.mistake = args.mistake
	return err
}

func (f *front) Receive(ctx *actor.Context, msg *actor.Message) error {
	var t note
	if err := msg.Decode(&t); err != nil {
		return err
	}
	if f.mistake == numbersBeginNew {
		f.numbers++
		t.id = f.numbers
	}
	ctx.TellPath("/user/till", &t)
	return nil
}

const (
	mostJobs    = 2                // at a time; other transfers wait
	mostWait    = 20 * time.Second // then a transfer has expired
	pageEntries = 4
)

// till has jobs carry out transfers, each once, and writes those that have ended on pages.
type till struct {
	mistake mistake
	known   map[int64]note
	waiting []int64
	jobs    map[actor.Ref]int64 // the transfers under way
	begun   int64
	twice   int64 // transfers that were begun again
	ids     map[int64]bool
	pages   int64
	page    actor.Ref
	entries int
}

// Started implements actor.Starter.
func (b *till) Started(ctx *actor.Context) error {
	var args note
	err := ctx.DecodeArgs(&args)
	b.mistake, b.known, b.jobs, b.ids = args.mistake, map[int64]note{}, map[actor.Ref]int64{}, map[int64]bool{}
	return err
}

func (b *till) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindTerminated:
		if _, mine := b.jobs[msg.Sender()]; !mine {
			return nil
		}
		delete(b.jobs, msg.Sender())
		b.enter(ctx)
		b.begin(ctx)
		return nil
	case actor.KindMessage, actor.KindTimer:
	default:
		return actor.ErrUnhandled
	}
	var t note
	if err := msg.Decode(&t); err != nil {
		return err
	}
	switch t.op {
	case "move":
		if k, known := b.known[t.id]; known && b.mistake != twiceCounts {
			if k != t {
				panic("two transfers have the number " + strconv.FormatInt(t.id, 10))
			}
			return nil // it has come twice
		}
		b.known[t.id] = t
		b.waiting = append(b.waiting, t.id)
		ctx.After(uint64(t.id), mostWait, &note{op: "expire", id: t.id})
		b.begin(ctx)
	case "expire":
		b.expire(ctx, t.id)
	case "twice":
		return ctx.Reply(actor.Int(b.twice))
	case "open":
		return ctx.Reply(actor.Int(len(b.jobs) + len(b.waiting)))
	}
	return nil
}

// begin starts jobs for transfers that wait.
func (b *till) begin(ctx *actor.Context) {
	for len(b.waiting) > 0 && len(b.jobs) < mostJobs {
		id := b.waiting[0]
		b.waiting = b.waiting[1:]
		if b.mistake != timerSurvives {
			ctx.Cancel(uint64(id))
		}
		args := b.known[id]
		args.mistake = b.mistake
		b.begun++
		if b.ids[id] {
			b.twice++
		}
		b.ids[id] = true
		ref := ctx.Spawn("job", "j"+strconv.FormatInt(b.begun, 10), &args)
		ctx.Watch(ref)
		b.jobs[ref] = id
	}
}

// expire gives up a transfer that has waited for too long, and all that there is of it.
func (b *till) expire(ctx *actor.Context, id int64) {
	for i, x := range b.waiting {
		if x == id {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return
		}
	}
	for ref, x := range b.jobs {
		if x == id {
			ctx.Stop(ref)
		}
	}
}

// enter writes a transfer that has ended on a page, and begins another page when that is full.
func (b *till) enter(ctx *actor.Context) {
	if b.page == 0 {
		b.pages++
		b.page = ctx.Spawn("page", "p"+strconv.FormatInt(b.pages, 10), nil)
	}
	ctx.Tell(b.page, &note{op: "entry"})
	if b.entries++; b.entries < pageEntries {
		return
	}
	if b.mistake == stopOvertakes {
		ctx.Stop(b.page)
	} else {
		ctx.Tell(b.page, &note{op: "full"})
	}
	b.page, b.entries = 0, 0
}

// page counts entries, and tells the book when it ends.
type page struct{ entries int64 }

func (p *page) Receive(ctx *actor.Context, msg *actor.Message) error {
	var n note
	if err := msg.Decode(&n); err != nil {
		return err
	}
	if n.op == "full" {
		ctx.StopSelf()
		return nil
	}
	p.entries++
	return nil
}

// Stopped implements actor.Stopper.
func (p *page) Stopped(ctx *actor.Context) {
	ctx.TellPath("/user/book", &note{op: "page", amount: p.entries})
}
