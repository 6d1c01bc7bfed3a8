package flow

import (
	"strconv"
	"time"

	rules "github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/blob"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/kv"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
	"github.com/wasmactors/wasmactors/guest-sdk/sql"
	"github.com/wasmactors/wasmactors/guest-sdk/stream"
	"github.com/wasmactors/wasmactors/guest-sdk/tcp"
)

// Pages is a source of what a service gives in pages: fetch asks for the page that begins at from, and its continuation returns what done
// returns. The next page is asked for when the one before was taken.
func Pages[S, T any](from S, fetch func(ctx *actor.Context, from S, done func(ctx *actor.Context, p rules.Page[S, T], err error) error)) rules.Source[T] {
	return rules.Pages(from, func(g *rules.Graph, at S, done func(rules.Page[S, T], error)) func() {
		ctx := ContextOf(g)
		if ctx == nil {
			done(rules.Page[S, T]{}, errRunner)
			return nil
		}
		fetch(ctx, at, func(ctx *actor.Context, p rules.Page[S, T], err error) error {
			return Later(g, ctx, func() { done(p, err) })
		})
		return nil
	})
}

// place is where the reading of bytes has come to.
type place struct {
	from actor.Ref // 0: open it
}

type parts = func(ctx *actor.Context, p rules.Page[place, []byte], err error) error

// Read is a source of the bytes of a stream of a service (package stream), in parts, each of which is asked for when the one
// before was taken. flow.Lines and flow.Lengths make frames of them.
func Read(from actor.Ref, timeout time.Duration) rules.Source[[]byte] {
	return bytesOf(place{from}, timeout, nil)
}

func bytesOf(first place, timeout time.Duration, open func(ctx *actor.Context, done parts)) rules.Source[[]byte] {
	return rules.Lazily(func(g *rules.Graph) rules.Source[[]byte] {
		now := first.from // what must be closed
		src := Pages(first, func(ctx *actor.Context, at place, done parts) {
			if at.from == 0 {
				open(ctx, func(ctx *actor.Context, p rules.Page[place, []byte], err error) error {
					now = p.Next.from
					return done(ctx, p, err)
				})
				return
			}
			stream.Read(ctx, at.from, 0, timeout, func(ctx *actor.Context, part []byte, end bool, err error) error {
				p := rules.Page[place, []byte]{Next: at, Last: end}
				if end || err != nil {
					now = 0
				} else {
					p.Items = [][]byte{append([]byte(nil), part...)}
				}
				return done(ctx, p, err)
			})
		})
		return rules.Watch(src, nil, func(error) {
			if ctx := ContextOf(g); ctx != nil && now != 0 {
				stream.Close(ctx, now)
			}
		})
	})
}

// content is what opening has found: all of it, or a stream.
func content(data []byte, from actor.Ref) rules.Page[place, []byte] {
	p := rules.Page[place, []byte]{Next: place{from}, Last: from == 0}
	if from == 0 && len(data) > 0 {
		p.Items = [][]byte{append([]byte(nil), data...)}
	}
	return p
}

// Blob is a source of the bytes of a stored object.
func Blob(name string, part blob.Range, timeout time.Duration) rules.Source[[]byte] {
	return bytesOf(place{}, timeout, func(ctx *actor.Context, done parts) {
		blob.Get(ctx, name, part, timeout, func(ctx *actor.Context, c blob.Content, err error) error {
			return done(ctx, content(c.Data, c.From), err)
		})
	})
}

// Body is a source of the body of what a web server answers, as it comes: q.Answer has no effect. A status that is no success is an
// error, and so is a part that takes longer than timeout. With flow.Lines and flow.Events it is a source of server-sent events.
func Body(q *httpx.Request, timeout time.Duration) rules.Source[[]byte] {
	streamed := *q
	streamed.Answer = httpx.Streamed // an answer that does not end would never come whole
	return bytesOf(place{}, timeout, func(ctx *actor.Context, done parts) {
		httpx.Do(ctx, &streamed, func(ctx *actor.Context, res *httpx.Response, err error) error {
			if err == nil && !res.OK() {
				res.Discard(ctx)
				err = &service.Error{Code: service.Internal, Text: "the server has answered with status " + strconv.Itoa(res.Status)}
			}
			if err != nil {
				return done(ctx, rules.Page[place, []byte]{}, err)
			}
			return done(ctx, content(res.Body, res.Stream), nil)
		})
	})
}

// Entries is a source of the entries of a key-value store that a query matches.
func Entries(s kv.Store, q kv.Query) rules.Source[kv.Entry] {
	return Pages(q.Cursor, func(ctx *actor.Context, cursor []byte, done func(*actor.Context, rules.Page[[]byte, kv.Entry], error) error) {
		q := q
		q.Cursor = cursor
		s.List(ctx, q, func(ctx *actor.Context, p kv.Page, err error) error {
			for i := range p.Entries {
				p.Entries[i].Value = append([]byte(nil), p.Entries[i].Value...)
			}
			return done(ctx, rules.Page[[]byte, kv.Entry]{Items: p.Entries, Next: p.Cursor, Last: p.Cursor == nil}, err)
		})
	})
}

