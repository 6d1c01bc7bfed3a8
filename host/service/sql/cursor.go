package sql

import (
	"context"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/supervision"
)

// A result that does not fit into an answer becomes a cursor: an actor that is asked for the next
// page. While it lives it holds a connection and a snapshot of the database: so it ends when its owner
// ends, when no page is asked for a while, and at the latest after its life.

// cursors are the open cursors of all grants.
type cursors struct {
	env  *service.Env
	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu sync.Mutex
	of map[uint64]int // open cursors by grant
}

func newCursors(env *service.Env) *cursors {
	c := &cursors{env: env, of: map[uint64]int{}}
	c.ctx, c.stop = context.WithCancelCause(context.Background())
	return c
}

func (c *cursors) close() {
	c.stop(service.Errorf(service.Unavailable, "sql is closing"))
	executor.Join(c.env.Clock, &c.wg)
}

// enter reserves one of a grant's cursors.
func (c *cursors) enter(grant uint64, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[grant] >= most {
		return false
	}
	c.of[grant]++
	return true
}

func (c *cursors) leave(grant uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[grant]--; c.of[grant] == 0 {
		delete(c.of, grant)
	}
}

// cursor is a query in progress.
type cursor struct {
	all    *cursors
	st     *statement
	most   int // bytes of a page
	idle   time.Duration
	owner  host.Ref
	ctx    context.Context
	cancel context.CancelCauseFunc
	wants  chan int  // rows of the next page
	pages  chan page // its pages; closed at the end

	mu    sync.Mutex
	busy  bool // a page is in progress
	sys   *host.System
	self  host.Ref
	ended bool
}

// page is a page, or why there is none.
type page struct {
	result *result
	end    string
	err    error
}

// open runs a query and answers with its first page.
func (c *cursors) open(ctx context.Context, r *service.Request[Grant], db *database, st *statement) (any, error) {
	g, id := r.Grant, r.GrantID()
	most := int(or(g.Answer, DefaultAnswer))
	release, err := r.Hold(int64(most))
	if err != nil {
		return nil, err
	}
	if n := or(g.Cursors, DefaultCursors); !c.enter(id, n) {
		release()
		return nil, service.Errorf(service.Busy, "%d results are being read page by page, which is the limit; cursors of the grant raises it", n)
	}
	x := &cursor{all: c, st: st, most: most, idle: or(g.CursorIdle, DefaultCursorIdle), owner: r.Sender, wants: make(chan int, 1), pages: make(chan page, 1)}
	x.ctx, x.cancel = context.WithCancelCause(c.ctx)
	life := c.env.Clock.AfterFunc(or(g.CursorLife, DefaultCursorLife), func() {
		x.cancel(service.Errorf(service.Timeout, "the result was read for too long; cursor-life of the grant raises it"))
	})
	c.wg.Add(1)
	c.env.Go(func() {
		defer c.wg.Done()
		defer c.leave(id)
		defer release()
		defer life.Stop()
		defer x.end()
		x.run(db)
	})
	// The first page belongs to the request, and ends with it.
	unbind := executor.AfterDone(c.env.Clock, ctx, func() { x.cancel(context.Cause(ctx)) })
	first := x.next(st.rows)
	if first.err == nil && !unbind() {
		first.err = over(ctx)
	}
	if first.err != nil {
		x.cancel(nil)
		return nil, first.err
	}
	w := abi.NewWriter(nil)
	ref := host.Ref{}
	if first.end == endPage {
		if ref, err = r.Spawn(x.props()); err != nil {
			x.cancel(nil)
			return nil, err
		}
	}
	first.result.encode(w, first.end, uint64(ref.UID()))
	return host.Raw(w.Bytes()), nil
}

// run steps through the query, a page at a time.
func (x *cursor) run(db *database) {
	defer close(x.pages)
	s := &result{}
	want, asked := 0, false
	deliver := func(p page) error {
		if executor.Put(x.all.env.Clock, x.pages, p, x.ctx.Done()) != 0 {
			return over(x.ctx)
		}
		asked = false
		return nil
	}
	wait := func() error {
		n, which := service.Receive(x.all.env, x.wants, x.ctx.Done())
		if which != 0 {
			return over(x.ctx)
		}
		want, asked = n, true
		return nil
	}
	how := Scope{Access: Read, Yield: func() {
		x.cancel(service.Errorf(service.Busy, "the result was closed because it blocked writers; ask again"))
	}}
	if wait() != nil {
		return
	}
	err := db.Do(x.ctx, how, func(tx Tx) error {
		_, err := tx.Run(x.ctx, x.st.sql, x.st.params,
			func(names []string) error { return s.describe(names, x.most) },
			func(values []Value) error {
				for s.count >= want || !s.add(values, x.most) {
					if s.count == 0 {
						return service.Errorf(service.TooLarge, "a row has more than the %d bytes of an answer", x.most)
					}
					if err := deliver(page{result: s, end: endPage}); err != nil {
						return err
					}
					if err := wait(); err != nil {
						return err
					}
					s.clearRows()
				}
				return nil
			})
		return err
	})
	if !asked {
		return // no page is sent any more
	}
	if err != nil {
		_ = deliver(page{err: err})
		return
	}
	_ = deliver(page{result: s, end: endAll})
}

