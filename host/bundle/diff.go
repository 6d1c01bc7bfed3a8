package bundle

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/supervision"
)

// Which parts of a manifest can change while its actors run, and which cannot. That depends
// on the two manifests alone.

// action is what a change does to a top-level actor.
type action uint8

const (
	unchanged action = iota
	restarts         // restarts in its place: ref and mailbox stay
	replaced         // stops, and another one starts under its name
	added
	removed
)

// step is the action on one top-level actor, and why.
type step struct {
	name   string
	action action
	why    string
}

// plan are the steps from one manifest to another.
type plan struct {
	whole []string // why the bundle as a whole must start again; empty: it need not
	steps []step   // in the order of the old manifest, then of the new one
}

// planOf compares two manifests, without the code of their modules.
func planOf(old, now *Manifest) plan {
	var p plan
	for _, c := range []struct {
		what string
		same bool
	}{
		{"name", old.Name == now.Name},
		{"supervision", old.supervision == now.supervision},
		{"idle", old.IdleAfter == now.IdleAfter && old.MostAwake == now.MostAwake},
		{"capabilities.metrics", reflect.DeepEqual(grantsOf(old), grantsOf(now))},
		{"http", sameHTTP(old.HTTP, now.HTTP)},
		{"services", sameServices(old.Services, now.Services)},
		{"store", textOf(old.Store) == textOf(now.Store)},
		{"recorder", reflect.DeepEqual(old.Recorder, now.Recorder)},
		{"cluster", reflect.DeepEqual(old.Cluster, now.Cluster)},
		{"system", old.Memory == now.Memory && old.MostActors == now.MostActors},
	} {
		if !c.same {
			p.whole = append(p.whole, c.what+" has changed, which concerns the whole bundle")
		}
	}
	for i := range old.Actors {
		a := &old.Actors[i]
		b := find(now.Actors, a.Name)
		if b == nil {
			p.steps = append(p.steps, step{a.Name, removed, "it is no longer in the manifest"})
			continue
		}
		if f, why := compare(a, b); f != unchanged {
			p.steps = append(p.steps, step{a.Name, f, why})
		}
	}
	for i := range now.Actors {
		if b := &now.Actors[i]; find(old.Actors, b.Name) == nil {
			p.steps = append(p.steps, step{b.Name, added, "it is new in the manifest"})
		}
	}
	for _, s := range p.steps {
		if a, b := find(old.Actors, s.name), find(now.Actors, s.name); a != nil && a.Durable || b != nil && b.Durable {
			p.whole = append(p.whole, "the durable actor "+s.name+" has changed, which needs a new start")
		}
	}
	if why := orderOf(old, now, p.steps); why != "" {
		p.whole = append(p.whole, why)
	}
	return p
}

// orderOf says why a change of the order of the top-level actors needs a new start. Under
// rest-for-one their supervisor goes by the order in which they were started, and an actor
// that is started now becomes the last one. It is empty if that is the order of the manifest.
func orderOf(old, now *Manifest, steps []step) string {
	if old.Supervision.Kind() != supervision.RestForOne {
		return ""
	}
	fresh := func(name string) bool {
		return slices.ContainsFunc(steps, func(t step) bool { return t.name == name && t.action >= replaced })
	}
	var stay, would []string
	for _, a := range old.Actors {
		if !fresh(a.Name) {
			stay = append(stay, a.Name)
		}
	}
	would = stay
	for _, a := range now.Actors {
		if fresh(a.Name) {
			would = append(slices.Clip(would), a.Name)
		}
	}
	for i, a := range now.Actors {
		if i >= len(would) || would[i] != a.Name {
			return "the order of the actors has changed, on which rest-for-one depends"
		}
	}
	return ""
}

func find(actors []Actor, name string) *Actor {
	for i := range actors {
		if actors[i].Name == name {
			return &actors[i]
		}
	}
	return nil
}

