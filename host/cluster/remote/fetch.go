package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// fetch gets the code of one module from the node of a parent, part by part, checks it, and tells all who wait for it. It asks those who
// stand for children in turn: when one is gone the next one is asked. Nothing of the code is used before its hash is right.
type fetch struct {
	accept *Accept
	node   uint16       // of the parents: actors of others have no part in it
	busy   *atomic.Bool // whether another one of this node is under way
	digest []byte
	as     string
	most   int64

	waits   []wait
	running bool
	over    bool
	why     error // after over: why there is none
	end     time.Time
	code    []byte
	size    int64
}

// wait is who stands for a child, and waits.
type wait struct {
	by    host.Ref
	reply *host.Reply
}

// Correlations and timers of a fetch.
const (
	partAsk = 1
	loading = 2
	again   = 3
	stayed  = 4
)

func (g *group) fetch(ctx *host.Context, r *request, node uint16) error {
	a := g.accept
	as, most, err := a.Code.May(r.Module, r.Type)
	if err != nil {
		return err
	}
	key := as + "/" + string(r.Digest)
	f, ok := g.fetches[key]
	if !ok {
		if len(g.fetches) >= mostFetches {
			return fmt.Errorf("%w: %d modules of the node are being fetched already", host.ErrLimit, mostFetches)
		}
		g.made++
		f, err = ctx.Spawn(fmt.Sprintf("code%d", g.made), host.Behave("remote/fetch", func() host.Behaviour {
			return &fetch{accept: a, node: node, busy: &g.busy, digest: r.Digest, as: as, most: most}
		}).WithLifetime(supervision.Temporary).WithLimits(host.Limits{Held: most + 2*partSize, Replies: mostWaiting}))
		if err == nil {
			err = ctx.Watch(f)
		}
		if err != nil {
			return err
		}
		if g.fetches == nil {
			g.fetches = map[string]host.Ref{}
		}
		g.fetches[key] = f
	}
	return ctx.Reply(answer{Fetch: f.UID()})
}

// fetched forgets a fetch that has ended, if it is one.
func (g *group) fetched(ref host.Ref) bool {
	for key, f := range g.fetches {
		if f.Equal(ref) {
			delete(g.fetches, key)
			return true
		}
	}
	return false
}

// Start implements host.Behaviour.
func (f *fetch) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	f.end = ctx.Now().Add(fetchTime)
	_ = ctx.After(stayed, partTime, 0, nil) // if nobody comes
	return nil
}

// Handle implements host.Behaviour.
func (f *fetch) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		switch {
		case !ok:
			return nil
		case m.Kind == abi.KindMessage && m.Correlation != 0 && !m.Sender.IsZero() && m.Sender.UID().Node() == f.node:
			f.wanted(ctx, m)
		case m.Kind == abi.KindTimer && m.Correlation == stayed:
			if f.over || len(f.waits) == 0 {
				ctx.Stop(ctx.Self())
			}
		case f.over:
		case m.Kind == abi.KindTimer && m.Correlation == again:
			f.begin(ctx)
		case m.Kind == abi.KindMessage:
		case m.Correlation == partAsk:
			f.part(ctx, m)
		case m.Correlation == loading:
			f.loaded(ctx, m)
		}
	}
}

// wanted has one more wait for the outcome.
func (f *fetch) wanted(ctx *host.Context, m host.Message) {
	if f.over {
		_ = ctx.Reply(f.outcome())
		return
	}
	reply, err := ctx.Later()
	if err != nil {
		_ = ctx.Reply(refusal(err))
		return
	}
	f.waits = append(f.waits, wait{m.Sender, reply})
	if len(f.waits) == 1 {
		f.begin(ctx)
	}
}

// begin begins when no other one of the node is under way, and not too many of all nodes.
func (f *fetch) begin(ctx *host.Context) {
	if f.running {
		return
	}
	if ctx.Now().After(f.end) {
		f.finish(ctx, fmt.Errorf("%w: too many other modules are being fetched", host.ErrLimit))
		return
	}
	if f.busy.CompareAndSwap(false, true) {
		if f.accept.fetching.Add(1) <= mostFetching {
			f.running, f.end = true, ctx.Now().Add(fetchTime)
			f.ask(ctx)
			return
		}
		f.leave()
	}
	if err := ctx.After(again, turnTime, 0, nil); err != nil {
		f.finish(ctx, err)
	}
}

