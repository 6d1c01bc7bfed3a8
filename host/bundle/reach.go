package bundle

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Reach is something outside of the bundle's folder that a manifest names: a path, a variable of the
// environment, an address to listen on, what is connected to, a provider of secrets. Keys declare what
// their texts reach where they are declared themselves.
type Reach struct {
	Kind service.Reach `json:"kind"`
	// Value is what is reached: an absolute path, with unix: before it if it is a socket's; else as in the manifest, passwords masked.
	Value string `json:"value"`
	// Real is where a path leads, symbolic links followed; of others it is Value.
	Real string `json:"real"`
	// Key says where the manifest names it, such as services.sql.databases.main.file. File, Line and Column do, too.
	Key    string `json:"key"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Note says more of it, for people.
	Note string `json:"note,omitempty"`
}

// verbs is what becomes of what is reached, for people.
var verbs = map[service.Reach]string{
	service.ReachRead: "reads", service.ReachWrite: "reads and writes", service.ReachEnv: "sees the variable",
	service.ReachListen: "listens on", service.ReachConnect: "connects to", service.ReachSecret: "asks the provider of secrets",
	service.ReachRun: "runs", service.ReachCluster: "reads and writes what its cluster keeps for all bundles of the name",
	service.ReachCode: "runs code that other nodes of its cluster have, as",
}

// String is a line for a person, without characters that a terminal would obey.
func (r Reach) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s: %s %s", r.File, r.Line, r.Column, r.Key, verbs[r.Kind], r.Value)
	if r.Real != r.Value {
		text += " (really " + r.Real + ")"
	}
	if r.Note != "" {
		text += ", " + r.Note
	}
	return printable.Text(strings.ReplaceAll(text, "\n", `\n`))
}

// OutsideError is a bundle that reaches outside of its own folder without having been allowed to.
type OutsideError struct{ Reaches []Reach }

func (e *OutsideError) Error() string {
	lines := []string{"the bundle reaches outside of its folder:"}
	for _, r := range e.Reaches {
		lines = append(lines, "  "+r.String())
	}
	return strings.Join(lines, "\n")
}

// named is a text of a manifest whose key declares a reach.
type named struct {
	reach  service.Reach
	key    string
	value  string
	line   int
	column int
	note   string
}

// maxNamed bounds texts that name something outside, in bytes, so that what is shown is all of it.
const maxNamed = 4096

// namedIn collects the texts below a node that was checked against a shape.
func (c *checker) namedIn(n *yaml.Node, s *shape, key string) (out []named) {
	note := func(n *yaml.Node, reach service.Reach, key string) {
		if reach == none || reach == "" || reach == service.ReachCluster && n.Value != string(service.ReachCluster) {
			return
		}
		if len(n.Value) > maxNamed {
			c.At(n, "%.200s: more than %d bytes", key, maxNamed)
		}
		path := strings.TrimPrefix(n.Value, "unix:")
		if (reach == service.ReachRead || reach == service.ReachWrite || path != n.Value) && filepath.IsAbs(path) && slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
			c.At(n, "%s: write the absolute path without ..: behind a link it leads elsewhere than it seems to", key)
		}
		out = append(out, named{reach: reach, key: key, value: n.Value, line: max(n.Line, 1), column: max(n.Column, 1)})
	}
	switch s = s.Resolved(); {
	case s.Kind == grammar.Object && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			f := s.Field(n.Content[i].Value)
			if f == nil {
				continue
			}
			more := c.namedIn(n.Content[i+1], f, below(key, n.Content[i].Value))
			for j := range more {
				if f.Writes != nil && f.Writes(n) {
					more[j].reach = service.ReachWrite
				}
				if guest := grammar.At(n, f.As); f.As != "" && guest != nil {
					more[j].note = "as " + guest.Value
				}
			}
			out = append(out, more...)
		}
	case s.Kind == grammar.Mapping && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := below(key, n.Content[i].Value)
			note(n.Content[i], s.KeyReach, at)
			out = append(out, c.namedIn(n.Content[i+1], s.Of, at)...)
		}
	case s.Kind == grammar.List && n.Kind == yaml.SequenceNode && s.Reach == service.ReachRun:
		whole := *n
		whole.Value = commandLine(n)
		note(&whole, s.Reach, key)
	case s.Kind == grammar.List && n.Kind == yaml.SequenceNode:
		for i, x := range n.Content {
			out = append(out, c.namedIn(x, s.Of, key+"["+strconv.Itoa(i)+"]")...)
		}
	case s.Kind == grammar.Text && n.Kind == yaml.ScalarNode:
		note(n, s.Reach, key)
	}
	return out
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,~-]+$`)

