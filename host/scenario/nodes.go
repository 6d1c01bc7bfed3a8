package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/cluster/simnet"
	"github.com/wasmactors/wasmactors/internal/grammar"
)

// Scenarios over several nodes: what their files say.

// MaxNodes is how many nodes a scenario has at most.
const MaxNodes = 16

// nodeOf is a node that a file names.
type nodeOf struct {
	name  string
	roles []string // nil: those of the manifest
}

// nodeNames are those of nodes that have none.
const nodeNames = "abcdefghijklmnop"

const directory = simnet.Directory

var nodeShape = object("a node",
	may("name", text("its name; default: a, b and so on, by its place in the list")),
	may("roles", list("its roles; default: those of the manifest", text("a role"))),
)

var nodesShape = &shape{
	Kind: grammar.OwnKind, Doc: "runs the bundle on so many nodes of a cluster, which are called a, b and so on, or on those of a list", Of: nodeShape, Min: 1, Max: MaxNodes,
	Own: &grammar.Own{Name: "a number or a list", Check: checked((*checker).checkNodes), Schema: schemaOfNodes},
}

var partShape = own("parts nodes: what stands on different sides of | does not reach each other (a, b | c); what is left of -> does not reach what is right of it, but is reached (a -> b)",
	&grammar.Own{Name: "a text such as a, b | c", Check: checked((*checker).checkPart), Schema: schemaOfPart})

// on is the node that a step is about.
var on = may("on", text("the node; default: the one that has the actor, else the first one that runs. Of what is expected: any"))

// onNode are steps that may name a node.
var onNode = []string{"send", "ask", "expect", "expect-none", "crash", "stop", "restart", "pause", "unpause", "expect-restart", "expect-stopped", "expect-event", "expect-state", "drop", "delay", "duplicate", "reorder", "http", "websocket"}

// nodeVerbs are steps about nodes. Pause has another meaning, too.
var nodeVerbs = []verb{
	{"kill", text("ends a node at once, as a loss of power does"), nil, false},
	{"start", text("starts a node that has ended, as a new life"), nil, false},
	{"leave", text("has a node hand over what it has, and leave the cluster"), []field{within}, false},
	{"pause", text("a node stands still, as a machine that sleeps"), []field{must("for", span("for so long, in virtual time"))}, false},
	{"part", partShape, nil, false},
	{"heal", text("ends what parts nodes", "all"), nil, false},
}

// withNodes are verbs of a scenario whether it has nodes or not.
func withNodes(plain []verb) []verb {
	for i := range plain {
		if v := &plain[i]; slices.Contains(onNode, v.name) && v.of.Kind != grammar.List {
			v.keys = append(slices.Clone(v.keys), on)
		}
	}
	return append(plain, nodeVerbs...)
}

// node reports whether a step with the verb is about nodes.
func (v *verb) node() bool {
	return slices.ContainsFunc(nodeVerbs, func(x verb) bool { return x.of == v.of })
}

// checkNodes checks the value of nodes.
func (c *checker) checkNodes(n *yaml.Node, s *shape, _ string) {
	var count int64
	switch {
	case n.Kind == yaml.SequenceNode:
		for _, x := range n.Content {
			c.Object(x, s.Of, "a node")
		}
		count = int64(len(n.Content))
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&count) != nil:
		c.At(n, "nodes must be a number such as 3, or a list such as [{name: a, roles: [front]}, {name: b}], not %s", grammar.NameOf(n))
		return
	}
	if count < int64(s.Min) || count > int64(s.Max) {
		c.At(n, "nodes must be from %v to %v, not %d", s.Min, s.Max, count)
	}
}

func schemaOfNodes(s *shape, to map[string]any, o grammar.SchemaOptions) {
	to["oneOf"] = []any{
		map[string]any{"type": "integer", "minimum": s.Min, "maximum": s.Max},
		map[string]any{"type": "array", "items": o.Schema(s.Of), "minItems": s.Min, "maxItems": s.Max},
	}
}

func schemaOfPart(_ *shape, to map[string]any, _ grammar.SchemaOptions) {
	to["type"], to["items"] = []string{"string", "array"}, map[string]any{"type": "string"}
}

