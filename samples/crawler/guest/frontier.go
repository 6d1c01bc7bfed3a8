package main

import (
	"net/url"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// frontier knows all pages that were found, gives each to the actor of its host once, and answers who
// has asked for the crawl when nothing is left.
type frontier struct {
	order    crawl
	asker    actor.Ref
	question uint64
	seen     map[string]bool
	hosts    map[string]*worker // by origin
	refs     map[actor.Ref]*worker
	open     int // visits
	sum      summary
}

// worker is the actor of a host and what it still has to do, in order.
type worker struct {
	ref   actor.Ref // 0: it has ended
	epoch uint64    // its incarnation
	todo  []string
	tries map[string]int // of visits that it has crashed with
}

const (
	mostPages   = 10_000
	mostHosts   = 200
	mostCrashes = 3 // of a host's actor, before the page that it was about is given up
)

func (f *frontier) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindTerminated, actor.KindSpawnFailed:
		f.lost(ctx, msg.Sender())
		return nil
	case actor.KindMessage:
	default:
		return actor.ErrUnhandled
	}
	if w := f.refs[msg.Sender()]; w != nil {
		return f.news(ctx, w, msg)
	}
	var order crawl
	switch err := msg.Decode(&order); {
	case err != nil && msg.Correlation() == 0:
		return actor.ErrUnhandled // of a host of the crawl before
	case err != nil:
		return ctx.ReplyError(err.Error())
	case f.open > 0:
		return ctx.ReplyError("a crawl is under way")
	}
	if order.Most <= 0 || order.Most > mostPages {
		order.Most = mostPages
	}
	if order.Agent == "" {
		order.Agent = "wasmactors-crawler"
	}
	for ref := range f.refs { // of the crawl before
		ctx.Unwatch(ref)
		ctx.Stop(ref)
	}
	*f = frontier{order: order, asker: msg.Sender(), question: msg.Correlation(), seen: map[string]bool{}, hosts: map[string]*worker{}, refs: map[actor.Ref]*worker{}}
	f.add(ctx, order.Seeds)
	f.finish(ctx)
	return nil
}

// news is what a host's actor says.
func (f *frontier) news(ctx *actor.Context, w *worker, msg *actor.Message) error {
	var again hello
	if msg.Decode(&again) == nil {
		w.epoch = again.Hello
		f.resume(ctx, w)
		f.finish(ctx)
		return nil
	}
	var v visited
	if err := msg.Decode(&v); err != nil {
		return err
	}
	if len(w.todo) == 0 || w.todo[0] != v.URL {
		return nil // it was given up
	}
	f.done(w, v.Outcome)
	f.add(ctx, v.Links)
	f.finish(ctx)
	return nil
}

// resume gives an actor that has begun anew its visits again. The first is what it has crashed with.
func (f *frontier) resume(ctx *actor.Context, w *worker) {
	if len(w.todo) > 0 {
		if w.tries[w.todo[0]]++; w.tries[w.todo[0]] >= mostCrashes {
			ctx.Warn(w.todo[0] + " is given up: its host's actor has crashed with it again and again")
			f.done(w, "failed")
		}
	}
	for _, target := range w.todo {
		ctx.Tell(w.ref, &visit{target, w.epoch})
	}
}

// lost is a host's actor that has ended for good.
func (f *frontier) lost(ctx *actor.Context, ref actor.Ref) {
	if w := f.refs[ref]; w != nil {
		for len(w.todo) > 0 {
			f.done(w, "failed")
		}
		w.ref = 0
		delete(f.refs, ref)
		f.finish(ctx)
	}
}

// done ends the first visit of a host.
func (f *frontier) done(w *worker, outcome string) {
	delete(w.tries, w.todo[0])
	w.todo = w.todo[1:]
	f.open--
	switch outcome {
	case "read":
		f.sum.Read++
	case "moved":
		f.sum.Moved++
	case "forbidden":
		f.sum.Forbidden++
	default:
		f.sum.Failed++
	}
}

// add takes links that were not seen before.
func (f *frontier) add(ctx *actor.Context, found []string) {
	for _, link := range found {
		u, err := url.Parse(link)
		if err != nil {
			continue
		}
		target, ok := normal(u)
		if !ok || f.seen[target] {
			continue
		}
		w := f.host(ctx, u.Scheme+"://"+u.Host)
		if w == nil || int64(len(f.seen)) >= f.order.Most {
			f.sum.Skipped++
			continue
		}
		f.seen[target] = true
		f.open++
		if w.ref == 0 {
			w.todo = append(w.todo, target)
			f.done(w, "failed")
			continue
		}
		w.todo = append(w.todo, target)
		ctx.Tell(w.ref, &visit{target, w.epoch})
	}
}

// host is the worker for an origin; it is made if need be, and nil if there are too many.
func (f *frontier) host(ctx *actor.Context, origin string) *worker {
	if w := f.hosts[origin]; w != nil || len(f.hosts) >= mostHosts {
		return w
	}
	w := &worker{tries: map[string]int{}}
	w.ref = ctx.Spawn("host", "", &site{Origin: origin, PauseMS: f.order.PauseMS, Agent: f.order.Agent})
	ctx.Watch(w.ref)
	f.hosts[origin], f.refs[w.ref] = w, w
	f.sum.Hosts++
	return w
}

// finish answers when nothing is left to do.
func (f *frontier) finish(ctx *actor.Context) {
	if f.open > 0 || f.asker == 0 {
		return
	}
	_ = ctx.Answer(f.asker, f.question, &f.sum)
	f.asker = 0
}
