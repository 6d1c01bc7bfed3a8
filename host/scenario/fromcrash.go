package scenario

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Of a scenario that is made of a crash file.
const (
	mostCrashSteps = 20_000
	mostCrashBytes = 1 << 20 // of payloads
)

// FromCrash is a scenario file with the messages of a crash file: it fails as long as the last one makes the actor fail. The
// other actors are those of the bundle, so that it says in comments what it does not repeat: answers, timers, and what came before
// the snapshot.
func FromCrash(f *blackbox.File) ([]byte, error) {
	_, rest, ok := strings.Cut(f.Path, "://")
	if ok {
		_, rest, ok = strings.Cut(rest, "/")
	}
	path, _, _ := strings.Cut("/"+rest, "#")
	if !ok || !strings.HasPrefix(path, "/user/") {
		return nil, fmt.Errorf("%q is not an actor below /user", printable.Line(f.Path, 200))
	}
	if f.Inexact != "" {
		return nil, fmt.Errorf("its messages are not in the file: %s", f.Inexact)
	}
	b := crashSteps{path: path}
	f.Entries(b.entry)
	if e, ok := f.Failing(); ok {
		e.Pushed = min(e.Pushed, e.Done+1)
		b.last = true
		b.entry(&e)
	}
	if b.err != nil {
		return nil, b.err
	}
	if !b.ends {
		return nil, errors.New("the actor has failed at something that a scenario cannot send: an answer, a timer, or its start")
	}
	b.add(pair("expect-state", word(path)), pair("crashes", scalarNode("!!int", "0")))
	one := mapNode(0, pair("name", word("the failure of "+path)), pair("start", scalarNode("!!timestamp", time.Unix(0, b.first).UTC().Format(time.RFC3339Nano))), pair("steps", &yaml.Node{Kind: yaml.SequenceNode, Content: b.steps}))
	doc := mapNode(0, pair("scenarios", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{one}}))
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What led to: %s\n# (turn %d of %s, type %s). It fails until the actor handles its last message.\n", printable.Line(f.Failure.Error(), 500), f.Failure.Turn, printable.Line(f.Path, 200), printable.Line(f.Type, 100))
	if !f.FromStart {
		fmt.Fprintf(&out, "# The file begins with a snapshot before turn %d: what the actor was sent before that is not here.\n", f.Exact)
	}
	if len(b.left) > 0 {
		fmt.Fprintf(&out, "# Not repeated, for they come from the system or from other actors: %s.\n", strings.Join(b.left, ", "))
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// crashSteps are the steps so far.
type crashSteps struct {
	path  string
	steps []*yaml.Node
	bytes int
	first int64 // time, ns since 1970
	now   int64
	last  bool
	ends  bool     // the message that was failed at is the last step
	left  []string // kinds of what is not repeated
	err   error
}

func (b *crashSteps) add(pairs ...[2]*yaml.Node) { b.steps = append(b.steps, mapNode(0, pairs...)) }

func (b *crashSteps) entry(e *blackbox.Entry) bool {
	if b.first == 0 {
		b.first, b.now = e.Now, e.Now
	}
	n := 0
	e.Mail(func(env *abi.Envelope) bool {
		n++
		if !b.last && n > e.Done || n > e.Pushed {
			return false
		}
		b.ends = false
		if env.Kind != abi.KindMessage {
			if env.Kind != abi.KindStart && !slices.Contains(b.left, env.Kind.String()) {
				b.left = append(b.left, env.Kind.String())
			}
			return true
		}
		b.bytes += len(env.Payload)
		if len(b.steps) >= mostCrashSteps || b.bytes > mostCrashBytes {
			b.err = fmt.Errorf("it has more than %d messages or %d bytes of them: too much for a scenario", mostCrashSteps, mostCrashBytes)
			return false
		}
		if d := e.Now - b.now; d > 0 {
			b.add(pair("advance", word(time.Duration(d).String())))
			b.now = e.Now
		}
		m, err := messageOf(env.Payload)
		if err != nil {
			b.err = fmt.Errorf("the message of turn %d cannot be written in a scenario: %w", e.First+uint64(n-1), err)
			return false
		}
		b.add(pair("send", word(b.path)), pair("message", m))
		b.ends = true
		return true
	})
	return b.err == nil
}

func pair(key string, value *yaml.Node) [2]*yaml.Node { return [2]*yaml.Node{word(key), value} }

func scalarNode(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func mapNode(style yaml.Style, pairs ...[2]*yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
	for _, p := range pairs {
		n.Content = append(n.Content, p[0], p[1])
	}
	return n
}

// messageOf is a payload as a scenario has it.
func messageOf(payload []byte) (*yaml.Node, error) {
	if len(payload) == 0 {
		return nil, errors.New("it is empty")
	}
	var v any
	if err := cbor.Unmarshal(payload, &v); err != nil {
		return nil, err
	}
	return valueNode(v)
}

func valueNode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return scalarNode("!!null", "null"), nil
	case bool:
		return scalarNode("!!bool", strconv.FormatBool(v)), nil
	case uint64:
		return scalarNode("!!int", strconv.FormatUint(v, 10)), nil
	case int64:
		return scalarNode("!!int", strconv.FormatInt(v, 10)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("it has a float that is no number")
		}
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return scalarNode("!!float", s), nil
	case string:
		n := word(v)
		n.Style = yaml.DoubleQuotedStyle
		return n, nil
	case []byte:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!bytes", Style: yaml.TaggedStyle, Value: base64.StdEncoding.EncodeToString(v)}, nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, x := range v {
			item, err := valueNode(x)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		return n, nil
	case map[any]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			s, ok := k.(string)
			if !ok {
				return nil, fmt.Errorf("it has a map with a key that is no text: %s", printable.Line(fmt.Sprint(k), 60))
			}
			keys = append(keys, s)
		}
		slices.Sort(keys)
		n := mapNode(yaml.FlowStyle)
		for _, k := range keys {
			item, err := valueNode(v[k])
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, word(k), item)
		}
		return n, nil
	}
	return nil, fmt.Errorf("it has a value of a kind that scenarios do not have: %T", v)
}

func word(s string) *yaml.Node { return scalarNode("!!str", s) }
