package cddl

import (
	"fmt"
	"strings"
)

// Mismatch is one thing that is sent and not accepted.
type Mismatch struct {
	Sent, Accepted Pos
	What           string // what is wrong
	Do             string // and what to do about it
}

// maxMismatches bounds what one comparison reports.
const maxMismatches = 20

// Compare lists what a rule describes that another does not accept; nothing if all of it fits. Keys that one end has
// and the other does not know are fine if that end may leave them out, and if this one lets others be.
func Compare(from *File, sent string, to *File, accepted string) []Mismatch {
	c := &comparison{from: from, to: to, assumed: map[[2]string]bool{}}
	s, a := from.rules[sent], to.rules[accepted]
	if s == nil || a == nil {
		return nil
	}
	c.fits(&node{at: s.at, kind: kindRule, name: sent}, &node{at: a.at, kind: kindRule, name: accepted}, base(accepted), true)
	return c.found
}

type comparison struct {
	from, to *File
	assumed  map[[2]string]bool // pairs of rules that are compared already
	found    []Mismatch
	steps    int
}

// maxSteps bounds the work of one comparison: choices within choices multiply.
const maxSteps = 1_000_000

// maxWhere bounds what says of which key, in bytes.
const maxWhere = 1000

const oneType = "give it one type on both ends, or make a new version of the message, with an adapter"

// fits compares; where says of which key. It only reports if it is to tell.
func (c *comparison) fits(s, a *node, where string, tell bool) bool {
	if len(where) > maxWhere { // each level holds its own
		where = "..." + strings.ToValidUTF8(where[len(where)-maxWhere/2:], "")
	}
	if c.steps++; c.steps > maxSteps {
		if c.steps == maxSteps+1 {
			c.found = append(c.found, Mismatch{s.at, a.at, where + " cannot be compared: the rules are too involved", "write fewer choices within choices"})
		}
		return false
	}
	if s.kind == kindRule && a.kind == kindRule {
		pair := [2]string{s.name, a.name}
		if c.assumed[pair] {
			return true
		}
		c.assumed[pair] = true
		ok := c.fits(c.from.rules[s.name].is, c.to.rules[a.name].is, where, tell)
		if !ok && !tell {
			delete(c.assumed, pair) // it may be asked again
		}
		return ok
	}
	switch {
	case s.kind == kindRule:
		return c.fits(c.from.rules[s.name].is, a, where, tell)
	case a.kind == kindAny:
		return true
	case s.kind == kindChoice:
		ok := true
		for _, x := range s.choice {
			ok = c.fits(x, a, where, tell) && ok
		}
		return ok
	case a.kind == kindRule:
		return c.fits(s, c.to.rules[a.name].is, where, tell)
	case a.kind == kindChoice:
		var like *node
		for _, x := range a.choice {
			if c.fits(s, x, where, false) {
				return true
			}
			if y := c.resolve(x); y.kind == s.kind {
				like = x
			}
		}
		if like != nil && tell { // says more than that none fits
			return c.fits(s, like, where, true)
		}
		return c.no(tell, s, a, where, oneType)
	}
	switch {
	case s.kind != a.kind:
		if s.kind == kindKeys && a.kind == kindTable {
			return c.keysInTable(s, a, where, tell)
		}
		if s.kind == kindTable && a.kind == kindKeys && a.open && len(a.fields) == 0 {
			return true
		}
		wider := a.kind == kindNumber && (s.kind == kindInt || s.kind >= kindFloat16 && s.kind <= kindFloat) ||
			a.kind == kindFloat && s.kind >= kindFloat16 && s.kind <= kindFloat64
		return wider || c.no(tell, s, a, where, oneType)
	case s.kind == kindInt:
		return s.low.Cmp(a.low) >= 0 && s.high.Cmp(a.high) <= 0 ||
			c.no(tell, s, a, where, "let the reader have a type as wide as the writer's")
	case s.kind == kindBytes:
		return a.size < 0 || a.size == s.size || c.no(tell, s, a, where, "give it one length on both ends")
	case s.kind == kindArray:
		if s.min < a.min || a.max >= 0 && (s.max < 0 || s.max > a.max) {
			return c.no(tell, s, a, where, "give it one length on both ends")
		}
		return c.fits(s.of, a.of, where+"[]", tell)
	case s.kind == kindTable:
		key := c.fits(s.key, a.key, "a key of "+where, tell)
		return c.fits(s.of, a.of, where+"{}", tell) && key
	case s.kind == kindKeys:
		return c.keys(s, a, where, tell)
	}
	return true
}

