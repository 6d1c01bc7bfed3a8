package main

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/httpx"
	"github.com/wasmactors/wasmactors/guest-sdk/pubsub"
	"github.com/wasmactors/wasmactors/guest-sdk/service"
)

// host asks one web server, one request at a time. It begins with robots.txt.
type host struct {
	site    site
	rules   *robots // nil: not read yet
	queue   []string
	tries   int       // of what is asked for now
	asking  bool      // an answer is under way
	timer   bool      // the next request waits for its time
	allowed time.Time // when the next request may be
}

// How a server that has trouble is treated.
const (
	mostTries   = 4
	firstPause  = 250 * time.Millisecond // doubles with each try
	mostPause   = 30 * time.Second
	pauseIsOver = 1 // key of the timer
)

func (h *host) Started(ctx *actor.Context) error {
	if err := ctx.DecodeArgs(&h.site); err != nil {
		return err
	}
	if ctx.Incarnation() > 0 {
		h.allowed = ctx.Now().Add(firstPause) // nobody knows when the last request was
		ctx.Tell(ctx.Parent(), &hello{ctx.Incarnation()})
	}
	return nil
}

func (h *host) Receive(ctx *actor.Context, msg *actor.Message) error {
	switch msg.Kind() {
	case actor.KindTimer:
		h.timer = false
	case actor.KindMessage:
		var v visit
		if err := msg.Decode(&v); err != nil {
			return err
		}
		if v.Epoch != ctx.Incarnation() {
			return nil // it is given again, see hello
		}
		h.queue = append(h.queue, v.URL)
	default:
		return actor.ErrUnhandled
	}
	h.next(ctx)
	return nil
}

// next makes the next request, when it may be.
func (h *host) next(ctx *actor.Context) {
	for !h.asking && !h.timer && len(h.queue) > 0 {
		target := h.queue[0]
		if h.rules != nil && !h.rules.allows(pathOf(target)) {
			h.done(ctx, "forbidden", nil)
			continue
		}
		if wait := h.allowed.Sub(ctx.Now()); wait > 0 {
			h.timer = true
			ctx.After(pauseIsOver, wait, nil)
			return
		}
		h.asking = true
		if h.rules == nil {
			get(ctx, h.site.Origin+"/robots.txt", h.site.Agent, httpx.Follow, h.robots)
			return
		}
		get(ctx, target, h.site.Agent, httpx.Stay, h.page)
	}
}

// pathOf is what robots.txt speaks of: path and query as they stand in the URL.
func pathOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return "/"
	}
	return u.RequestURI()
}

// robots is the answer to the request of robots.txt. Who has none allows everything; who cannot say
// forbids it, until somebody asks again.
func (h *host) robots(ctx *actor.Context, r *response, err error) error {
	h.answered(ctx)
	switch {
	case service.CodeOf(err) == service.TooLarge:
		h.rules = forbidAll
	case h.again(ctx, r, err):
	case err != nil || r.status >= 500 || r.status == 429:
		h.rules = forbidAll
	case r.status >= 200 && r.status < 300:
		h.rules = parseRobots(strings.ToValidUTF8(string(r.body), ""), h.site.Agent)
	default:
		h.rules = allowAll
	}
	if h.rules != nil {
		h.tries = 0
		h.allowed = ctx.Now().Add(h.pause())
	}
	h.next(ctx)
	return nil
}

// page is the answer to the request of a page.
func (h *host) page(ctx *actor.Context, r *response, err error) error {
	h.answered(ctx)
	switch {
	case h.again(ctx, r, err):
	case err != nil:
		ctx.Warn(h.queue[0] + ": " + err.Error())
		h.done(ctx, "failed", nil)
	case r.status == 200:
		h.read(ctx, r)
	case r.status >= 300 && r.status < 400:
		var to []string
		if base, err := url.Parse(h.queue[0]); err == nil {
			if link, ok := resolve(base, r.location); ok {
				to = append(to, link)
			}
		}
		h.done(ctx, "moved", to)
	default:
		h.done(ctx, "failed", nil)
	}
	h.next(ctx)
	return nil
}

// read takes what is wanted from a page.
func (h *host) read(ctx *actor.Context, r *response) {
	target := h.queue[0]
	var title string
	var found []string
	if strings.HasPrefix(r.kind, "text/html") {
		if base, err := url.Parse(target); err == nil {
			title, found = links(base, string(r.body))
		}
	}
	pubsub.Tell(ctx, "pages."+token(h.site.Origin), &page{URL: target, Title: title, Bytes: int64(len(r.body))})
	h.done(ctx, "read", found)
}

// token is an origin as a part of a topic.
func token(origin string) string {
	_, rest, _ := strings.Cut(origin, "://")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, rest)
}

// answered begins the pause before the next request.
func (h *host) answered(ctx *actor.Context) {
	h.asking = false
	h.allowed = ctx.Now().Add(h.pause())
}

func (h *host) pause() time.Duration {
	pause := time.Duration(h.site.PauseMS) * time.Millisecond
	if h.rules != nil {
		pause = max(pause, h.rules.delay)
	}
	return pause
}

// again reports whether the request is to be tried once more, after a longer pause.
func (h *host) again(ctx *actor.Context, r *response, err error) bool {
	if err == nil && r.status != 429 && r.status < 500 || err != nil && !service.CodeOf(err).Retry() && service.CodeOf(err) != service.Failed {
		return false
	}
	if h.tries++; h.tries >= mostTries {
		return false
	}
	pause := firstPause << (h.tries - 1)
	if err == nil {
		if s, bad := strconv.Atoi(r.retryAfter); bad == nil && s > 0 {
			pause = time.Duration(min(s, int(mostPause/time.Second))) * time.Second
		}
	}
	h.allowed = ctx.Now().Add(max(pause, h.pause()))
	return true
}

// done ends the visit that is first in the queue.
func (h *host) done(ctx *actor.Context, outcome string, links []string) {
	ctx.Tell(ctx.Parent(), &visited{URL: h.queue[0], Outcome: outcome, Links: links})
	h.queue, h.tries = h.queue[1:], 0
}
