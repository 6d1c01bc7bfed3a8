package reliable

import (
	"strconv"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	rules "github.com/wasmactors/wasmactors/abi/reliable"
	"github.com/wasmactors/wasmactors/host"
)

// Unsent is what a proxy could not deliver, as far as it knows.
type Unsent struct {
	Payload host.Raw
	Headers map[string]string
}

// Proxy is an actor that sends what it gets to a path with a [Sender], so that a message survives both the crash of its
// sender and that of the target. Values are immutable; each With method returns a changed
// copy.
type Proxy struct {
	path      string
	settings  Settings
	reconnect time.Duration
	connects  int
	unsent    func([]Unsent)
}

// To is a proxy to a path; the target has a Receiver. Messages arrive with the proxy as sender and the original
// sender as [Origin]. A question is answered with an error: answers would not be sent again.
//
// When the target has stopped, has not answered Settings.Attempts times, or does not exist at the start, the proxy stops;
// see WithReconnect. Undelivered messages go to WithUnsent. Kept messages count towards the proxy's limits, see
// [host.Head.Hold]. A keyed actor (host/keyed) does not count as stopped while its keeper exists, because messages start
// it.
func To(path string, s Settings) Proxy {
	if s.Key == 0 {
		s.Key = retryKey
	}
	return Proxy{path: path, settings: s}
}

// WithReconnect looks for an actor at the path again after a time, up to most times in a row (0: no limit). Unacknowledged
// messages are sent to the actor that is found, and may be handled a second time.
func (p Proxy) WithReconnect(after time.Duration, most int) Proxy {
	p.reconnect, p.connects = after, most
	return p
}

// WithUnsent sets the function that gets what was not acknowledged when the proxy ends, and what there was no room for.
// It is called within a turn of the proxy. Without it, such messages are events, as unhandled.
func (p Proxy) WithUnsent(f func([]Unsent)) Proxy { p.unsent = f; return p }

// Props makes the props of the actor.
func (p Proxy) Props() host.Props { return host.Native(func() host.Actor { return &proxy{Proxy: p} }) }

// Keys of timers.
const (
	retryKey   = 1
	connectKey = 1 << 62
)

type proxy struct {
	Proxy
	out   *Sender
	tries int
}

// Started implements host.Starter.
func (p *proxy) Started(ctx *host.Context) error {
	p.out = NewSender(p.settings).OnLost(func(ctx *host.Context) { p.find(ctx) })
	p.find(ctx)
	return nil
}

// find looks for the target, now or later, or ends the proxy. A target that has not answered may still
// exist: it is tried again as if it were new.
func (p *proxy) find(ctx *host.Context) {
	if p.tries > 0 || p.out.target.To.IsZero() {
		if to, err := ctx.System().AddressOf(p.path); err == nil && p.out.ConnectTo(ctx, to) == nil {
			p.tries = 0
			return
		}
	}
	p.tries++
	if p.reconnect <= 0 || p.connects > 0 && p.tries > p.connects {
		ctx.Stop(ctx.Self())
		return
	}
	_ = ctx.After(connectKey, p.reconnect, 0, nil)
}

// Receive implements host.Actor.
func (p *proxy) Receive(ctx *host.Context, m host.Message) error {
	switch {
	case m.Kind == abi.KindTimer && m.Correlation == connectKey:
		p.find(ctx)
		return nil
	case p.out.Receive(ctx, m):
		p.note(ctx)
		return nil
	case m.Kind != abi.KindMessage:
		return host.ErrUnhandled
	case m.Correlation != 0 && !m.Sender.IsZero():
		return ctx.ReplyError("reliable: a proxy does not resend answers: ask " + p.path + " itself")
	}
	headers := map[string]string{}
	for rest := m.Headers; ; {
		key, value, next, more := abi.NextHeader(rest)
		if !more {
			break
		}
		switch k := string(key); k {
		case rules.Header, rules.AckHeader, rules.OriginHeader, host.HeaderTraceParent, host.HeaderTraceState:
		default:
			headers[k] = string(value)
		}
		rest = next
	}
	if !m.Sender.IsZero() {
		headers[rules.OriginHeader] = strconv.FormatUint(uint64(m.Sender.UID()), 10)
	}
	payload := append(host.Raw(nil), m.Payload...)
	err := ctx.Head().Hold(int64(p.out.window.Bytes() + sizeOf(payload, headers)))
	if err == nil {
		err = p.out.Send(ctx, payload, headers)
	}
	if err != nil {
		p.note(ctx)
		if p.unsent == nil {
			ctx.Head().Refuse(err)
			return nil
		}
		p.unsent([]Unsent{{payload, headers}})
	}
	return nil
}

// note puts what is kept on the proxy's account; a decrease is never refused.
func (p *proxy) note(ctx *host.Context) { _ = ctx.Head().Hold(int64(p.out.window.Bytes())) }

// Stopped implements host.Stopper.
func (p *proxy) Stopped(*host.Context) {
	if p.unsent == nil || p.out == nil || p.out.Len() == 0 {
		return
	}
	var left []Unsent
	p.out.Unsent(func(payload host.Raw, headers map[string]string) { left = append(left, Unsent{payload, headers}) })
	p.unsent(left)
}
