package scenario

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/glob"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Tags of values, and those that only match has.
var (
	valueTags = []string{"!bytes", "!ref", "!duration", "!size", "!count"}
	drawTags  = []string{"!pick", "!between", "!serial"} // of messages
	matchTags = []string{"!any", "!glob", "!re", "!min", "!max", "!sum", "!type", "!not"}
)

// kinds of values, for !type.
var typeNames = []string{"text", "integer", "number", "boolean", "bytes", "list", "map", "null"}

// value reports values that are not valid, or not valid as a pattern.
func (c *checker) value(n *yaml.Node, pattern bool) {
	switch tag := n.ShortTag(); {
	case !pattern && slices.Contains(drawTags, tag):
		c.draw(n, tag)
		return
	case pattern && slices.Contains(matchTags, tag):
		c.pattern(n, tag)
		return
	case tag == "!not":
		c.At(n, "!not is for match")
		return
	case slices.Contains(matchTags, tag):
		c.At(n, "%s is for match: the value here must be exact", tag)
		return
	case n.Kind != yaml.ScalarNode && tag != "!!map" && tag != "!!seq":
		c.At(n, "the tag %s has no meaning here", tag)
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") && !slices.Contains(valueTags, n.Tag):
		all := valueTags
		if pattern {
			all = slices.Concat(valueTags, matchTags)
		}
		c.At(n, "the tag %s has no meaning here; there are %s", n.Tag, strings.Join(all, ", "))
		return
	}
	if n.Kind != yaml.ScalarNode {
		for i, x := range n.Content {
			if n.Kind == yaml.SequenceNode || i%2 == 1 {
				c.value(x, pattern)
			}
		}
		return
	}
	if _, err := scalarOf(n, func(string) (uint64, error) { return 0, nil }); err != nil {
		c.At(n, "%v", err)
	}
}

// pattern reports an invalid value of a tag of match.
func (c *checker) pattern(n *yaml.Node, tag string) {
	if tag == "!not" {
		bare := *n
		bare.Tag = ""
		if n.Kind == yaml.ScalarNode {
			bare.Tag = bare.ShortTag()
		}
		c.value(&bare, true)
		return
	}
	if n.Kind != yaml.ScalarNode {
		c.At(n, "%s is for a single value, not for %s", tag, grammar.NameOf(n))
		return
	}
	switch tag {
	case "!any":
		if n.Value != "" {
			c.At(n, "!any stands alone")
		}
	case "!re":
		if _, err := regexp.Compile(n.Value); err != nil {
			c.At(n, "!re: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	case "!min", "!max", "!sum":
		if _, ok := new(big.Float).SetString(n.Value); !ok {
			c.At(n, "%s: %q is not a number", tag, n.Value)
		}
	case "!type":
		if !slices.Contains(typeNames, n.Value) {
			c.At(n, "!type: %q is not one of %s%s", n.Value, strings.Join(typeNames, ", "), grammar.Suggest(n.Value, typeNames))
		}
	}
}

// refs finds the number that a name of a probe or an actor stands for.
type refs func(name string) (uint64, error)

// valueOf is the value of a checked node.
func valueOf(n *yaml.Node, find refs) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := valueOf(n.Content[i+1], find)
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, x := range n.Content {
			v, err := valueOf(x, find)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		return l, nil
	}
	return scalarOf(n, find)
}

func scalarOf(n *yaml.Node, find refs) (any, error) {
	switch n.Tag {
	case "!bytes":
		b, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil {
			return nil, fmt.Errorf("!bytes: %q is not base64", printable.Line(n.Value, 60))
		}
		return b, nil
	case "!ref":
		return find(n.Value)
	}
	return grammar.Scalar(n)
}

// differs says how a value differs from that of a node; "" if it does not. With pattern, keys of
// maps that the node does not have are ignored, and the node may have the tags of match.
func differs(n *yaml.Node, got any, pattern bool, find refs, where string) string {
	if pattern && slices.Contains(matchTags, n.ShortTag()) {
		return differsFrom(n, got, find, where)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not a map", where, typeOf(got))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			v, ok := m[key]
			if !ok {
				return fmt.Sprintf("%s lacks the key %q", where, key)
			}
			if d := differs(n.Content[i+1], v, pattern, find, where+"."+key); d != "" {
				return d
			}
		}
		if !pattern && len(m) != len(n.Content)/2 {
			for _, k := range sortedKeys(m) {
				if grammar.At(n, k) == nil {
					return fmt.Sprintf("%s has the key %q, which was not expected; match passes over such keys", where, printable.Line(k, 60))
				}
			}
		}
		return ""
	case yaml.SequenceNode:
		l, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not a list", where, typeOf(got))
		}
		if len(l) != len(n.Content) {
			return fmt.Sprintf("%s has %d elements, not %d", where, len(l), len(n.Content))
		}
		for i, x := range n.Content {
			if d := differs(x, l[i], pattern, find, fmt.Sprintf("%s[%d]", where, i)); d != "" {
				return d
			}
		}
		return ""
	}
	want, err := scalarOf(n, find)
	if err != nil {
		return err.Error()
	}
	if same(want, got) {
		return ""
	}
	return fmt.Sprintf("%s is %s, not %s", where, show(got), show(want))
}