// next waits for a page.
func (x *cursor) next(rows int) page {
	if executor.Put(x.all.env.Clock, x.wants, rows, x.ctx.Done()) != 0 {
		return page{err: over(x.ctx)}
	}
	p, which := service.Receive(x.all.env, x.pages)
	if which != 0 {
		return page{err: over(x.ctx)}
	}
	return p
}

// end ends the actor, if there is one.
func (x *cursor) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended = true; x.sys != nil && !x.busy {
		x.sys.Stop(x.self)
	}
}

// answered sends a page, after allowing the next request: the receiver may ask at once.
func (x *cursor) answered(answer func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	answer()
	if x.busy = false; x.ended {
		x.sys.Stop(x.self)
	}
}

// props are the props of the cursor's actor.
func (x *cursor) props() host.Props {
	return host.Behave("sql-cursor", func() host.Behaviour { return cursorBehaviour{x} }).
		WithLifetime(supervision.Temporary).
		WithLimits(host.Limits{Mailbox: 16, MailboxBytes: 64 << 10, Replies: 4, Children: 1, Timers: 1, Watches: 1, Asks: 1, Stash: 1})
}

// cursorBehaviour is the actor of a cursor.
type cursorBehaviour struct{ *cursor }

func (b cursorBehaviour) Start(ctx *host.Context, _ *abi.Failure) *abi.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sys, b.self = ctx.System(), ctx.Self(); b.ended {
		ctx.Stop(b.self)
		return nil
	}
	if err := ctx.Watch(b.owner); err != nil {
		return &abi.Failure{Kind: abi.FailureInit, Reason: err.Error()}
	}
	ctx.SetReceiveTimeout(b.idle)
	return nil
}

func (b cursorBehaviour) Handle(ctx *host.Context, _ int) *abi.Failure {
	for {
		m, ok := ctx.Head().Next()
		if !ok {
			return nil
		}
		switch m.Kind {
		case abi.KindMessage:
			if err := b.request(ctx, m); err != nil && m.Correlation != 0 && !m.Sender.IsZero() {
				_ = ctx.ReplyError(err.Error())
			}
		case abi.KindTerminated:
			b.cancel(service.Errorf(service.Cancelled, "the asker has ended"))
		case abi.KindReceiveTimeout:
			b.mu.Lock()
			if !b.busy {
				b.cancel(service.Errorf(service.Timeout, "the next page was not asked for in time"))
			}
			b.mu.Unlock()
		}
	}
}

// request is ["next", {"rows": n}] or ["close", null].
func (b cursorBehaviour) request(ctx *host.Context, m host.Message) error {
	r := abi.NewReader(m.Payload)
	if r.Array() != 2 || r.Peek() != abi.TypeText {
		return service.Errorf(service.BadRequest, "a request to a cursor is [op, args]")
	}
	switch op := r.Text(); op {
	case "close":
		b.cancel(service.Errorf(service.Cancelled, "the cursor was closed"))
		return ctx.Reply(nil)
	case "next":
		rows, err := decodeNext(r)
		if err != nil {
			return badRequest(op, err)
		}
		if rows == 0 || rows > b.st.rows {
			rows = b.st.rows
		}
		return b.answerNext(ctx, rows)
	}
	return service.Errorf(service.BadRequest, "a cursor knows next and close")
}

func (b cursorBehaviour) answerNext(ctx *host.Context, rows int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return service.Errorf(service.Busy, "a page is in progress; ask for one at a time")
	}
	reply, err := ctx.Later()
	if err != nil {
		return service.Errorf(service.BadRequest, "next must be an ask")
	}
	b.busy = true
	b.all.wg.Add(1)
	b.all.env.Go(func() {
		defer b.all.wg.Done()
		p := b.next(rows)
		if p.err != nil {
			b.answered(func() { _ = reply.Fail(p.err.Error()) })
			return
		}
		w := abi.NewWriter(nil)
		w.Map(2)
		w.Text("end")
		w.Text(p.end)
		w.Text("rows")
		p.result.encodeRows(w) // its buffer is reused for the next page
		b.answered(func() { _ = reply.Send(host.Raw(w.Bytes())) })
	})
	return nil
}

func (b cursorBehaviour) Decide(*host.Context, host.Ref, *abi.Failure) (supervision.Directive, *abi.Failure) {
	return 0, nil
}

func (b cursorBehaviour) CannotRewind() string { return "a cursor cannot be resumed" }

func (b cursorBehaviour) Rewind(*host.Context) bool { return false }

func (b cursorBehaviour) End(*host.Context, host.End) {
	b.cancel(service.Errorf(service.Cancelled, "the cursor has ended"))
}