// commandLine is a program and its arguments as one text, in which other commands are not written.
func commandLine(n *yaml.Node) string {
	words := make([]string, len(n.Content))
	for i, x := range n.Content {
		if words[i] = x.Value; !plainWord.MatchString(x.Value) {
			words[i] = strconv.Quote(x.Value)
		}
	}
	return strings.Join(words, " ")
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_~-]+$`)

// below is a key with another one below it.
func below(key, name string) string {
	if !plainKey.MatchString(name) && name != "*" {
		name = strconv.Quote(name)
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// Reaches lists what the manifest names outside of the bundle's folder: paths that lead out of it by
// "..", as absolute ones or over a symbolic link, and all else that keys declare. The most dangerous comes last.
func (m *Manifest) Reaches() []Reach { return m.reachesOf("") }

// modulesKey begins the keys of what is reached when a bundle is loaded. The rest is reached when it is started.
const modulesKey = "modules."

// reachesOf are the reaches of keys that begin with a text.
func (m *Manifest) reachesOf(prefix string) (found []Reach) {
	inside, shared := realPath(m.Dir), m.writable()
	for _, x := range m.named {
		if !strings.HasPrefix(x.key, prefix) {
			continue
		}
		r := Reach{Kind: x.reach, Value: masked(x.value), Real: masked(x.value), Key: x.key, File: m.File, Line: x.line, Column: x.column, Note: x.note}
		if x.reach == service.ReachCluster {
			r.Value, r.Real = m.Name, m.Name // which a stranger chooses
		}
		path, isPath := x.value, x.reach == service.ReachRead || x.reach == service.ReachWrite
		socket := ""
		if p, ok := strings.CutPrefix(x.value, "unix:"); ok && x.reach == service.ReachListen {
			path, isPath, socket = p, true, "unix:"
		}
		if isPath {
			if !filepath.IsAbs(path) {
				path = filepath.Join(m.Dir, path)
			}
			real := realPath(path)
			why := outside(inside, real)
			if why == "" && !strings.HasPrefix(x.key, modulesKey) && slices.ContainsFunc(shared, func(dir string) bool { return within(dir, real) }) {
				why = "which guests may change"
			}
			if why == "" {
				continue
			}
			r.Value, r.Real = socket+path, socket+real
			r.Note = joined(r.Note, strings.TrimPrefix(why, leads))
		}
		found = append(found, r)
	}
	order := []service.Reach{service.ReachConnect, service.ReachListen, service.ReachSecret, service.ReachEnv, service.ReachCluster, service.ReachRead, service.ReachCode, service.ReachWrite, service.ReachRun}
	slices.SortStableFunc(found, func(a, b Reach) int { return cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)) })
	return found
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// leads is the reason for a path that leads out of the folder, for which people need no words.
const leads = "-"

// records are folders in which version control keeps what is not the bundle's: addresses with
// passwords, and programs that it runs.
var records = []string{".git", ".hg", ".jj", ".svn"}

// outside says why a path, links followed, is not the bundle's own; "" if it is.
func outside(inside, real string) string {
	if !within(inside, real) {
		return leads
	}
	rel, _ := filepath.Rel(inside, real)
	for _, part := range strings.Split(filepath.ToSlash(rel), "/") {
		if slices.ContainsFunc(records, func(r string) bool { return strings.EqualFold(r, part) }) {
			return "which version control keeps"
		}
	}
	for _, r := range records {
		if _, err := os.Lstat(filepath.Join(real, r)); err == nil {
			return "with " + r
		}
	}
	return ""
}

// writable are the real paths of the folders that guests may change.
func (m *Manifest) writable() (dirs []string) {
	for _, mod := range m.Modules {
		for _, d := range mod.Dirs {
			if !d.ReadOnly {
				dirs = append(dirs, realPath(d.Host))
			}
		}
	}
	return dirs
}

// within reports whether a path is a folder or in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

type password struct {
	of   *regexp.Regexp
	with string
}

var passwords = sync.OnceValue(func() []password {
	return []password{
		{regexp.MustCompile(`(://|^)([^:@/\s]*):([^@/\s][^@\s]*)?@`), "$1$2:***@"},
		{regexp.MustCompile(`(?i)(password|passwd|pwd|pass|token|secret|key)=[^\s&;]*`), "$1=***"},
	}
})

// masked is a text with its passwords hidden: proxies and sources of databases have them.
func masked(text string) string {
	for _, p := range passwords() {
		text = p.of.ReplaceAllString(text, p.with)
	}
	return text
}

// allow calls Allow.
func (o Options) allow(found []Reach) error {
	switch {
	case len(found) == 0:
		return nil
	case o.Allow == nil:
		return &OutsideError{found}
	}
	return o.Allow(found)
}

// Consent asks Allow about what a manifest reaches, of a bundle that is only loaded about its modules. [Open]
// calls it; callers of [Code] and [Build] do so themselves.
func (o Options) Consent(m *Manifest) error {
	if o.LoadOnly {
		return o.allow(m.reachesOf(modulesKey))
	}
	return o.allow(m.Reaches())
}

// allowSources is allow for the sources of a module.
func (o Options) allowSources(mod Module) func([]build.Outside) error {
	return func(found []build.Outside) error {
		var reaches []Reach
		for _, f := range found {
			reaches = append(reaches, Reach{Kind: service.ReachRead, Value: f.Path, Real: f.Real, Key: below("modules", mod.Name) + ".go",
				File: mod.file, Line: mod.line, Column: mod.column, Note: "a source of its code"})
		}
		return o.allow(reaches)
	}
}

// pinned is the module with the links in its folders resolved, so that the folders that were
// checked are those that are opened.
func (mod Module) pinned() Module {
	dirs := append(mod.Dirs[:0:0], mod.Dirs...)
	for i := range dirs {
		dirs[i].Host = realPath(dirs[i].Host)
	}
	mod.Dirs = dirs
	return mod
}

// mostLinks bounds the links of a path.
const mostLinks = 255

// realPath follows the symbolic links of an absolute path as the kernel does. Its end need not exist: where a link
// leads counts, not what is there.
func realPath(path string) string {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	parts := func(path string) []string {
		return strings.FieldsFunc(path[len(filepath.VolumeName(path)):], func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	}
	at, todo, links := root, parts(path), 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil || links == mostLinks {
			at = next
			continue
		}
		if links++; filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
		}
		todo = append(parts(target), todo...)
	}
	return at
}
