package bundle

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/service"
)

// events checks the keys durable: events of an actor and of those below it.
func (c *checker) events(m *Manifest, v view, a *Actor) {
	if x := v.get(durableKey); x.given() && x.n.Value == eventsValue {
		a.Events = true
		switch {
		case m.Store == nil && !a.spread():
			c.At(x.n, "actor %s: durable: events needs the key store, which says where its events are kept", a.Name)
		case a.Routing != nil:
			c.At(x.n, "actor %s: durable: events cannot be combined with to: a router keeps no events", a.Name)
		case a.Resend != nil:
			c.At(x.n, "actor %s: durable: events cannot be combined with resend", a.Name)
		case !a.Mailbox.IsHosted():
			c.At(x.n, "actor %s: durable: events cannot be combined with a mailbox of an embedder, mailbox.kind: %s", a.Name, a.Mailbox)
		case m.Store == nil:
			c.spreadEvents(m, v, a)
		}
	}
	i := -1
	v.mapping("children").pairs(func(_ *yaml.Node, child view) {
		i++
		c.events(m, child, &a.Children[i])
	})
}

// spread reports whether the actors of the entry are one for each key in the cluster, or one in it.
func (a *Actor) spread() bool { return a.Keyed != nil && a.Keyed.Scope == ScopeCluster }

// spreadEvents checks an actor whose events the nodes of a cluster keep.
func (c *checker) spreadEvents(m *Manifest, v view, a *Actor) {
	at := v.get(durableKey).n
	c.reachCluster(at, below(below("actors", a.Name), durableKey))
	switch l := &a.Limits.Durable; {
	case *l == 0:
		*l = journal.MaxBytes
	case *l > journal.MaxBytes:
		at := v.object("limits").get("durable")
		if !at.given() {
			at = v.get(durableKey)
		}
		c.At(at.n, "actor %s: limits.durable is %d bytes, at most %d for each key whose events the nodes of a cluster keep: have it make snapshots and delete events", a.Name, *l, journal.MaxBytes)
	}
	if slices.ContainsFunc(m.Services, func(s Use) bool { return s.Kind.Name() == "journal" }) {
		c.At(v.get(durableKey).n, "actor %s: its events are kept by the nodes of the cluster, and services.journal finds those of a store only: remove that, or make the actor keyed without scope: cluster", a.Name)
	}
}

// reachCluster notes a key by which the nodes of the cluster keep something for all bundles of the name.
func (c *checker) reachCluster(at *yaml.Node, key string) {
	c.spread = append(c.spread, named{reach: service.ReachCluster, key: key, line: max(at.Line, 1), column: max(at.Column, 1)})
}

// keepsEvents reports whether an actor of a manifest does.
func keepsEvents(m *Manifest) (some bool) {
	m.Walk(func(_ string, a *Actor) { some = some || a.Events })
	return some
}
