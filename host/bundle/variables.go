package bundle

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Variables give the values of ${NAME} in a manifest. A manifest sees only variables that are
// passed to it explicitly, and not the environment of the user, who may not trust it.
type Variables func(name string) (value string, ok bool)

// maxGrown bounds what the values of variables may add to a manifest, in bytes.
const maxGrown = 1 << 20

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces ${NAME} and ${NAME:-default} in the values of a manifest. The value of a
// variable becomes a text or a number and never a structure. $${ stands for ${.
func (c *checker) expand(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		c.expandValue(n)
		return
	}
	for i, x := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			c.expand(x)
		}
	}
}

func (c *checker) expandValue(n *yaml.Node) {
	if !strings.Contains(n.Value, "${") {
		return
	}
	before := len(n.Value)
	n.Value = variable.ReplaceAllStringFunc(n.Value, func(text string) string {
		if strings.HasPrefix(text, "$$") {
			return text[1:]
		}
		name, def, hasDefault := strings.Cut(text[2:len(text)-1], ":-")
		if !variableName.MatchString(name) {
			c.At(n, "%s: %q is not a variable's name; write $%s for the literal text", text, name, text)
			return ""
		}
		if c.vars != nil {
			if v, ok := c.vars(name); ok && (v != "" || !hasDefault) && c.grown+len(v) <= maxGrown {
				c.grown += len(v)
				return v
			} else if ok && len(v) > 0 && c.grown+len(v) > maxGrown {
				c.At(n, "the variables are longer than %d bytes together", maxGrown)
				return ""
			}
		}
		if !hasDefault {
			c.At(n, "the variable %s is not given: pass --env %s or --env %s=value, or write ${%s:-default}", name, name, name, name)
		}
		return def
	})
	c.grown += max(len(n.Value)-before, 0)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0 {
		n.Tag = "" // so that a number is read as one
		n.Tag = n.ShortTag()
	}
}
