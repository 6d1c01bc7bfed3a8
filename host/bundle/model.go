package bundle

import (
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/mailbox"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/upgrade"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// Manifest is what a bundle.yaml says, checked.
type Manifest struct {
	File        string // the manifest
	Dir         string // the folder that it lies in
	Name        string
	Description string
	Modules     []Module // in the order of the file
	Actors      []Actor  // likewise
	Supervision supervision.Strategy
	IdleAfter   time.Duration // see host.Config.WithIdleAfter
	MostAwake   int           // see host.Config.WithMostAwake
	Memory      int64         // see host.Config.WithMemory; 0: the default
	MostActors  int           // see host.Config.WithMaxActors; 0: no bound
	HTTP        *HTTP         // nil: nothing listens
	Store       *Store        // nil: nothing is kept
	Recorder    *Recorder     // nil: turns are not kept
	Cluster     *Cluster      // nil: it can join none
	Services    []Use         // in the order of the kinds that LoadWith was given
	Main        string        // the top-level actor whose end ends the run, or ""

	accepted []acceptedType // of cluster.accept.types

	named []named // what may be outside of the folder
	words Words

	supervision string // what the manifest says of it, see canonical
}

// Module is where the code of actors comes from: either Go or Wasm is set.
type Module struct {
	Name     string
	Go       string // folder of a main package, absolute
	Wasm     string // file, absolute
	Compiler string // auto, go or tinygo
	Tags     []string
	Flags    map[string][]string // by compiler, see build.Options
	Freeze   bool
	Env      []string // KEY=value, sorted
	Dirs     []runtime.Dir
	Upgrade  []upgrade.Way // see the key upgrade; nil: nothing is said
	// Limits that all actors of the module share: the module's own, else the largest of its
	// actors'.
	Memory uint64
	Stack  uint32
	Table  uint32
	// Limits that only the module has; 0 means the runtime's defaults.
	Size, Data uint64
	Globals    uint32

	// More limits of the module itself; 0 means the default of runtime.ImageConfig.
	Tables, Entries            uint32 // tables, and the entries of all together
	Types, Functions           uint32
	Segments, Elements         uint32
	CompileSteps, CompileBytes uint64 // of the compiler, as estimated
	Instances                  int
	InitFuel                   uint64
	InitDeadline               time.Duration
	// CompileTime and CompileMemory bound the process that compiles; 0 means that the
	// module's size decides.
	CompileTime   time.Duration
	CompileMemory uint64

	root         string // what sources must lie in; "": anywhere
	file         string // the manifest
	set          shared
	line, column int
}

// Actor is one actor of the tree.
type Actor struct {
	Name         string
	Module       string
	Type         string
	Args         any
	Limits       host.Limits
	Mailbox      mailbox.Config
	Dispatcher   host.Dispatcher
	Stack        uint32
	Table        uint32
	Capabilities host.Capabilities
	Metrics      []guests.Metric // that it counts itself, in the order of the file
	Grants       []*Grant        // of services, its parents' included
	Lifetime     supervision.Lifetime
	Significant  bool
	Crashed      host.CrashedMessage
	Supervision  supervision.Strategy
	Resend       *host.Resend  // nil: nothing is kept for it
	Routing      *Routing      // nil: it is not a router
	Messages     *Messages     // nil: nothing is said of them
	Keyed        *Keyed        // nil: it is one actor, and not one for each key
	Durable      bool          // durable: true
	Events       bool          // durable: events
	Upgrade      []upgrade.Way // of it and all below, unless they say something else; nil: nothing is said
	Children     []Actor

	supervision, resend, mailbox, routing, keyed string // what the manifest says of them, see canonical

	line, column int
}

// Module finds a module by its name.
func (m *Manifest) Module(name string) (Module, bool) {
	for _, x := range m.Modules {
		if x.Name == name {
			return x, true
		}
	}
	return Module{}, false
}

// Walk calls f for every actor, parents first, with its path below /user.
func (m *Manifest) Walk(f func(path string, a *Actor)) { walk("/user", m.Actors, f) }

func walk(above string, actors []Actor, f func(string, *Actor)) {
	for i := range actors {
		path := above + "/" + actors[i].Name
		f(path, &actors[i])
		walk(path, actors[i].Children, f)
	}
}

// defaults of manifests, where they differ from the host's.
const (
	defaultDeadline = 10 * time.Second
	defaultDirBytes = 1 << 30 // of a folder that guests may write to
	defaultDirFiles = 10_000
)