func (c *comparison) resolve(n *node) *node {
	for n.kind == kindRule {
		n = c.to.rules[n.name].is
	}
	return n
}

// keys compares two maps of keys.
func (c *comparison) keys(s, a *node, where string, tell bool) bool {
	ok := true
	for i := range a.fields {
		f := &a.fields[i]
		if f.optional {
			continue
		}
		switch g := s.field(f.key); {
		case g == nil:
			ok = c.note(tell, s.at, f.at, fmt.Sprintf("%s.%s is required and not sent", where, f.key),
				"send it, or remove required from the reader's")
		case g.optional:
			ok = c.note(tell, g.at, f.at, fmt.Sprintf("%s.%s is required and sometimes left out", where, f.key),
				"always send it: remove omitempty; or remove required from the reader's")
		}
	}
	for i := range s.fields {
		f := &s.fields[i]
		g := a.field(f.key)
		switch {
		case g != nil:
			ok = c.fits(f.is, g.is, where+"."+f.key, tell) && ok
		case !a.open:
			ok = c.note(tell, f.at, a.at, fmt.Sprintf("%s.%s is sent, and unknown keys are refused", where, f.key),
				"let the reader skip or keep them (//wasmactors:unknown), or give it the key")
		}
	}
	if s.open && !a.open {
		ok = c.note(tell, s.at, a.at, where+" is passed on with unknown keys, and those are refused",
			"let the reader skip or keep them (//wasmactors:unknown), or let the writer not keep them")
	}
	return ok
}

// keysInTable compares a map of keys with one whose keys and values are of one type.
func (c *comparison) keysInTable(s, a *node, where string, tell bool) bool {
	if s.open {
		return c.no(tell, s, a, where, oneType)
	}
	ok := true
	for i := range s.fields {
		f := &s.fields[i]
		key := &node{at: f.at, kind: kindText}
		if f.key[0] != '"' {
			p := &parser{kind: number, token: f.key}
			n := p.integer()
			key = &node{at: f.at, kind: kindInt, low: n, high: n}
		}
		ok = c.fits(key, a.key, "the key "+where+"."+f.key, tell) && ok
		ok = c.fits(f.is, a.of, where+"."+f.key, tell) && ok
	}
	return ok
}

func (n *node) field(key string) *field {
	if i, ok := n.keys[key]; ok {
		return &n.fields[i]
	}
	return nil
}

func (c *comparison) no(tell bool, s, a *node, where, do string) bool {
	return c.note(tell, s.at, a.at, fmt.Sprintf("%s is sent as %s, and accepted as %s", where, s.text(), a.text()), do)
}

// note reports, and is false.
func (c *comparison) note(tell bool, s, a Pos, what, do string) bool {
	if tell && len(c.found) < maxMismatches {
		c.found = append(c.found, Mismatch{s, a, what, do})
	}
	return false
}

// text describes a type for a person.
func (n *node) text() string {
	switch n.kind {
	case kindRule:
		return n.name
	case kindInt:
		if n.low.Cmp(n.high) == 0 {
			return n.low.String()
		}
		return fmt.Sprintf("an integer from %s to %s", n.low, n.high)
	case kindBytes:
		if n.size >= 0 {
			return fmt.Sprintf("%d bytes", n.size)
		}
	case kindArray:
		switch {
		case n.max >= 0 && n.min == n.max:
			return fmt.Sprintf("an array of %d", n.min)
		case n.max >= 0:
			return fmt.Sprintf("an array of %d to %d", n.min, n.max)
		}
	case kindChoice:
		text := ""
		for i, x := range n.choice {
			if i > 0 {
				text += " or "
			}
			text += x.text()
		}
		return text
	}
	return kindTexts[n.kind]
}

// base is a rule's name without what says that it is sent.
func base(name string) string {
	const sent = ".sent"
	if len(name) > len(sent) && name[len(name)-len(sent):] == sent {
		return name[:len(name)-len(sent)]
	}
	return name
}
