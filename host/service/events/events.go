// Package events is the service of the system's events. An actor is notified when others start, fail, restart or stop, and
// when messages are not delivered or not handled, as its grant allows. docs/services/events.md has the guarantees.
package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
	"github.com/wasmactors/wasmactors/internal/glob"
)

// Settings are those of the service.
type Settings struct {
	Subscriptions int `manifest:"subscriptions" doc:"how many there may be in all; default 1000" min:"1" max:"10000"`
}

// Grant says of which events an actor may be notified.
type Grant struct {
	Lifecycle     []string     `manifest:"lifecycle" doc:"patterns of the paths of actors whose starts, failures, restarts and stops are reported" reach:"none"`
	DeadLetters   []string     `manifest:"dead-letters" doc:"patterns of the paths of recipients and senders whose undelivered messages are reported" reach:"none"`
	Unhandled     []string     `manifest:"unhandled" doc:"patterns of the paths of actors whose unhandled messages are reported" reach:"none"`
	Reasons       bool         `manifest:"reasons" doc:"why, too, in the words of the guest that has failed; secrets are hidden"`
	Subscriptions int          `manifest:"subscriptions" doc:"how many of them there may be; default 16" min:"1" max:"10000"`
	Queue         service.Size `manifest:"queue" doc:"bytes that may wait for a slow subscriber, for each subscription; default 64KiB" min:"1024"`
	Events        int          `manifest:"events" doc:"how many are delivered a second, and at once, of all subscriptions together; default 1000" min:"1" max:"1000000"`
}

// Defaults of [Settings] and [Grant], and bounds of what subscribers ask for.
const (
	DefaultAllSubscriptions = 1000
	DefaultSubscriptions    = 16
	DefaultQueue            = 64 << 10
	DefaultEvents           = 1000

	MaxPaths     = 16  // patterns of a subscription, or of a key of a grant
	MaxPath      = 128 // bytes of a pattern
	MaxWildcards = 8   // in a pattern
)

// Service is the service of events.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "events", Doc: "what happens to actors: starts, failures, restarts, ends, dead letters, unhandled messages",
	CheckGrant: checkGrant,
	Open: func(env *service.Env, s *Settings) (service.Provider[Grant], error) {
		return newProvider(env, or(s.Subscriptions, DefaultAllSubscriptions)), nil
	},
})

func checkGrant(g *Grant) error {
	n := 0
	for _, k := range groups {
		patterns := g.of(k)
		n += len(patterns)
		if len(patterns) > MaxPaths {
			return service.At(string(k), fmt.Errorf("%d patterns, at most %d", len(patterns), MaxPaths))
		}
		for i, p := range patterns {
			if err := checkPath(p); err != nil {
				return service.At(fmt.Sprintf("%s[%d]", k, i), err)
			}
		}
	}
	if n == 0 {
		return errors.New("it grants nothing: lifecycle, dead-letters and unhandled have patterns of paths")
	}
	return nil
}

// of are the patterns of a key.
func (g *Grant) of(k group) []string {
	switch k {
	case lifecycle:
		return g.Lifecycle
	case deadLetters:
		return g.DeadLetters
	case unhandled:
		return g.Unhandled
	}
	return nil
}

// checkPath says what is wrong with a pattern of paths.
func checkPath(p string) error { return glob.CheckPath(p, MaxPath, MaxWildcards) }

func or[T int | service.Size](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Serve implements [service.Provider]: ServeNow has answered.
func (p *provider) Serve(context.Context, *service.Request[Grant]) (any, error) {
	return nil, service.Errorf(service.Internal, "not answered")
}

// ServeNow implements [service.Inline].
func (p *provider) ServeNow(r *service.Request[Grant]) (answer any, err error, ok bool) {
	switch r.Op {
	case "subscribe":
		answer, err = p.subscribe(r)
	case "unsubscribe":
		err = p.unsubscribe(r)
	default:
		err = r.Unknown()
	}
	return answer, err, true
}

// subscribed is the answer to subscribe.
type subscribed struct {
	Subscription uint64 `cbor:"subscription"`
}

func (p *provider) subscribe(r *service.Request[Grant]) (any, error) {
	in := struct {
		Channel string   `cbor:"channel"`
		Paths   []string `cbor:"paths"`
		feed.Options
	}{Options: feed.Usual()}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	classes, err := mayHear(r.Grant, in.Channel)
	if err != nil {
		return nil, err
	}
	if len(in.Paths) > MaxPaths {
		return nil, service.Errorf(service.BadRequest, "%d paths, at most %d", len(in.Paths), MaxPaths)
	}
	for _, path := range in.Paths {
		if err := checkPath(path); err != nil {
			return nil, service.Errorf(service.BadRequest, "%w", err)
		}
	}
	if err := in.Check(int(or(r.Grant.Queue, DefaultQueue))); err != nil {
		return nil, err
	}
	if r.Sender.IsZero() {
		return nil, service.Errorf(service.BadRequest, "nobody subscribes")
	}
	s := &subscription{key: subscriptionKey{r.Sender.UID(), in.Channel}, classes: classes, reasons: r.Grant.Reasons}
	s.wants(in.Paths, r.Grant)
	begun, err := r.Hold(feed.StartBytes)
	if err != nil {
		return nil, err
	}
	s.feed = feed.New(p.env, r.Sender, in.Options, feed.Words{Event: "happened", Ended: "over"}, marks, func() { p.remove(s) }, begun)
	if err := p.add(s, r.GrantID(), r.Grant); err != nil {
		begun()
		return nil, err
	}
	ref, err := r.Spawn(s.feed.Props())
	if err != nil {
		s.feed.End("")
		begun()
		return nil, err
	}
	s.feed.Begin(ref)
	return subscribed{uint64(ref.UID())}, nil
}

// mayHear are the classes of a channel that are granted.
func mayHear(g *Grant, channel string) (classSet, error) {
	if err := topic.CheckPattern(channel); err != nil {
		return 0, service.Errorf(service.BadRequest, "%w", err)
	}
	var granted classSet
	refused := group("")
	for c := range classes {
		if !classes[c].in(channel) {
			continue
		}
		if k := classes[c].group; len(g.of(k)) > 0 {
			granted |= 1 << c
		} else {
			refused = k
		}
	}
	switch {
	case granted != 0:
		return granted, nil
	case refused != "":
		return 0, service.Deny(string(refused), "events of %s are not granted", channel)
	}
	return 0, service.Errorf(service.NotFound, "there are no events of %s; there are lifecycle, dead-letters, suppressed and unhandled, and what is below them", channel)
}

func (p *provider) unsubscribe(r *service.Request[Grant]) error {
	var in struct {
		Channel string `cbor:"channel"`
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	s := p.find(subscriptionKey{r.Sender.UID(), in.Channel})
	if s == nil {
		return service.Errorf(service.NotFound, "there is no subscription to %.60q", in.Channel)
	}
	s.feed.End("")
	return nil
}

var _ service.Inline[Grant] = (*provider)(nil)

// compiled are patterns, and what comparing a path with them costs at the most, in bytes compared for each
// byte of the path.
type compiled struct {
	paths  []glob.Path
	weight int
}

func compile(patterns []string) (c compiled) {
	c.paths = glob.CompilePaths(patterns)
	for _, p := range patterns {
		if glob.HasMeta(p) {
			c.weight += len(p)
		} else {
			c.weight++
		}
	}
	return c
}

func (c *compiled) match(elements []string) bool { return glob.MatchAnyPath(c.paths, elements) }
