// Package pubsub is the service of topics: a publisher to a topic need not know the
// subscribers. It lives within the system; docs/services/pubsub.md states the guarantees.
package pubsub

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/feed"
	"github.com/wasmactors/wasmactors/host/service/pubsub/topic"
)

// Settings are those of the service.
type Settings struct {
	Subscriptions int          `manifest:"subscriptions" doc:"how many there may be in all; default 10000" min:"1" max:"100000"`
	Retain        service.Size `manifest:"retain" doc:"bytes of retained values in all, 256 more counted for each; default 64MiB" min:"1024"`
	Scope         string       `manifest:"scope" doc:"node: topics are those of this node; cluster: those of all nodes of the cluster, and retained values are where its directory is; default node" enum:"node,cluster" reach:"cluster"`
}

// Grant is what an actor may publish and subscribe to.
type Grant struct {
	Publish       []string     `manifest:"publish" doc:"patterns of the topics that may be published to; * is any token, > at the end is all that follows" reach:"none"`
	Subscribe     []string     `manifest:"subscribe" doc:"patterns of the topics that may be subscribed to; a pattern that is subscribed to must be covered by one of them" reach:"none"`
	Subscriptions int          `manifest:"subscriptions" doc:"how many of them there may be; default 64" min:"1" max:"100000"`
	Queue         service.Size `manifest:"queue" doc:"bytes that may wait for a slow subscriber, for each subscription; default 64KiB" min:"1024"`
	Retain        service.Size `manifest:"retain" doc:"bytes of values that may be retained, 256 more counted for each; default 1MiB" min:"256"`
}

// Defaults of [Settings] and [Grant], and bounds of what subscribers ask for.
const (
	DefaultAllSubscriptions = 10_000
	DefaultAllRetain        = 64 << 20
	DefaultSubscriptions    = 64
	DefaultQueue            = 64 << 10
	DefaultRetain           = 1 << 20

	ScopeCluster = "cluster" // of Settings.Scope: topics are those of all nodes of the cluster

	MaxGroup = 64 // bytes of the name of a group

	MaxValue = 48 << 10 // bytes of what is published: it must fit the inbox of a guest

	DefaultWindow  = feed.DefaultWindow // events that are delivered ahead of acknowledgements
	MaxWindow      = feed.MaxWindow
	DefaultAckWait = feed.DefaultAckWait
	MinAckWait     = feed.MinAckWait
	MaxAckWait     = feed.MaxAckWait
)

// Service is the service of topics.
var Service = service.Define(service.Definition[Settings, Grant]{
	Name: "pubsub", Doc: "topics that actors publish and subscribe to",
	CheckGrant: func(g *Grant) error {
		if err := checkPatterns("publish", g.Publish); err != nil {
			return err
		}
		return checkPatterns("subscribe", g.Subscribe)
	},
	Open: func(env *service.Env, s *Settings) (service.Provider[Grant], error) {
		p := &provider{env: env, broker: newBroker(or(s.Subscriptions, DefaultAllSubscriptions), int64(or(s.Retain, DefaultAllRetain)))}
		if s.Scope == ScopeCluster && env.Nodes != nil && env.Shared != nil { // else it is alone
			if err := p.join(); err != nil {
				return nil, err
			}
		}
		return p, nil
	},
})

func checkPatterns(key string, patterns []string) error {
	for i, p := range patterns {
		if err := topic.CheckPattern(p); err != nil {
			return service.At(fmt.Sprintf("%s[%d]", key, i), err)
		}
	}
	return nil
}

func or[T int | service.Size](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// provider answers within the service's turn, so that what one actor asks for happens in its order.
type provider struct {
	env    *service.Env
	broker *broker
	kept   *kept  // the retained values of a cluster; nil: the broker has them
	relay  *relay // nil: topics are those of this node
}

// join makes the topics those of all nodes of the cluster.
func (p *provider) join() (err error) {
	if p.kept, err = openKept(p.env, p.broker); err != nil {
		return err
	}
	if p.relay, err = startRelay(p.env, p.broker); err != nil {
		p.kept.close()
	}
	return err
}

// Accepted implements [service.Sequencer]: what is retained in a cluster is published in its turn, and answered when it is kept.
func (p *provider) Accepted(r *service.Request[Grant]) {
	if p.kept != nil && r.Op == "publish" {
		if name, value, _, err := readPublish(r.Args); err == nil {
			value = append([]byte(nil), value...)
			w := p.kept.begin(r, name, value)
			w.taken, w.missed = p.broker.publish(&Event{Topic: name, Value: value})
		}
	}
}

// Serve implements [service.Provider]: what ServeNow has not answered changes what is retained in a cluster.
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	switch {
	case p.kept == nil:
		return nil, service.Errorf(service.Internal, "not answered")
	case r.Op == "forget":
		return nil, p.kept.forget(ctx, topicOf(r))
	}
	return p.kept.retain(ctx, r)
}

// Close implements [service.Provider].
func (p *provider) Close(context.Context) error {
	if p.relay != nil {
		p.relay.close()
		p.kept.close()
	}
	return nil
}

// ServeNow implements [service.Inline].
func (p *provider) ServeNow(r *service.Request[Grant]) (answer any, err error, ok bool) {
	switch r.Op {
	case "publish":
		if answer, err = p.publish(r); errors.Is(err, errLater) {
			return nil, nil, false
		}
	case "subscribe":
		answer, err = p.subscribe(r)
	case "unsubscribe":
		err = p.unsubscribe(r)
	case "retained":
		answer, err = p.retained(r)
	case "forget":
		if err = p.forget(r); errors.Is(err, errLater) {
			return nil, nil, false
		}
	default:
		err = r.Unknown()
	}
	return answer, err, true
}

