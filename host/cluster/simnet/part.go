package simnet

import (
	"fmt"
	"slices"
	"strings"
)

// Directory is what parts call the directory.
const Directory = "directory"

// NameLetters are the characters of nodes' names in parts.
const NameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// Part says which nodes do not reach which.
type Part struct {
	Text   string
	Sides  [][]string
	OneWay bool // the first does not reach the second, but is reached
}

// ParsePart reads a text such as "a, b | c": what stands on different sides does not reach each other; or "a -> b": what is left does not
// reach what is right of it, but is reached.
func ParsePart(text string) (p Part, err error) {
	p.Text = text
	mark := "|"
	if p.OneWay = strings.Contains(text, "->"); p.OneWay {
		mark = "->"
	}
	known := map[string]bool{}
	for _, side := range strings.Split(text, mark) {
		var names []string
		for _, name := range strings.Split(side, ",") {
			name = strings.TrimSpace(name)
			switch {
			case name == "" || strings.Trim(name, NameLetters) != "":
				return p, fmt.Errorf("%q does not say who does not reach whom: write a, b | c, or a -> b", text)
			case known[name]:
				return p, fmt.Errorf("%q names %s twice", text, name)
			case name == Directory && p.OneWay:
				return p, fmt.Errorf("%q: the directory is reached or not: write it with |", text)
			}
			known[name] = true
			names = append(names, name)
		}
		p.Sides = append(p.Sides, names)
	}
	switch {
	case len(p.Sides) < 2:
		return p, fmt.Errorf("%q has one side: write a, b | c, or a -> b", text)
	case p.OneWay && len(p.Sides) > 2:
		return p, fmt.Errorf("%q: only two sides stand around ->", text)
	}
	return p, nil
}

// Apart adds what the part cuts among so many nodes: pairs of which the first does not reach the second, and nodes that do not reach the
// directory. That is where it is said to be, else where more than half of the nodes are: those that are on no side are on every side.
func (p *Part) Apart(nodes int, apart map[[2]string]bool, without map[string]bool) {
	aside, named := nodes, false
	for _, name := range slices.Concat(p.Sides...) {
		if name == Directory {
			named = true
		} else {
			aside--
		}
	}
	for i, side := range p.Sides {
		for _, name := range side {
			for j, other := range p.Sides {
				for _, o := range other {
					if i != j && (!p.OneWay || i < j) {
						apart[[2]string{name, o}] = true
					}
				}
			}
			if !p.OneWay && (named && !slices.Contains(side, Directory) || !named && 2*(len(side)+aside) <= nodes) {
				without[name] = true
			}
		}
	}
}

// Named is a machine of a node.
type Named struct {
	Name    string
	Machine *Machine
}

// CutBy has machines reach each other and the directory but for what parts cut.
func (w *World) CutBy(parts []Part, nodes int, machines []Named) {
	apart, without := map[[2]string]bool{}, map[string]bool{}
	for i := range parts {
		parts[i].Apart(nodes, apart, without)
	}
	for _, x := range machines {
		for _, y := range machines {
			if x.Name != y.Name {
				w.Cut(x.Machine, y.Machine, apart[[2]string{x.Name, y.Name}])
			}
		}
		x.Machine.Detach(without[x.Name])
	}
}