func (f *fetch) leave() {
	f.accept.fetching.Add(-1)
	f.busy.Store(false)
}

// ask asks the first who waits for the next part. Who does not give it is passed over.
func (f *fetch) ask(ctx *host.Context) {
	for len(f.waits) > 0 {
		v := host.Headed{Value: part{At: int64(len(f.code))}, Headers: map[string]string{offering: version}}
		err := ctx.Ask(f.waits[0].by, v, partAsk, partTime)
		if err == nil {
			return
		}
		f.skip(err)
	}
	f.finish(ctx, errors.New("remote: nobody gives the code"))
}

func (f *fetch) skip(why error) {
	_ = f.waits[0].reply.Send(refusal(why))
	f.waits = f.waits[1:]
}

// part takes a part, or the news that there is none.
func (f *fetch) part(ctx *host.Context, m host.Message) {
	if m.Kind != abi.KindReply {
		if ctx.Now().After(f.end) { // the next one would have the time of another fetch
			f.finish(ctx, f.late())
			return
		}
		f.skip(fmt.Errorf("remote: it does not give the code: %w", m.Err()))
		f.ask(ctx)
		return
	}
	p, err := decodePart(m.Payload)
	if err == nil {
		f.code, err = p.join(f.code, &f.size, f.most)
	}
	if err == nil && ctx.Now().After(f.end) {
		err = f.late()
	}
	if err == nil {
		err = ctx.Head().Hold(f.size)
	}
	if err == nil && int64(len(f.code)) < f.size {
		f.ask(ctx)
		return
	}
	if err == nil {
		if sum := sha256.Sum256(f.code); !bytes.Equal(sum[:], f.digest) {
			err = fmt.Errorf("remote: it has the hash %x, and should have %x", sum, f.digest)
		}
	}
	if err == nil {
		node, digest, as, code, load := f.node, f.digest, f.as, f.code, f.accept.Code.Load
		err = ctx.Head().Pipe(func(ctx context.Context) (any, error) { return nil, load(ctx, node, digest, as, code) }, loading, fetchTime)
	}
	if err != nil {
		f.refuse(ctx, err)
	}
}

func (f *fetch) late() error {
	return fmt.Errorf("remote: %d of %d bytes of the code have come within %v", len(f.code), f.size, fetchTime)
}

// loaded takes what has become of the code.
func (f *fetch) loaded(ctx *host.Context, m host.Message) {
	if m.Kind == abi.KindReply {
		f.accept.Count.Fetched.Add(1)
		f.finish(ctx, nil)
		return
	}
	why := m.Err()
	if why == nil {
		why = fmt.Errorf("it was not checked within %v", fetchTime)
	}
	f.refuse(ctx, fmt.Errorf("%w: the code of module %s from another node: %w", host.ErrBadProps, f.as, why))
}

// refuse ends it, and tells of code that was not taken.
func (f *fetch) refuse(ctx *host.Context, why error) {
	if f.accept.Refused != nil {
		f.accept.Refused(f.waits[0].by.UID().Node(), fmt.Sprintf("code of a child, with the hash %x, is not taken: %.500s", f.digest, why))
	}
	f.finish(ctx, why)
}

// finish tells all who wait. In vain it stays a little for those who come late; else they find the code, or it is fetched again.
func (f *fetch) finish(ctx *host.Context, why error) {
	f.over, f.why = true, why
	for _, w := range f.waits {
		_ = w.reply.Send(f.outcome())
	}
	f.drop()
	_ = ctx.Head().Hold(0)
	ctx.Cancel(stayed)
	if why == nil || ctx.After(stayed, stayTime, 0, nil) != nil {
		ctx.Stop(ctx.Self())
	}
}

func (f *fetch) drop() {
	if f.waits, f.code = nil, nil; f.running {
		f.running = false
		f.leave()
	}
}

func (f *fetch) outcome() answer {
	if f.why != nil {
		return refusal(f.why)
	}
	return answer{Fetched: true}
}

// Decide implements host.Behaviour.
func (f *fetch) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

// CannotRewind implements host.Behaviour.
func (f *fetch) CannotRewind() string { return "it reads code of another node" }

// Rewind implements host.Behaviour.
func (f *fetch) Rewind(*host.Context) bool { return false }

// End implements host.Behaviour.
func (f *fetch) End(*host.Context, host.End) { f.drop() }