// errLater says that a request takes time.
var errLater = errors.New("pubsub: later")

// published is the answer to publish. A node with subscribers counts as one subscription.
type published struct {
	Taken  int `cbor:"taken"`
	Missed int `cbor:"missed"`
}

func (p *provider) publish(r *service.Request[Grant]) (any, error) {
	name, value, retain, err := readPublish(r.Args)
	if err != nil {
		return nil, err
	}
	if err := mayUse(r.Grant.Publish, "publish", name); err != nil {
		return nil, err
	}
	if len(value) > MaxValue {
		return nil, service.Errorf(service.TooLarge, "the value has %d bytes, at most %d", len(value), MaxValue)
	}
	if retain && p.kept != nil {
		if err := p.kept.check(r.GrantID(), int64(or(r.Grant.Retain, DefaultRetain)), name, value); err != nil {
			return nil, err
		}
		return nil, errLater
	}
	if retain {
		if err := p.broker.retain(r.GrantID(), int64(or(r.Grant.Retain, DefaultRetain)), name, value); err != nil {
			return nil, err
		}
	}
	taken, missed := p.broker.publish(&Event{Topic: name, Value: value})
	if !r.Wanted() {
		return nil, nil
	}
	return published{taken, missed}, nil
}

// mayUse checks a topic, or a pattern, against a grant.
func mayUse(granted []string, key, what string) error {
	check := topic.Check
	if key == "subscribe" {
		check = topic.CheckPattern
	}
	if err := check(what); err != nil {
		return service.Errorf(service.BadRequest, "%w", err)
	}
	for _, g := range granted {
		if topic.Covers(g, what) {
			return nil
		}
	}
	return service.Deny(key, "%s of %s is not granted", key, what)
}

// subscribed is the answer to subscribe.
type subscribed struct {
	Subscription uint64 `cbor:"subscription"`
	page
}

// page is some of the retained values; Next is where the rest begins, if there is more.
type page struct {
	Retained []retainedValue `cbor:"retained,omitempty"`
	Next     string          `cbor:"next,omitempty"`
}

func (p *provider) subscribe(r *service.Request[Grant]) (any, error) {
	in := struct {
		Pattern  string `cbor:"pattern"`
		Retained bool   `cbor:"retained"`
		Group    string `cbor:"group"`
		feed.Options
	}{Options: feed.Usual()}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := mayUse(r.Grant.Subscribe, "subscribe", in.Pattern); err != nil {
		return nil, err
	}
	if err := in.Check(int(or(r.Grant.Queue, DefaultQueue))); err != nil {
		return nil, err
	}
	if len(in.Group) > MaxGroup || !utf8.ValidString(in.Group) {
		return nil, service.Errorf(service.BadRequest, "the name of a group has at most %d bytes of UTF-8", MaxGroup)
	}
	if r.Sender.IsZero() {
		return nil, service.Errorf(service.BadRequest, "nobody subscribes")
	}
	s := &subscription{grant: r.GrantID(), pattern: in.Pattern, group: in.Group, subscriber: r.Sender.UID()}
	begun, err := r.Hold(feed.StartBytes)
	if err != nil {
		return nil, err
	}
	s.feed = feed.New(p.env, r.Sender, in.Options, feed.Words{Event: "event", Ended: "ended"}, 0, func() { p.broker.unsubscribe(s) }, begun)
	if err := p.broker.subscribe(s, or(r.Grant.Subscriptions, DefaultSubscriptions)); err != nil {
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
	answer := subscribed{Subscription: uint64(ref.UID())}
	if in.Retained {
		answer.page = p.broker.page(in.Pattern, "")
	}
	return answer, nil
}

func (p *provider) unsubscribe(r *service.Request[Grant]) error {
	var in struct {
		Pattern string `cbor:"pattern"`
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	s := p.broker.find(r.Sender, in.Pattern)
	if s == nil {
		return service.Errorf(service.NotFound, "there is no subscription to %.60q", in.Pattern)
	}
	s.feed.End("")
	return nil
}

func (p *provider) retained(r *service.Request[Grant]) (any, error) {
	var in struct {
		Pattern string `cbor:"pattern"`
		After   string `cbor:"after"`
	}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if err := mayUse(r.Grant.Subscribe, "subscribe", in.Pattern); err != nil {
		return nil, err
	}
	if in.After != "" {
		if err := topic.Check(in.After); err != nil {
			return nil, service.Errorf(service.BadRequest, "after: %w", err)
		}
	}
	return p.broker.page(in.Pattern, in.After), nil
}

// topicOf is the topic of a request to forget that was checked.
func topicOf(r *service.Request[Grant]) string {
	var in struct {
		Topic string `cbor:"topic"`
	}
	_ = r.Decode(&in)
	return in.Topic
}

func (p *provider) forget(r *service.Request[Grant]) error {
	var in struct {
		Topic string `cbor:"topic"`
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	if err := mayUse(r.Grant.Publish, "publish", in.Topic); err != nil {
		return err
	}
	if p.kept != nil {
		return errLater
	}
	if !p.broker.forget(in.Topic) {
		return service.Errorf(service.NotFound, "nothing is retained of %s", in.Topic)
	}
	return nil
}

var (
	_ service.Inline[Grant]    = (*provider)(nil)
	_ service.Sequencer[Grant] = (*provider)(nil)
)