// Rows is a source of the rows that a statement reads, as read makes elements of them.
func Rows[T any](db string, s sql.Statement, timeout time.Duration, read func(row *sql.Row) T) rules.Source[T] {
	return Pages(actor.Ref(0), func(ctx *actor.Context, cursor actor.Ref, done func(*actor.Context, rules.Page[actor.Ref, T], error) error) {
		then := func(ctx *actor.Context, res *sql.Result, err error) error {
			var p rules.Page[actor.Ref, T]
			if err == nil {
				p.Next, p.Last = res.Cursor, res.End != sql.EndPage
				err = res.Each(func(row *sql.Row) { p.Items = append(p.Items, read(row)) })
			}
			return done(ctx, p, err)
		}
		if cursor == 0 {
			s := s
			if s.Rest == "" {
				s.Rest = sql.Page
			}
			sql.Query(ctx, db, s, timeout, then)
		} else {
			sql.Next(ctx, cursor, 0, timeout, then)
		}
	})
}

// Topic is a source of what is published to the topics that a pattern matches, as read makes elements of it. window events are under way
// at most: the service queues or drops the rest, as o says.
func Topic[T any](pattern string, window int, o pubsub.Options, read func(e pubsub.Event) T) rules.Source[T] {
	window = max(window, 1)
	return rules.Fed(window, rules.DropNewest, func(g *rules.Graph, f rules.Feed[T]) func() {
		r, ok := g.Mail().(*Runner)
		if !ok {
			f.End(errRunner)
			return nil
		}
		o := o
		o.Window, o.Manual = window, true
		o.Then = func(ctx *actor.Context, err error) error {
			if err == nil {
				return nil
			}
			return Later(g, ctx, func() { f.End(err) })
		}
		o.Ended = func(ctx *actor.Context, reason string) error {
			return Later(g, ctx, func() { f.End(&service.Error{Code: service.Internal, Text: reason}) })
		}
		r.topics.Subscribe(r.ctx, pattern, o, func(ctx *actor.Context, e pubsub.Event) error {
			r.ctx = ctx
			_ = f.Put(read(e), len(e.Value), func(error) { e.Done(r.ctx) })
			return nil
		})
		return func() { r.topics.Unsubscribe(r.ctx, pattern) }
	})
}

// Frames is a source of what a server sends over TCP: the messages of the framing of o, or bytes as they come. What was not
// taken waits in the network, beyond the window of o. opened is called with the connection, and may write; it may be nil. The
// connection is closed when nothing more is wanted.
func Frames(address string, o tcp.Options, timeout time.Duration, opened func(ctx *actor.Context, c *tcp.Conn)) rules.Source[[]byte] {
	o.Pull = true
	return rules.Fed(1<<20, rules.Overrun, func(g *rules.Graph, f rules.Feed[[]byte]) func() { // the window bounds it
		r, ok := g.Mail().(*Runner)
		if !ok {
			f.End(errRunner)
			return nil
		}
		var conn *tcp.Conn
		over := false
		tcp.Dial(r.ctx, &r.conns, address, o, timeout, func(ctx *actor.Context, c *tcp.Conn, err error) error {
			switch {
			case err != nil:
				return Later(g, ctx, func() { f.End(err) })
			case over:
				c.Abort(ctx)
				return nil
			}
			conn, c.Data = c, &frames{r, f}
			c.More(ctx, 1<<30) // all of the window
			if opened != nil {
				opened(ctx, c)
			}
			return nil
		})
		return func() {
			if over = true; conn != nil {
				conn.Close(r.ctx)
			}
		}
	})
}

type frames struct {
	r *Runner
	f rules.Feed[[]byte]
}

// frameConns are the connections of [Frames].
func frameConns() tcp.Conns {
	return tcp.Conns{
		OnOpen: func(ctx *actor.Context, c *tcp.Conn) error { c.Abort(ctx); return nil }, // of a stream before a restart
		OnData: func(_ *actor.Context, c *tcp.Conn, data []byte) error {
			if x, ok := c.Data.(*frames); ok {
				n := len(data) + tcp.Overhead
				_ = x.f.Put(append([]byte(nil), data...), 0, func(err error) {
					if err == nil {
						c.More(x.r.ctx, n)
					}
				})
			}
			return nil
		},
		OnClose: func(_ *actor.Context, c *tcp.Conn, _ tcp.How, err error) error {
			if x, ok := c.Data.(*frames); ok {
				x.f.End(err)
			}
			return nil
		},
	}
}