// differsFrom is differs for the tags of match.
func differsFrom(n *yaml.Node, got any, find refs, where string) string {
	t, isText := got.(string)
	switch tag := n.ShortTag(); tag {
	case "!any":
		return ""
	case "!glob":
		if isText && glob.Match(n.Value, t) {
			return ""
		}
	case "!re":
		if isText && regexp.MustCompile(n.Value).MatchString(t) {
			return ""
		}
	case "!min", "!max":
		bound, _ := new(big.Float).SetString(n.Value)
		if x := number(got); x != nil && (tag == "!min" && x.Cmp(bound) >= 0 || tag == "!max" && x.Cmp(bound) <= 0) {
			return ""
		}
	case "!sum":
		bound, _ := new(big.Float).SetString(n.Value)
		if x := sum(got); x != nil && x.Cmp(bound) == 0 {
			return ""
		}
	case "!type":
		if is := typeOf(got); is == n.Value || n.Value == "number" && is == "integer" {
			return ""
		}
	case "!not":
		bare := *n
		bare.Tag = ""
		if n.Kind == yaml.ScalarNode {
			bare.Tag = bare.ShortTag()
		}
		if differs(&bare, got, true, find, where) != "" {
			return ""
		}
	}
	return fmt.Sprintf("%s is %s, which is not %s", where, show(got), source(n))
}

// sum adds up the numbers of a list or a map; nil if it has anything else.
func sum(v any) *big.Float {
	var all []any
	switch v := v.(type) {
	case []any:
		all = v
	case map[string]any:
		for _, k := range sortedKeys(v) {
			all = append(all, v[k])
		}
	default:
		return nil
	}
	total := new(big.Float).SetPrec(256)
	for _, x := range all {
		n := number(x)
		if n == nil {
			return nil
		}
		total.Add(total, n)
	}
	return total
}

// same compares scalars; numbers by their value.
func same(want, got any) bool {
	if a, b := number(want), number(got); a != nil && b != nil {
		return a.Cmp(b) == 0
	}
	return reflect.DeepEqual(want, got)
}

// number is a value as a number; nil if it is none.
func number(v any) *big.Float {
	switch v := v.(type) {
	case int64:
		return new(big.Float).SetInt64(v)
	case uint64:
		return new(big.Float).SetUint64(v)
	case float64:
		if v == v {
			return new(big.Float).SetFloat64(v)
		}
	}
	return nil
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "boolean"
	case []byte:
		return "bytes"
	case int64, uint64:
		return "integer"
	case float64:
		return "number"
	case []any:
		return "list"
	}
	return "map"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// mostShown bounds how much of a value is shown, in bytes.
const mostShown = 1024

// show is a value in the notation of a person, in one line.
func show(v any) string {
	var b strings.Builder
	write(&b, v)
	return printable.Line(b.String(), mostShown)
}

func write(b *strings.Builder, v any) {
	if b.Len() > mostShown {
		return
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case string:
		b.WriteString(strconv.Quote(printable.Clip(v, mostShown+1)))
	case []byte:
		fmt.Fprintf(b, "!bytes %s", base64.StdEncoding.EncodeToString(v[:min(len(v), mostShown)]))
	case []any:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, x)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range sortedKeys(v) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(b, "%s: ", k)
			write(b, v[k])
		}
		b.WriteByte('}')
	default:
		fmt.Fprint(b, v)
	}
}

// source is the source of a node, in one line.
func source(n *yaml.Node) string {
	flow := flowing(n)
	out, err := yaml.Marshal(flow)
	if err != nil {
		return n.Value
	}
	return printable.Line(strings.Join(strings.Fields(string(out)), " "), mostShown)
}

// flowing is a copy in the flow style, without comments.
func flowing(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style}
	if n.Kind != yaml.ScalarNode {
		c.Style |= yaml.FlowStyle
	} else {
		c.Style &^= yaml.LiteralStyle | yaml.FoldedStyle
	}
	for _, x := range n.Content {
		c.Content = append(c.Content, flowing(x))
	}
	return c
}

// shownPayload is a payload for a person.
func shownPayload(payload []byte) string {
	v, err := decode(payload)
	if err != nil {
		return fmt.Sprintf("%d bytes that are no value: %v", len(payload), err)
	}
	return show(v)
}

// decode reads a payload that a guest has written.
func decode(payload []byte) (any, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	r := abi.NewReader(payload)
	r.Skip()
	if err := r.Done(); err != nil {
		return nil, err
	}
	return item(abi.NewReader(payload)), nil
}

// item reads one item of a payload that is valid.
func item(r *abi.Reader) any {
	switch r.Peek() {
	case abi.TypeUint:
		return r.Uint()
	case abi.TypeNint:
		return r.Int()
	case abi.TypeBytes:
		return slices.Clone(r.ByteString())
	case abi.TypeText:
		return strings.Clone(r.Text())
	case abi.TypeBool:
		return r.Bool()
	case abi.TypeFloat:
		return r.Float()
	case abi.TypeArray:
		n := r.Array()
		l := make([]any, 0, min(n, 1024))
		for range n {
			l = append(l, item(r))
		}
		return l
	case abi.TypeMap:
		n := r.Map()
		m := make(map[string]any, min(n, 1024))
		for range n {
			key := item(r)
			k, ok := key.(string)
			if !ok {
				k = fmt.Sprint(key)
			}
			m[k] = item(r)
		}
		return m
	}
	r.Skip() // null
	return nil
}
