package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/bundle"
	"github.com/wasmactors/wasmactors/internal/printable"
	"github.com/wasmactors/wasmactors/runtime"
)

func inspectCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "describe a module or a bundle",
		ArgsUsage: "FILE.wasm | BUNDLE",
		Description: "ABI and SDK, actor types, imports, sizes before and after metering, pages of the image; what actors may do: capabilities, grants of services, routes, and what the bundle reaches outside of its folder.\n\nExamples:\n\n" +
			"   wasmactors inspect samples/ledger\n" +
			"   wasmactors inspect guest.wasm --json\n" +
			"   wasmactors inspect guest.wasm --fsm > machines.mmd",
		Flags: append(bundleFlags(), &cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.BoolFlag{Name: "fsm", Usage: "print the diagrams of state machines, for Mermaid"}),
		Action: func(c *cli.Context) error {
			path, err := oneArg(c, "a module or a bundle", "")
			if err != nil {
				return err
			}
			var report inspection
			if strings.HasSuffix(path, ".wasm") {
				report, err = inspectModule(c, path)
			} else {
				report, err = inspectBundle(c, env, path)
			}
			if err != nil {
				return err
			}
			if c.Bool("fsm") && !c.Bool("json") {
				return report.diagrams(env, path)
			}
			if c.Bool("json") {
				enc := json.NewEncoder(env.stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(report)
			}
			report.print(env)
			return nil
		},
	}
}

type inspection struct {
	Bundle  string           `json:"bundle,omitempty"`
	Modules []inspectedCode  `json:"modules"`
	Actors  []inspectedActor `json:"actors,omitempty"`
	Listen  []string         `json:"listen,omitempty"`
	Routes  []inspectedRoute `json:"routes,omitempty"`
	// Reaches is what the bundle reaches outside of its folder.
	Reaches []bundle.Reach `json:"reaches,omitempty"`
}

type inspectedCode struct {
	Name          string   `json:"name"`
	ABI           uint64   `json:"abi"`
	SDK           string   `json:"sdk"`
	Types         []string `json:"types"`
	Diagrams      []drawn  `json:"diagrams,omitempty"`
	Imports       []string `json:"imports"`
	Batching      bool     `json:"batching"`
	ModuleBytes   int      `json:"module_bytes"`
	MeteredBytes  int      `json:"metered_bytes"`
	MemoryBytes   uint64   `json:"memory_bytes"`
	MemoryLimit   uint64   `json:"memory_limit"`
	NonZeroPages  int      `json:"non_zero_pages"` // of 4 KiB
	Frozen        bool     `json:"frozen"`
	NotFrozen     string   `json:"not_frozen,omitempty"`
	InboxBytes    int      `json:"inbox_bytes"`
	OutboxBytes   int      `json:"outbox_bytes"`
	Environment   []string `json:"environment,omitempty"`
	GrantedFolder []string `json:"granted_folders,omitempty"`
}

// drawn is a type's diagram, as its module has it.
type drawn struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type inspectedActor struct {
	Path  string   `json:"path"`
	Type  string   `json:"type"`
	Send  []string `json:"send,omitempty"`
	Spawn []string `json:"spawn,omitempty"`
	Stop  []string `json:"stop,omitempty"`
	// Grants are of services, as the manifest has them.
	Grants  []string `json:"grants,omitempty"`
	Metrics []string `json:"metrics,omitempty"`
}

// inspectedRoute is a route for requests from outside.
type inspectedRoute struct {
	Pattern string          `json:"pattern"`
	To      []string        `json:"to,omitempty"`
	Static  string          `json:"static,omitempty"`
	Auth    string          `json:"auth"`
	Make    *inspectedActor `json:"make,omitempty"` // what actors on demand may do
}

