package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/internal/executor"
	"github.com/wasmactors/wasmactors/internal/plainjson"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// value is a value as CBOR.
type value []byte

// read collects the values from all places.
func (p *provider) read() (map[string]value, error) {
	out := map[string]value{}
	put := func(key string, v any) error {
		b, err := host.Encode(v)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		case len(b) > MaxValue:
			return fmt.Errorf("%s: a value of %d bytes, at most %d", key, len(b), MaxValue)
		case len(out) >= MaxKeys:
			return fmt.Errorf("more than %d keys", MaxKeys)
		}
		out[key] = b
		return nil
	}
	for _, key := range keys(p.settings.Values) {
		if err := put(key, p.settings.Values[key]); err != nil {
			return nil, err
		}
	}
	for i := range p.settings.Files {
		f := &p.settings.Files[i]
		path := p.path(f.Path)
		ctx, cancel := executor.WithTimeout(executor.Machine, context.Background(), 10*time.Second)
		data, err := regular.Read(ctx, path, MaxFile)
		cancel()
		if f.Optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := parse(f.format(), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, key := range keys(found) {
			if !validKey(f.Prefix + key) {
				return nil, fmt.Errorf("%s: %.80q is not a key: names of letters, digits, - and _, with dots between them, %d bytes at most", path, f.Prefix+key, MaxKey)
			}
			if err := put(f.Prefix+key, found[key]); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	for _, key := range keys(p.settings.Environment) {
		if v, ok := p.env.Getenv(p.settings.Environment[key]); ok {
			if !utf8.ValidString(v) {
				return nil, fmt.Errorf("the variable %s is not UTF-8", p.settings.Environment[key])
			}
			if err := put(key, v); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// format is the format of the file, "" if it is not known.
func (f *File) format() string {
	if f.Format != "" {
		return f.Format
	}
	switch base := filepath.Base(f.Path); filepath.Ext(base) {
	case ".yaml", ".yml":
		return "yaml"
	case ".json":
		return "json"
	case ".env":
		return "env"
	default:
		if strings.HasPrefix(base, ".env") {
			return "env"
		}
	}
	return ""
}

// parse reads the values of a file; keys of nested objects are joined with dots.
func parse(format string, data []byte) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if format == "env" {
		return parseEnv(string(data))
	}
	var v any
	var err error
	if format == "json" {
		v, err = plainjson.Parse(data)
	} else {
		v, err = parseYAML(data)
	}
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if v == nil {
		return out, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("an object with keys is expected")
	}
	return out, flatten(out, "", m, 0)
}

func flatten(out map[string]any, prefix string, m map[string]any, depth int) error {
	if depth > abi.MaxNesting {
		return fmt.Errorf("nested more than %d deep", abi.MaxNesting)
	}
	for _, name := range keys(m) {
		key := prefix + name
		if len(key) > MaxKey {
			return fmt.Errorf("a key of %d bytes, at most %d", len(key), MaxKey)
		}
		if inner, ok := m[name].(map[string]any); ok && len(inner) > 0 {
			if err := flatten(out, key+".", inner, depth+1); err != nil {
				return err
			}
			continue
		}
		if _, twice := out[key]; twice {
			return fmt.Errorf("the key %s comes twice", key)
		}
		if len(out) >= MaxKeys {
			return fmt.Errorf("more than %d keys", MaxKeys)
		}
		out[key] = m[name]
	}
	return nil
}

// parseYAML reads one document. Anchors and tags are refused: with them a few lines can expand
// without bound.
func parseYAML(data []byte) (any, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n yaml.Node
	if err := d.Decode(&n); err != nil {
		if len(bytes.TrimSpace(data)) == 0 || err.Error() == "EOF" {
			return nil, nil
		}
		return nil, err
	}
	if err := d.Decode(&yaml.Node{}); err == nil {
		return nil, errors.New("more than one document")
	}
	return fromYAML(&n, 0)
}

func fromYAML(n *yaml.Node, depth int) (any, error) {
	no := func(format string, a ...any) (any, error) {
		return nil, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, a...))
	}
	if depth > abi.MaxNesting {
		return no("nested more than %d deep", abi.MaxNesting)
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return no("anchors and aliases are not supported")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) != 1 {
			return nil, nil
		}
		return fromYAML(n.Content[0], depth)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
				return no("a key is a text")
			}
			if _, twice := m[k.Value]; twice {
				return no("the key %.40q comes twice", k.Value)
			}
			v, err := fromYAML(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			m[k.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return no("%v", err)
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return no("%s is not a number", n.Value)
		}
		return v, nil
	}
	return no("the tag %.40s is not supported", n.Tag)
}

// parseEnv reads lines of NAME=value. Values may be quoted: in double quotes \n, \r, \t, \" and \\
// mean what they mean in Go, in single quotes everything is literal. $NAME is not expanded. A #
// after a space begins a comment.
func parseEnv(text string) (map[string]any, error) {
	out := map[string]any{}
	for i, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		no := func(what string) (map[string]any, error) { return nil, fmt.Errorf("line %d: %s", i+1, what) }
		name, v, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		name, v = strings.TrimSpace(name), strings.TrimSpace(v)
		if !ok || !validKey(name) {
			return no("it is not NAME=value")
		}
		if v != "" && (v[0] == '"' || v[0] == '\'') {
			rest := ""
			if v, rest, ok = unquote(v); !ok {
				return no("the quotes are not closed, or contain an invalid escape")
			}
			if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
				return no("text follows the closing quote")
			}
		} else if at := strings.Index(v, " #"); at >= 0 {
			v = strings.TrimSpace(v[:at])
		} else if strings.HasPrefix(v, "#") {
			v = ""
		}
		if _, twice := out[name]; twice {
			return no("the name " + name + " comes twice")
		}
		if len(out) >= MaxKeys {
			return no("more than " + strconv.Itoa(MaxKeys) + " keys")
		}
		out[name] = v
	}
	return out, nil
}

func unquote(s string) (v, rest string, ok bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), s[i+1:], true
		case c == '\\' && quote == '"':
			if i++; i == len(s) {
				return "", "", false
			}
			at := strings.IndexByte(`nrt"\$`, s[i])
			if at < 0 {
				return "", "", false
			}
			b.WriteByte("\n\r\t\"\\$"[at])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
