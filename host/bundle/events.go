package bundle

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/mailbox"
)

// events checks the keys durable: events of an actor and of those below it.
func (c *checker) events(m *Manifest, v view, a *Actor) {
	if x := v.get(durableKey); x.given() && x.n.Value == eventsValue {
		a.Events = true
		switch {
		case m.Store == nil:
			c.at(x.n, "actor %s: durable: events needs the key store, which says where its events are kept", a.Name)
		case a.Routing != nil:
			c.at(x.n, "actor %s: durable: events cannot be combined with to: a router keeps no events", a.Name)
		case a.Resend != nil:
			c.at(x.n, "actor %s: durable: events cannot be combined with resend", a.Name)
		case a.Mailbox.Kind() == mailbox.Custom:
			c.at(x.n, "actor %s: durable: events cannot be combined with a mailbox of an embedder, mailbox.kind: %s", a.Name, a.Mailbox)
		}
	}
	i := -1
	v.mapping("children").pairs(func(_ *yaml.Node, child view) {
		i++
		c.events(m, child, &a.Children[i])
	})
}

// keepsEvents reports whether an actor of a manifest does.
func keepsEvents(m *Manifest) (some bool) {
	m.Walk(func(_ string, a *Actor) { some = some || a.Events })
	return some
}

// checkEvents reports modules whose code keeps no events, and has to.
func (b *Bundle) checkEvents() (err error) {
	b.Manifest.Walk(func(path string, a *Actor) {
		mod := b.modules[a.Module]
		if !a.Events || mod == nil || err != nil {
			return
		}
		if d := mod.Image().Description(); !slices.Contains(d.Needs, abi.FeatureEvents) {
			err = fmt.Errorf("actor %s is durable: events, and the module %s keeps no events: register the type by guest-sdk/persist", path, a.Module)
		}
	})
	return err
}
