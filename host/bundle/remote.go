package bundle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/supervision"
)

// Accept says what actors of other nodes may start here, see remote.Accept.
type Accept struct {
	Types      []string // module/type
	Fetch      []string // those of Types whose code may come from other nodes
	From       []string // roles; empty: any node
	Max, Total int
	Memory     int64
	Send       []string
	Limits     host.Limits // the manifest's, for each child
}

const acceptedRule = `^([A-Za-z0-9_.~-]{1,64}/)?([A-Za-z0-9_.~/-]{1,193}|\*)$`

var acceptShape = object("what actors of other nodes may start here; default: nothing",
	required("types", list("types that they may start: module/type, or type alone if there is one module; the type may be *", pattern(none, "a type", "a type such as module/type, or module/*", acceptedRule))),
	optional("fetch", list("those of types whose code may come from the parent's node, if no module here has it: it gets the limits of the module that is named, and none of its files and variables; default: none", pattern(service.ReachCode, "a type", "a type such as module/type, or module/*", acceptedRule))),
	optional("from", list("roles of which the other node must have one; default: any node", pattern(none, "a role", nameWhat, nameRule))),
	optional("max", count("children that one node has here at a time; default: 100", 100_000)),
	optional("total", count("children that all nodes have here at a time; default: 1000", 1_000_000)),
	optional("memory", sizeIn("bytes that the host holds for the children of one node and all below them; default: 256MiB", leastSystem, 1<<50)),
	optional("send", list("paths here that children may send to by path, if their parents may, too; default: none", pattern(none, "a path", pathWhat, pathRule))),
)

var placeShape = object("on which node of the cluster the child runs",
	optional("role", pattern(none, "a role that the node has; default: any", nameWhat, nameRule)),
	optional("node", pattern(none, "the name of the node; default: any", nameWhat, nameRule)),
)

// accept reads cluster.accept.
func (c *checker) accept(m *Manifest, v view, base limits) *Accept {
	a := &Accept{
		From: v.texts("from"), Max: int(v.count("max", remote.DefaultMax)), Total: int(v.count("total", remote.DefaultTotal)),
		Memory: int64(v.size("memory", remote.DefaultMemory)), Send: v.texts("send"), Limits: base.Limits,
	}
	for _, x := range v.items("types") {
		module, typ := c.actorType(m, x.n)
		a.Types = append(a.Types, module+"/"+typ)
		m.accepted = append(m.accepted, acceptedType{module, typ, x.n.Line, x.n.Column, false})
	}
	for _, x := range v.items("fetch") {
		module, typ := c.actorType(m, x.n)
		if a.Fetch = append(a.Fetch, module+"/"+typ); !slices.Contains(a.Types, module+"/"+typ) {
			c.At(x.n, "cluster.accept.fetch: %s/%s is not in cluster.accept.types", module, typ)
		}
		for i := range m.accepted {
			m.accepted[i].fetched = m.accepted[i].fetched || m.accepted[i].module == module && m.accepted[i].typ == typ
		}
	}
	if !v.given() {
		return nil
	}
	if len(a.Types) == 0 {
		c.At(v.get("types").n, "cluster.accept.types must name one type at least")
	}
	if len(a.From) > maxRoles {
		c.At(v.get("from").n, "cluster.accept.from has %d roles, at most %d", len(a.From), maxRoles)
	}
	if a.Max > a.Total {
		c.At(v.get("max").n, "cluster.accept.max is %d, more than cluster.accept.total, which is %d", a.Max, a.Total)
	}
	return a
}

// acceptedType is an entry of cluster.accept.types, and its place.
type acceptedType struct {
	module, typ  string
	line, column int
	fetched      bool // code that has it may come from elsewhere
}

// spawnRights reports entries of capabilities.spawn that name no role, and a strategy that no child on another node can be under.
func (c *checker) spawnRights(caps, strategy view) {
	if strategy.given() {
		_, err := c.peekSupervision(strategy).Plain()
		for _, x := range caps.items("spawn") {
			if err != nil && strings.Contains(x.n.Value, "@") {
				c.At(strategy.n, "supervision: a child on another node (capabilities.spawn: %s) is supervised there, without its parent: %v", x.n.Value, err)
				break
			}
		}
	}
	for _, x := range caps.items("spawn") {
		typ, role, on := strings.Cut(x.n.Value, "@")
		if on && (typ == "" || role == "" || !nameOrPattern(role)) {
			c.At(x.n, "capabilities.spawn: %q must be TYPE@ROLE, where the role is a name or *", x.n.Value)
		}
	}
}

// peekSupervision reads a strategy whose mistakes are reported where it is read for good.
func (c *checker) peekSupervision(v view) supervision.Strategy {
	found := c.Found
	defer func() { c.Found = found }()
	return c.supervision(v)
}

func nameOrPattern(role string) bool {
	return remote.Place{Role: strings.ReplaceAll(role, "*", "x")}.Check() == nil
}

// errAlone is why children cannot run elsewhere.
var errAlone = errors.New("the child was to run on another node, and this one is in no cluster: start it with --join")

func elsewhere(p remote.Place, props func(host.Spawning) (host.Props, error)) *host.Elsewhere {
	return &host.Elsewhere{May: p.May, Props: props}
}

