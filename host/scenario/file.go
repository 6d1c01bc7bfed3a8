package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/regular"
)

// File is a file of scenarios that was checked.
type File struct {
	Path      string
	Scenarios []*Scenario
}

// Scenario is a scenario of a file. It is immutable.
type Scenario struct {
	Name         string
	File         string
	Line, Column int
	Skip         string // why it is not run; "": it is

	seed                 uint64
	start                time.Time
	config, secrets, env map[string]string
	fakes                []*fake
	standIns             []string // paths
	nodes                []nodeOf // none: there is one system, and no cluster
	steps                []step
	invariants           []invariant
	simulation           simulation
	settings             map[string]*yaml.Node // where they stand, for errors
}

// ID identifies the scenario among all of a bundle: the name of its file, without _test.yaml, and
// its own name.
func (s *Scenario) ID() string {
	return strings.TrimSuffix(filepath.Base(s.File), Suffix) + "/" + s.Name
}

// Suffix ends the names of scenario files.
const Suffix = "_test.yaml"

// Find lists the scenario files of a bundle: those in the folder of its manifest whose names end
// with Suffix, sorted. NAME_test.yaml is for the manifest NAME.yaml alone if there is one beside it; a manifest that has such a
// file has no others.
func Find(m *bundle.Manifest) ([]string, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, err
	}
	manifest := func(test string) string { return strings.TrimSuffix(test, Suffix) + ".yaml" }
	own := filepath.Base(m.File)
	is := map[string]bool{}
	for _, e := range entries {
		is[e.Name()] = !e.IsDir()
	}
	only := is[strings.TrimSuffix(own, ".yaml")+Suffix]
	var files []string
	for _, e := range entries {
		if is[e.Name()] && strings.HasSuffix(e.Name(), Suffix) {
			if of := manifest(e.Name()); of != own && (only || is[of]) {
				continue
			}
			files = append(files, filepath.Join(filepath.Dir(m.File), e.Name()))
		}
	}
	return files, nil
}

// Load reads a file. Mistakes in its contents are returned as bundle.Diagnostics.
func Load(ctx context.Context, path string) (*File, error) {
	data, err := regular.Read(ctx, path, MaxFile)
	switch {
	case errors.Is(err, regular.ErrSize):
		return nil, fmt.Errorf("%s: the scenario file is larger than 1 MiB: make several of it", path)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such scenario file", path)
	case err != nil:
		return nil, fmt.Errorf("the scenario file cannot be read: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for a file that was read already.
func Parse(path string, data []byte) (*File, error) {
	c := checkerOf(path)
	const what = "the scenario file"
	root := c.Document(data, what, func(root *yaml.Node) { c.Check(root, fileShape, what) })
	if len(c.Found) > 0 {
		return nil, c.Found
	}
	f := &File{Path: path}
	list, defaults := grammar.At(root, "scenarios").Content, grammar.At(root, "defaults")
	switch {
	case len(list) == 0:
		c.At(grammar.At(root, "scenarios"), "scenarios must have one at least")
	case len(list) > MaxScenarios:
		c.At(list[MaxScenarios], "a file has at most %d scenarios", MaxScenarios)
	}
	lines := map[string]int{}
	for _, n := range list {
		s := c.scenario(n, defaults)
		if line, twice := lines[s.Name]; twice {
			c.At(grammar.At(n, "name"), "the name %q comes twice, first in line %d", s.Name, line)
		}
		lines[s.Name] = grammar.At(n, "name").Line
		f.Scenarios = append(f.Scenarios, s)
	}
	if len(c.Found) > 0 {
		return nil, c.Found
	}
	return f, nil
}

// scenario reads a checked scenario.
func (c *checker) scenario(n, defaults *yaml.Node) *Scenario {
	s := &Scenario{Name: grammar.At(n, "name").Value, File: c.File, Line: n.Line, Column: n.Column, seed: DefaultSeed, start: DefaultStart, settings: map[string]*yaml.Node{}}
	if x := grammar.At(n, "skip"); x != nil {
		s.Skip = x.Value
	}
	for _, from := range []*yaml.Node{defaults, n} {
		if x := grammar.At(from, "seed"); x != nil {
			s.seed, _ = strconv.ParseUint(x.Value, 0, 64)
		}
		if x := grammar.At(from, "start"); x != nil {
			s.start, _ = time.Parse(time.RFC3339Nano, x.Value)
		}
		s.config, s.secrets, s.env = with(s.config, grammar.At(from, "config")), with(s.secrets, grammar.At(from, "secrets")), with(s.env, grammar.At(from, "env"))
		s.fakes = slices.Concat(c.fakes(grammar.At(from, "http")), s.fakes)
		s.standIns = append(s.standIns, c.places(grammar.At(from, "stand-ins"))...)
		s.invariants = append(s.invariants, c.invariants(grammar.At(from, "invariants"))...)
		c.simulation(&s.simulation, grammar.At(from, "simulation"))
		if x := grammar.At(from, "nodes"); x != nil {
			s.nodes = c.nodesOf(x)
		}
		for _, f := range settings {
			if x := grammar.At(from, f.Name); x != nil {
				s.settings[f.Name] = x
			}
		}
	}
	slices.Sort(s.standIns)
	s.standIns = slices.Compact(s.standIns)
	steps := grammar.At(n, "steps")
	switch {
	case len(steps.Content) == 0:
		c.At(steps, "steps must have one at least")
	case len(steps.Content) > MaxSteps:
		c.At(steps.Content[MaxSteps], "a scenario has at most %d steps", MaxSteps)
	}
	for _, x := range steps.Content {
		s.steps = append(s.steps, step{verb: c.verbOf(x), n: x, fakes: c.fakes(grammar.At(x, "http"))})
	}
	c.nodeSteps(s)
	c.withstands(s, n)
	return s
}

// with is a copy of a mapping with the entries of a node added.
func with(m map[string]string, n *yaml.Node) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	if n != nil {
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = n.Content[i+1].Value
		}
	}
	return out
}

func (c *checker) places(n *yaml.Node) (paths []string) {
	if n == nil {
		return nil
	}
	for _, x := range n.Content {
		path := pathOf(x.Value)
		if !validPath(path) {
			c.At(x, "%q is neither the name of an actor nor a path such as /user/a/b", x.Value)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// pathOf is the path that a name or a path stands for.
func pathOf(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/user/" + name
}

func validPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/user/")
	if !ok {
		return false
	}
	for _, name := range strings.Split(rest, "/") {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "*? \t\n") {
			return false
		}
	}
	return true
}

// step is a step of a scenario, whose node was checked.
type step struct {
	verb  *verb
	n     *yaml.Node
	fakes []*fake
}

// has reports whether the step has a key.
func (s *step) has(key string) bool { return grammar.At(s.n, key) != nil }

// object is the value of the verb's key.
func (s *step) object() string { return s.text(s.verb.name) }

func (s *step) text(key string) string {
	if x := grammar.At(s.n, key); x != nil {
		return x.Value
	}
	return ""
}

func (s *step) span(key string, otherwise time.Duration) time.Duration {
	if x := grammar.At(s.n, key); x != nil {
		d, _ := grammar.ParseDuration(x.Value)
		return d
	}
	return otherwise
}

func (s *step) whole(key string, otherwise int) int {
	if x := grammar.At(s.n, key); x != nil {
		var i int
		_ = x.Decode(&i)
		return i
	}
	return otherwise
}

func (s *step) texts(key string) map[string]string {
	if grammar.At(s.n, key) == nil {
		return nil
	}
	return with(nil, grammar.At(s.n, key))
}