// nodesOf reads checked nodes.
func (c *checker) nodesOf(n *yaml.Node) (all []nodeOf) {
	if n.Kind == yaml.ScalarNode {
		var count int
		_ = n.Decode(&count)
		for i := range min(max(count, 0), MaxNodes) {
			all = append(all, nodeOf{name: nodeNames[i : i+1]})
		}
		return all
	}
	for i, x := range n.Content[:min(len(n.Content), MaxNodes)] {
		one := nodeOf{name: nodeNames[i : i+1]}
		if name := grammar.At(x, "name"); name != nil {
			one.name = name.Value
			if strings.Trim(one.name, simnet.NameLetters) != "" || one.name == directory {
				c.At(name, "the node's name %q must have letters, digits, _ and -, and is not %q", one.name, directory)
			}
		}
		if slices.ContainsFunc(all, func(o nodeOf) bool { return o.name == one.name }) {
			c.At(x, "the node %q comes twice", one.name)
		}
		if roles := grammar.At(x, "roles"); roles != nil {
			one.roles = []string{}
			for _, r := range roles.Content {
				if strings.Trim(r.Value, simnet.NameLetters) != "" {
					c.At(r, "the role %q must have letters, digits, _ and -", r.Value)
				}
				one.roles = append(one.roles, r.Value)
			}
			slices.Sort(one.roles)
			one.roles = slices.Compact(one.roles)
		}
		all = append(all, one)
	}
	return all
}

// partition says who does not reach whom.
type partition struct {
	simnet.Part
	number uint64 // of a simulation, which ends it by itself
}

// textOf is the text of part, which may be written as a list.
func textOf(n *yaml.Node) string {
	if n.Kind != yaml.SequenceNode {
		return n.Value
	}
	var parts []string
	for _, x := range n.Content {
		parts = append(parts, x.Value)
	}
	return strings.Join(parts, ", ")
}

func parsePart(text string) (p partition, err error) {
	p.Part, err = simnet.ParsePart(text)
	return p, err
}

// checkPart checks the value of part.
func (c *checker) checkPart(n *yaml.Node, s *shape, _ string) {
	if n.Kind != yaml.SequenceNode && n.Kind != yaml.ScalarNode || n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" {
		c.Mismatch(n, s, "part")
		return
	}
	if _, err := parsePart(textOf(n)); err != nil {
		c.At(n, "part: %v", err)
	}
}

// lives follows which nodes run while steps are carried out, to report steps that cannot be.
type lives struct {
	*checker
	nodes []nodeOf
	ended map[string]string // how
}

// nodeSteps checks steps that name nodes.
func (c *checker) nodeSteps(s *Scenario) {
	x := lives{c, s.nodes, map[string]string{}}
	for i := range s.steps {
		if st := &s.steps[i]; st.verb != nil {
			x.step(st)
		}
	}
}

func (x *lives) step(s *step) {
	n := grammar.At(s.n, s.verb.name)
	if o := grammar.At(s.n, "on"); o != nil && x.known(o) && !s.verb.looksBack() {
		x.runs(o, s.verb.name)
	}
	if !s.verb.node() {
		return
	}
	switch {
	case len(x.nodes) == 0:
		x.At(s.n, "%s is for nodes, and the scenario has none: nodes: 3", s.verb.name)
	case s.verb.name == "heal":
	case s.verb.name == "part":
		p, err := parsePart(textOf(n))
		if err != nil {
			return // it was reported
		}
		for _, name := range slices.Concat(p.Sides...) {
			if name != directory {
				x.known(&yaml.Node{Value: name, Line: n.Line, Column: n.Column})
			}
		}
	case !x.known(n):
	case s.verb.name == "start":
		if x.ended[n.Value] == "" {
			x.At(n, "start: the node %s runs already", n.Value)
		}
		delete(x.ended, n.Value)
	case !x.runs(n, s.verb.name):
	case s.verb.name == "kill" || s.verb.name == "leave":
		x.ended[n.Value] = fmt.Sprintf("%s in line %d", map[string]string{"kill": "was killed", "leave": "has left"}[s.verb.name], s.n.Line)
	}
	if len(x.nodes) > 0 && len(x.ended) == len(x.nodes) {
		x.At(s.n, "%s: no node is left to go on with", s.verb.name)
		x.ended = map[string]string{}
	}
}

// known reports a name that no node has.
func (x *lives) known(n *yaml.Node) bool {
	var names []string
	for _, o := range x.nodes {
		names = append(names, o.name)
	}
	switch {
	case len(names) == 0:
		x.At(n, "%q is no node: the scenario has none (nodes: 3)", n.Value)
	case !slices.Contains(names, n.Value):
		x.At(n, "there is no node %q: there are %s%s", n.Value, strings.Join(names, ", "), grammar.Suggest(n.Value, names))
	}
	return slices.Contains(names, n.Value)
}

// runs reports a node that has ended.
func (x *lives) runs(n *yaml.Node, what string) bool {
	how := x.ended[n.Value]
	if how != "" {
		x.At(n, "%s: the node %s %s, and was not started again", what, n.Value, how)
	}
	return how == ""
}

// looksBack reports whether a step is about what has happened, also on nodes that have ended.
func (v *verb) looksBack() bool {
	switch v.name {
	case "expect", "expect-none", "expect-restart", "expect-stopped", "expect-event":
		return true
	}
	return false
}