// compare says what to do with an actor whose entry in the manifest was a and is b, and why.
func compare(a, b *Actor) (action, string) {
	f, whys := unchanged, []string(nil)
	note := func(is action, same bool, what string) {
		if !same {
			f = max(f, is)
			whys = append(whys, what)
		}
	}
	note(replaced, a.Module == b.Module && a.Type == b.Type, "type")
	note(replaced, a.Lifetime == b.Lifetime && a.Significant == b.Significant, "lifetime")
	note(replaced, a.Crashed == b.Crashed, "crashed-message")
	note(replaced, a.supervision == b.supervision, "supervision")
	note(replaced, a.resend == b.resend, "resend")
	note(replaced, a.mailbox == b.mailbox, "mailbox")
	note(replaced, a.Dispatcher == b.Dispatcher, "dispatcher")
	note(replaced, a.routing == b.routing, "router")
	note(replaced, a.keyed == b.keyed, "keyed")
	note(replaced, a.Durable == b.Durable && a.Events == b.Events, durableKey)
	k, l := a.Limits, b.Limits
	note(replaced, k.Mailbox == l.Mailbox && k.MailboxBytes == l.MailboxBytes, "limits.mailbox")
	note(replaced, k.Held == l.Held, "limits.held")
	note(replaced, k.Tree == l.Tree, "limits.tree")
	k.Mailbox, k.MailboxBytes, k.Held, k.Tree = l.Mailbox, l.MailboxBytes, l.Held, l.Tree
	note(restarts, k == l, "limits")
	note(restarts, reflect.DeepEqual(a.Args, b.Args), "args")
	note(restarts, sameCapabilities(a.Capabilities, b.Capabilities) && sameGrants(a.Grants, b.Grants), "capabilities")
	for i := range a.Children {
		c := &a.Children[i]
		d := find(b.Children, c.Name)
		if d == nil {
			note(restarts, false, "children")
			continue
		}
		if is, why := compare(c, d); is != unchanged {
			note(is, false, fmt.Sprintf("children.%s (%s)", c.Name, why))
		}
	}
	for i := range b.Children {
		if find(a.Children, b.Children[i].Name) == nil {
			note(restarts, false, "children")
		}
	}
	if f == restarts && (a.Resend != nil || a.Routing != nil || a.Keyed != nil) {
		f = replaced // a restart would not reach the resender's child, the routees, or the keys' actors
	}
	return f, strings.Join(slices.Compact(whys), ", ")
}

func sameCapabilities(a, b host.Capabilities) bool {
	return slices.Equal(a.Send, b.Send) && slices.Equal(a.Spawn, b.Spawn) && slices.Equal(a.Stop, b.Stop)
}

// canonical is a text that is the same for nodes that differ only in style and in the order
// of their keys. It serves to compare parts that become functions.
func canonical(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	parts := []string{n.ShortTag(), strconv.Quote(n.Value)}
	var inner []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			inner = append(inner, canonical(n.Content[i])+canonical(n.Content[i+1]))
		}
		slices.Sort(inner)
	case yaml.SequenceNode:
		for _, x := range n.Content {
			inner = append(inner, canonical(x))
		}
	}
	return "(" + strings.Join(append(parts, inner...), " ") + ")"
}

// oneLined is a value as a manifest may write it, in one line.
func oneLined(n *yaml.Node) string {
	var inner []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			inner = append(inner, oneLined(n.Content[i])+": "+oneLined(n.Content[i+1]))
		}
		return "{" + strings.Join(inner, ", ") + "}"
	case yaml.SequenceNode:
		for _, x := range n.Content {
			inner = append(inner, oneLined(x))
		}
		return "[" + strings.Join(inner, ", ") + "]"
	}
	if n.ShortTag() == "!!str" && strings.ContainsAny(n.Value, ",[]{}:#\"'\n ") {
		return strconv.Quote(n.Value)
	}
	return n.Value
}

// sameModule reports whether two entries make the same image of the same code.
func sameModule(a, b Module) bool {
	for _, m := range []*Module{&a, &b} {
		m.line, m.column, m.set, m.Upgrade = 0, 0, shared{}, nil
	}
	return reflect.DeepEqual(a.pinned(), b.pinned())
}
