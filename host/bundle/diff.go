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

// What of a manifest can change while its actors run, and what cannot. The answer depends
// on nothing but the two manifests.

// fate is what becomes of a top-level actor.
type fate uint8

const (
	goesOn  fate = iota
	renewed      // restarts in its place: ref and mailbox stay
	anew         // stops, and another one starts under its name
	added
	removed
)

// turn is the fate of a top-level actor, and why.
type turn struct {
	name string
	fate fate
	why  string
}

// plan is what leads from one manifest to another.
type plan struct {
	whole []string // why the bundle as a whole must start again; empty: it need not
	turns []turn   // in the order of the old manifest, then of the new one
}

// planOf compares two manifests. The code of modules is not its concern.
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
		{"system", old.Memory == now.Memory && old.MostActors == now.MostActors},
	} {
		if !c.same {
			p.whole = append(p.whole, c.what+" has changed, which is the whole bundle's")
		}
	}
	for i := range old.Actors {
		a := &old.Actors[i]
		b := find(now.Actors, a.Name)
		if b == nil {
			p.turns = append(p.turns, turn{a.Name, removed, "the manifest has it no more"})
			continue
		}
		if f, why := compare(a, b); f != goesOn {
			p.turns = append(p.turns, turn{a.Name, f, why})
		}
	}
	for i := range now.Actors {
		if b := &now.Actors[i]; find(old.Actors, b.Name) == nil {
			p.turns = append(p.turns, turn{b.Name, added, "it is new in the manifest"})
		}
	}
	if why := orderOf(old, now, p.turns); why != "" {
		p.whole = append(p.whole, why)
	}
	return p
}

// orderOf says why the order of the top-level actors matters: their supervisor ends and
// begins them by it, and who starts now is the last one.
func orderOf(old, now *Manifest, turns []turn) string {
	if old.Supervision.Kind() != supervision.RestForOne {
		return ""
	}
	fresh := func(name string) bool {
		return slices.ContainsFunc(turns, func(t turn) bool { return t.name == name && t.fate >= anew })
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
			return "the order of the actors has changed, which rest-for-one goes by"
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

// compare says what becomes of an actor whose entry in the manifest was a and is b.
func compare(a, b *Actor) (fate, string) {
	f, whys := goesOn, []string(nil)
	note := func(is fate, same bool, what string) {
		if !same {
			f = max(f, is)
			whys = append(whys, what)
		}
	}
	note(anew, a.Module == b.Module && a.Type == b.Type, "type")
	note(anew, a.Lifetime == b.Lifetime && a.Significant == b.Significant, "lifetime")
	note(anew, a.Crashed == b.Crashed, "crashed-message")
	note(anew, a.supervision == b.supervision, "supervision")
	note(anew, a.resend == b.resend, "resend")
	k, l := a.Limits, b.Limits
	note(anew, k.Mailbox == l.Mailbox && k.MailboxBytes == l.MailboxBytes, "limits.mailbox")
	note(anew, k.Held == l.Held, "limits.held")
	note(anew, k.Tree == l.Tree, "limits.tree")
	k.Mailbox, k.MailboxBytes, k.Held, k.Tree = l.Mailbox, l.MailboxBytes, l.Held, l.Tree
	note(renewed, k == l, "limits")
	note(renewed, reflect.DeepEqual(a.Args, b.Args), "args")
	note(renewed, sameCapabilities(a.Capabilities, b.Capabilities), "capabilities")
	for i := range a.Children {
		c := &a.Children[i]
		d := find(b.Children, c.Name)
		if d == nil {
			note(renewed, false, "children")
			continue
		}
		if is, why := compare(c, d); is != goesOn {
			note(is, false, fmt.Sprintf("children.%s (%s)", c.Name, why))
		}
	}
	for i := range b.Children {
		if find(a.Children, b.Children[i].Name) == nil {
			note(renewed, false, "children")
		}
	}
	if f == renewed && a.Resend != nil {
		f = anew // it is the resender's child that would have to know
	}
	return f, strings.Join(slices.Compact(whys), ", ")
}

func sameCapabilities(a, b host.Capabilities) bool {
	return slices.Equal(a.Send, b.Send) && slices.Equal(a.Spawn, b.Spawn) && slices.Equal(a.Stop, b.Stop)
}

// canonical is what a node says, whatever its style and the order of its keys: for what
// becomes functions, which cannot be compared.
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

// sameModule reports whether two entries make the same image of the same code.
func sameModule(a, b Module) bool {
	for _, m := range []*Module{&a, &b} {
		m.line, m.column, m.set = 0, 0, shared{}
	}
	return reflect.DeepEqual(a.pinned(), b.pinned())
}