func inspectModule(c *cli.Context, path string) (inspection, error) {
	code, _, err := bundle.Code(c.Context, bundle.Module{Name: path, Wasm: path}, bundle.Options{})
	if err != nil {
		return inspection{}, usage("%v", err)
	}
	engine, err := runtime.New(c.Context, runtime.NewConfig())
	if err != nil {
		return inspection{}, err
	}
	defer engine.Close(c.Context)
	image, err := engine.Load(c.Context, code, runtime.ImageConfig{Name: path})
	if err != nil {
		return inspection{}, err
	}
	return inspection{Modules: []inspectedCode{inspected(path, image, bundle.Module{})}}, nil
}

func inspectBundle(c *cli.Context, env *environment, path string) (inspection, error) {
	options, err := bundleOptions(c, env)
	if err != nil {
		return inspection{}, err
	}
	m, err := load(c, path)
	if err != nil {
		return inspection{}, err
	}
	p := newProgress(env.terminal)
	options.Progress, options.LoadOnly = p.say, true
	b, err := bundle.Open(c.Context, m, options)
	p.end()
	if err != nil {
		return inspection{}, err
	}
	defer b.Close(c.Context)
	report := inspection{Bundle: m.Name}
	for _, mod := range m.Modules {
		report.Modules = append(report.Modules, inspected(mod.Name, b.Images[mod.Name], mod))
	}
	m.Walk(func(path string, a *bundle.Actor) { report.Actors = append(report.Actors, inspectedActorOf(path, a)) })
	report.Reaches = m.Reaches()
	if m.HTTP == nil {
		return report, nil
	}
	for _, l := range m.HTTP.Config.Listen {
		report.Listen = append(report.Listen, l.Address)
	}
	for i, r := range m.HTTP.Config.Routes {
		route := inspectedRoute{Pattern: r.Pattern, To: r.To.Pool, Auth: "anyone"}
		if r.To.Path != "" {
			route.To = []string{r.To.Path}
		}
		if r.Static != nil {
			route.Static = r.Static.Dir
		}
		switch a := r.Auth; {
		case a == nil:
		case a.Basic != nil:
			route.Auth = "basic"
		case a.JWT != nil:
			route.Auth = "jwt"
		case a.MTLS != nil:
			route.Auth = "mtls"
		}
		if made := m.HTTP.Made[i]; made != nil {
			actor := inspectedActorOf(r.To.Path, made)
			route.Make = &actor
		}
		report.Routes = append(report.Routes, route)
	}
	return report, nil
}

// inspectedActorOf is all that the manifest allows an actor.
func inspectedActorOf(path string, a *bundle.Actor) inspectedActor {
	out := inspectedActor{Path: path, Type: a.Shown(), Send: a.Capabilities.Send, Spawn: a.Capabilities.Spawn, Stop: a.Capabilities.Stop}
	for _, g := range a.Grants {
		out.Grants = append(out.Grants, g.String())
	}
	for _, m := range a.Metrics {
		out.Metrics = append(out.Metrics, m.Name)
	}
	return out
}

func inspected(name string, image *runtime.Image, mod bundle.Module) inspectedCode {
	d, i := image.Description(), image.Info()
	out := inspectedCode{
		Name: name, ABI: d.ABI, SDK: d.SDK, Types: d.Types, Imports: i.Imports, Batching: i.Batching,
		ModuleBytes: i.WasmBytes, MeteredBytes: i.FrozenBytes, MemoryBytes: uint64(i.MemoryBytes), MemoryLimit: uint64(i.MemoryLimit),
		NonZeroPages: i.NonZeroPages, Frozen: i.Frozen, NotFrozen: i.NotFrozen, InboxBytes: i.InboxCap, OutboxBytes: i.OutboxCap,
	}
	for _, x := range d.Diagrams {
		out.Diagrams = append(out.Diagrams, drawn(x))
	}
	for _, e := range mod.Env {
		key, _, _ := strings.Cut(e, "=")
		out.Environment = append(out.Environment, key)
	}
	for _, dir := range mod.Dirs {
		mode := "rw"
		if dir.ReadOnly {
			mode = "ro"
		}
		out.GrantedFolder = append(out.GrantedFolder, fmt.Sprintf("%s as %s (%s)", dir.Host, dir.Guest, mode))
	}
	return out
}

