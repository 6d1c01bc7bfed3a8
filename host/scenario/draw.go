package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Values of messages that the seed chooses.

// draw checks a value with a tag of drawTags.
func (c *checker) draw(n *yaml.Node, tag string) {
	switch tag {
	case "!pick":
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			c.At(n, "!pick is for a list of values, one of which is taken")
			return
		}
		for _, x := range n.Content {
			c.value(x, false)
		}
	case "!between":
		if _, _, err := between(n.Value); err != nil || n.Kind != yaml.ScalarNode {
			c.At(n, "!between is for two whole numbers, such as 1..500")
		}
	case "!serial":
		if n.Value != "" || n.Kind != yaml.ScalarNode {
			c.At(n, "!serial stands alone: it is the number of the message")
		}
	}
}

// between reads A..B.
func between(text string) (low, high int64, err error) {
	a, b, ok := strings.Cut(text, "..")
	if low, err = strconv.ParseInt(a, 10, 64); err != nil {
		return
	}
	if high, err = strconv.ParseInt(b, 10, 64); err != nil {
		return
	}
	if !ok || high < low || uint64(high-low) >= 1<<62 {
		err = fmt.Errorf("%q is no range", text)
	}
	return
}

// drawsAny reports whether a value has a tag of drawTags.
func drawsAny(n *yaml.Node) bool {
	return slices.Contains(drawTags, n.ShortTag()) || slices.ContainsFunc(n.Content, drawsAny)
}

// drawn is a value with what the seed chooses for the message with a number.
func (w *world) drawn(n *yaml.Node, number uint64) *yaml.Node {
	if !drawsAny(n) {
		return n
	}
	place := uint64(0)
	return w.draw(n, number, &place)
}

// draw is drawn for a part; place counts the choices within the message.
func (w *world) draw(n *yaml.Node, number uint64, place *uint64) *yaml.Node {
	choose := func(of uint64) uint64 {
		*place++
		return draw(w.scenario.seed, number, *place) % of
	}
	switch n.ShortTag() {
	case "!pick":
		return w.draw(n.Content[choose(uint64(len(n.Content)))], number, place)
	case "!between":
		low, high, _ := between(n.Value)
		return plainNumber(n, low+int64(choose(uint64(high-low)+1)))
	case "!serial":
		return plainNumber(n, int64(number))
	}
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, x := range n.Content {
		c.Content[i] = w.draw(x, number, place)
	}
	return &c
}

func plainNumber(n *yaml.Node, v int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10), Line: n.Line, Column: n.Column}
}

// draw is a number that looks random: SplitMix64 of the three.
func draw(seed, number, place uint64) uint64 {
	h := seed*0x9e3779b97f4a7c15 ^ number*0xc2b2ae3d27d4eb4f ^ place*0x165667b19e3779f9
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