// spawnOptions reads the options of spawns in the next system.
func (b *Bundle) spawnOptions() func([]byte) (host.SpawnOptions, error) {
	words, node := b.Manifest.words, b.node
	if node == nil {
		return words.SpawnOptions
	}
	return func(options []byte) (host.SpawnOptions, error) {
		o, place, err := words.placed(options)
		if place != nil {
			o.Elsewhere = elsewhere(*place, func(s host.Spawning) (host.Props, error) {
				p, err := b.codes.child(node, *place, s.Module, remote.Child{
					Type: s.Type, Args: s.Args, Options: s.Options, Parent: s.Parent,
					Limits: s.Limits, Capabilities: s.Capabilities, Supervision: s.Supervision,
				})
				return p.WithSignificant(o.Significant), err
			})
		}
		return o, err
	}
}

// child makes the props of a child that runs elsewhere, of a module's code as it is now.
func (c *codes) child(node remote.Node, place remote.Place, m *host.Module, of remote.Child) (host.Props, error) {
	module, hash, read, ok := c.of(m.Image())
	digest, err := hex.DecodeString(hash)
	if err != nil || !ok {
		return host.Props{}, errors.New("the module of the child is just being replaced: try again")
	}
	if !slices.Contains(m.Image().Description().Types, of.Type) {
		return host.Props{}, fmt.Errorf("the module %s has no type %.80q", module, of.Type)
	}
	of.Digest, of.Code, of.Module = digest, read, module
	return remote.Props(node, place, of)
}

// onNode makes the routees of a pool that run on several nodes.
func (b *Bundle) onNode(a *Actor, l host.Limits) func(parent host.Ref, node string) (host.Props, error) {
	node, module := b.node, b.modules[a.Module]
	args, err := []byte(nil), error(nil)
	if a.Args != nil {
		args, err = host.Encode(a.Args)
	}
	return func(parent host.Ref, name string) (host.Props, error) {
		if err != nil {
			return host.Props{}, err
		}
		return b.codes.child(node, remote.Place{Node: name}, module, remote.Child{
			Type: a.Type, Args: args, Parent: parent, Limits: l, Capabilities: a.Capabilities, Supervision: a.Supervision,
		})
	}
}

// startDoor lets actors of other nodes start children, if the manifest says so.
func (b *Bundle) startDoor(sys *host.System) error {
	if b.node == nil || b.Manifest.Cluster == nil || b.Manifest.Cluster.Accept == nil {
		return nil
	}
	a, words := b.Manifest.Cluster.Accept, b.Manifest.words
	f := finder{&b.codes, &b.fetched, a.Types, a.Fetch, maps.Clone(b.modules)}
	var code remote.Code
	if len(a.Fetch) > 0 {
		code = &fetcher{b, a.Fetch}
		b.fetched.take()
	}
	var refused func(uint16, string)
	if n, ok := b.node.(interface{ Refuse(uint16, string) }); ok {
		refused = n.Refuse
	}
	_, err := sys.SpawnService(remote.Door, remote.Accept{
		Node: b.node, Code: code, Refused: refused, From: a.From, Max: a.Max, Total: a.Total, Memory: a.Memory, Send: a.Send, Limits: a.Limits, Count: &b.remote,
		Find: f.find,
		Options: func(options []byte) (host.SpawnOptions, error) {
			o, _, err := words.placed(options)
			return o, err
		},
	}.Props())
	return err
}

// Remote counts the children of other nodes here.
func (b *Bundle) Remote() *remote.Count { return &b.remote }

// finder finds the code of children.
type finder struct {
	codes   *codes
	fetched *fetchedCodes
	types   []string // cluster.accept.types
	fetch   []string // cluster.accept.fetch
	modules map[string]*host.Module
}

// find finds a module that has exactly the code that the parent runs, of several one that accepts the type. Then code that was fetched counts.
func (f finder) find(digest []byte, module, typ string) (host.Props, []string, error) {
	why := fmt.Errorf("%w: %w, which is %x: all nodes need the same build, or cluster.accept.fetch", host.ErrDenied, remote.ErrLacks, digest)
	for _, name := range slices.Sorted(maps.Keys(f.modules)) {
		own := f.modules[name]
		image := own.Image()
		_, hash, _, ok := f.codes.of(image)
		sum, err := hex.DecodeString(hash)
		if !ok || err != nil || !bytes.Equal(sum, digest) {
			continue
		}
		spawn, accepted := ofModule(f.types, name, typ)
		switch {
		case !accepted:
			why = fmt.Errorf("%w: cluster.accept.types has not %s/%.80s", host.ErrDenied, name, typ)
			continue
		case !slices.Contains(image.Description().Types, typ):
			return host.Props{}, nil, fmt.Errorf("%w: the module %s has no type %.80q", host.ErrBadProps, name, typ)
		}
		return host.GuestOf(own, typ), spawn, nil
	}
	if x := f.fetched.of(f.codes, digest, module, typ, f.fetch); x != nil {
		if !slices.Contains(x.module.Image().Description().Types, typ) {
			return host.Props{}, nil, fmt.Errorf("%w: the code has no type %.80q", host.ErrBadProps, typ)
		}
		spawn, _ := ofModule(f.fetch, x.as, typ) // the same code
		return host.GuestOf(x.module, typ), spawn, nil
	}
	return host.Props{}, nil, why
}

// ofModule are the types of a list that are of a module, and whether one is among them.
func ofModule(list []string, name, typ string) (types []string, ok bool) {
	for _, x := range list {
		if own, t, _ := strings.Cut(x, "/"); own == name {
			types = append(types, t)
			ok = ok || glob.Match(t, typ)
		}
	}
	return types, ok
}