// diagrams prints the diagrams alone, each behind a comment that names its type. What a module says
// of itself is not trusted with the terminal.
func (r inspection) diagrams(env *environment, path string) error {
	n := 0
	for _, m := range r.Modules {
		for _, d := range m.Diagrams {
			if n++; n > 1 {
				fmt.Fprintln(env.stdout)
			}
			fmt.Fprintf(env.stdout, "%%%% %s of %s\n", d.Type, m.Name)
			for _, line := range strings.Split(strings.TrimRight(d.Text, "\n"), "\n") {
				fmt.Fprintln(env.stdout, printable.Line(line, abi.MaxDiagram))
			}
		}
	}
	if n == 0 {
		return fmt.Errorf("%s has no diagrams: types that fsm.Definition.Register of the SDK has registered have one", path)
	}
	return nil
}

func (r inspection) print(env *environment) {
	w := env.stdout
	if r.Bundle != "" {
		fmt.Fprintf(w, "bundle %s\n", r.Bundle)
	}
	for _, m := range r.Modules {
		fmt.Fprintf(w, "module %s\n", m.Name)
		fmt.Fprintf(w, "  abi %d, sdk %s\n", m.ABI, m.SDK)
		fmt.Fprintf(w, "  types    %s\n", strings.Join(m.Types, ", "))
		fmt.Fprintf(w, "  code     %s as given, %s metered and frozen (%.2f times)\n", humanBytes(uint64(m.ModuleBytes)), humanBytes(uint64(m.MeteredBytes)), float64(m.MeteredBytes)/float64(max(m.ModuleBytes, 1)))
		fmt.Fprintf(w, "  memory   %s at the start, %d pages of 4 KiB not zero, at most %s\n", humanBytes(m.MemoryBytes), m.NonZeroPages, humanBytes(m.MemoryLimit))
		frozen := "yes"
		if !m.Frozen {
			frozen = "no: " + m.NotFrozen
		}
		fmt.Fprintf(w, "  frozen   %s\n", frozen)
		fmt.Fprintf(w, "  rings    inbox %s, outbox %s, batching %v\n", humanBytes(uint64(m.InboxBytes)), humanBytes(uint64(m.OutboxBytes)), m.Batching)
		fmt.Fprintf(w, "  imports  %s\n", strings.Join(m.Imports, "\n           "))
		for _, e := range m.Environment {
			fmt.Fprintf(w, "  sees the variable %s\n", e)
		}
		for _, f := range m.GrantedFolder {
			fmt.Fprintf(w, "  may use the folder %s\n", f)
		}
	}
	for _, a := range r.Actors {
		fmt.Fprintf(w, "actor %s: %s\n", a.Path, a.Type)
		a.print(w, "  ")
	}
	for _, l := range r.Listen {
		fmt.Fprintf(w, "listens on %s\n", printable.Text(l))
	}
	for _, x := range r.Routes {
		to := strings.Join(x.To, ", ")
		if x.Static != "" {
			to = "the files of " + x.Static
		}
		fmt.Fprintf(w, "route %s: %s, for %s\n", printable.Text(x.Pattern), printable.Text(to), map[bool]string{true: "anyone", false: "those who pass " + x.Auth}[x.Auth == "anyone"])
		if x.Make != nil {
			fmt.Fprintf(w, "  makes %s\n", x.Make.Type)
			x.Make.print(w, "    ")
		}
	}
	if len(r.Reaches) > 0 {
		fmt.Fprintln(w, (&bundle.OutsideError{Reaches: r.Reaches}).Error())
	}
}

// print prints what an actor may do.
func (a *inspectedActor) print(w io.Writer, indent string) {
	may := func(what string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(w, "%smay %s %s\n", indent, what, printable.Text(strings.Join(list, ", ")))
		}
	}
	may("send to", a.Send)
	may("spawn", a.Spawn)
	may("stop", a.Stop)
	may("count", a.Metrics)
	for _, g := range a.Grants {
		fmt.Fprintf(w, "%smay use %s\n", indent, printable.Text(g))
	}
}
