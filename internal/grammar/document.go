package grammar

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file: how deeply it is nested, and how many values it has.
const (
	maxDepth = 64
	maxNodes = 200_000
)

// Document reads a file, which is one document without anchors, aliases, and keys that come twice. what is how errors call it, such as
// "the manifest". check is called with its value, if that can be checked. It returns the value; nil if there is none.
func (c *Checker) Document(data []byte, what string, check func(root *yaml.Node)) *yaml.Node {
	c.whole = what
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		c.Found = append(c.Found, Diagnostic{c.File, 1, 1, what + " is empty"})
		return nil
	case err != nil:
		c.Found = append(c.Found, syntaxError(c.File, data, err))
		return nil
	}
	root := doc.Content[0]
	if c.Structure(root) {
		check(root)
	}
	if err := d.Decode(&second); err == nil {
		c.At(&second, "a second document begins here: %s is one", what)
	} else if !errors.Is(err, io.EOF) {
		c.Found = append(c.Found, syntaxError(c.File, data, err))
	}
	return root
}

// Structure reports aliases, merge keys, deep nesting and keys that come twice; false: the value cannot be checked.
func (c *Checker) Structure(n *yaml.Node) bool { return c.structure(n, 0) }

func (c *Checker) structure(n *yaml.Node, depth int) bool {
	c.nodes++
	switch {
	case c.nodes > maxNodes:
		if c.nodes == maxNodes+1 {
			c.At(n, "too large: more than %d values", maxNodes)
		}
		return false
	case depth > maxDepth:
		c.At(n, "nested too deeply")
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.At(n, "anchors and aliases are not supported; write the value out")
		return false
	}
	ok := true
	if n.Kind == yaml.MappingNode {
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode {
				c.At(k, "a key must be a text")
				ok = false
				continue
			}
			if k.ShortTag() != "!!str" {
				c.At(k, "the key %s is %s and no text: quote it", k.Value, TagName(k))
			}
			if line, twice := seen[k.Value]; twice {
				c.At(k, "the key %q comes twice, first in line %d", k.Value, line)
			}
			seen[k.Value] = k.Line
		}
	}
	for _, child := range n.Content {
		ok = c.structure(child, depth+1) && ok
	}
	return ok
}
