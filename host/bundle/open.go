package bundle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/cluster/journal"
	"github.com/wasmactors/wasmactors/host/cluster/remote"
	"github.com/wasmactors/wasmactors/host/cluster/shard"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/host/metrics/guests"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/gateway"
	"github.com/wasmactors/wasmactors/internal/grammar"
	"github.com/wasmactors/wasmactors/runtime"
	"go.opentelemetry.io/otel/trace"
)

// Options say how a bundle is opened.
type Options struct {
	// CacheDir is the folder of the caches; "" for none.
	CacheDir string
	// CacheBytes bounds the caches: a quarter for built modules, the rest for images and
	// machine code. 0 means DefaultCacheBytes.
	CacheBytes int64
	// CacheKey is the file of the key that the cache is authenticated with; "" means
	// the user's.
	CacheKey string
	// Compiler overrides what modules say; "" leaves it to them.
	Compiler string
	// Progress is called with a few words on what is going on, by any goroutine.
	Progress func(module, text string)
	// Parallel bounds the modules that are built and loaded at a time; 0 means
	// GOMAXPROCS.
	Parallel int
	// Engine configures the engine further; may be nil.
	Engine func(runtime.Config) runtime.Config
	// Allow decides about what the manifest, and the sources of its guests, reach outside of the
	// bundle's folder, before any of it is opened. It may be called several times, by any goroutine.
	// An error refuses; nil refuses all with an OutsideError. See [Permit].
	Allow func([]Reach) error
	// LoadOnly opens a bundle that is not started: Allow is asked about its modules alone.
	LoadOnly bool
	// NoBuild refuses modules that would have to be built: only .wasm files are loaded.
	NoBuild bool
	// Cgo lets TinyGo compile the C sources of guests.
	Cgo bool
	// Inputs is called with what the build of a module reads, see build.Options; by any
	// goroutine.
	Inputs func(module string, in build.Inputs)
	// Services are those that the manifest may grant, for [Dev] and [Check], which read it.
	Services []service.Kind
	// Words are those that the manifest may use, for [Dev] and [Check], which read it.
	Words Words
	// StateDir is the folder for the state of a bundle's services; if it is nil or returns "", no state
	// is kept.
	StateDir func(*Manifest) (string, error)
	// Traces records spans of requests from outside, see tracing.Tracer.Provider; nil: none.
	Traces trace.TracerProvider
	// Log is where services log; nil: nowhere.
	Log *slog.Logger
	// AdjustProps may change the props of an actor that the manifest names, just before they are used;
	// nil: no change. It is for tests: fakes, and mailboxes with faults.
	AdjustProps func(a *Actor, p host.Props) host.Props
	// NoStore has durable actors begin anew, as all others, and opens no store. It is for tests.
	NoStore bool
	// Store may change what the manifest says of the store, at each start; false: there is none, as with NoStore. Nil: no
	// change. It is for simulations.
	Store func(durable.Options) (durable.Options, bool)
	// NoRecorder ignores the key recorder: the caller keeps the turns itself, or nobody does. Recorder may change what the
	// key says, such as to put modules into crash files; nil: no change.
	NoRecorder bool
	Recorder   func(blackbox.Config) blackbox.Config
}

// DefaultCacheBytes bounds the cache folder.
const DefaultCacheBytes = 1 << 30

// Folders of the cache, each kept by internal/cache.
const (
	BuildCache = "builds"
	ImageCache = "images"
)

// CacheShares divides the bound between the folders.
func CacheShares(total int64) map[string]int64 {
	if total <= 0 {
		total = DefaultCacheBytes
	}
	return map[string]int64{BuildCache: total / 4, ImageCache: total - total/4}
}

// Bundle is a manifest with its images: all that is needed to start its actors.
type Bundle struct {
	Manifest *Manifest
	Images   map[string]*runtime.Image // by module
	Builds   map[string]*build.Result  // of the modules that were built

	engine      *runtime.Engine
	borrowed    bool // the engine is another bundle's, see Replica
	loadOnly    bool
	loaded      map[string]*loaded
	modules     map[string]*host.Module
	codes       codes
	fetched     fetchedCodes
	kept        keptCodes
	probation   *probation // of an earlier process; nil: there is none, or it is over
	twins       []*loaded  // see Twin
	log         *slog.Logger
	traces      trace.TracerProvider
	adjustProps func(*Actor, host.Props) host.Props // nil: as the manifest says
	counted     atomic.Pointer[guests.Service]      // nil: no actor may report metrics

	services  services
	system    *host.System // that was started last
	node      shard.Node   // of the cluster; nil: there is none
	sharing   service.Sharing
	logs      Logs
	store     *durable.Store
	opened    atomic.Pointer[durable.Store] // store, for any goroutine
	journal   *persist.Journal              // nil: no actor keeps events
	memory    *persist.Memory               // that it is of, without a store
	spreadLog *journal.Journal              // that it is of, in a cluster
	remote    remote.Count                  // children of other nodes
	noStore   bool
	volatile  bool // the system that was started last has no store

	adjustStore func(durable.Options) (durable.Options, bool)

	recorder       *blackbox.Recorder // nil: turns are not kept
	noRecorder     bool
	adjustRecorder func(blackbox.Config) blackbox.Config
	gateway        atomic.Pointer[gateway.Gateway]
}

type buildResult = build.Result

// ModuleError is a module that cannot be built or loaded.
type ModuleError struct {
	Module string
	Err    error
	// Where the manifest names the module; "" if it is not known.
	File         string
	Line, Column int
	Source       string // the file, or the folder, that the module comes from
}

func (e *ModuleError) Error() string {
	text := fmt.Sprintf("module %s: %s", e.Module, strings.TrimPrefix(e.Err.Error(), e.Module+": "))
	if e.File != "" {
		text = fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, text)
	}
	if advice := e.advice(); advice != "" {
		text += "; " + advice
	}
	return text
}

// Unwrap is the cause.
func (e *ModuleError) Unwrap() error { return e.Err }

// Runtime is the configuration of an engine with the cache of o, and nothing of Engine.
func (o Options) Runtime() runtime.Config {
	cfg := runtime.NewConfig().WithCacheKeyFile(o.CacheKey).WithParallelLoads(o.Parallel)
	if o.CacheDir == "" {
		return cfg
	}
	return cfg.WithCacheDir(filepath.Join(o.CacheDir, ImageCache)).WithCacheBytes(CacheShares(o.CacheBytes)[ImageCache])
}

// Open builds and loads the modules of a manifest, several at a time. Close the
// bundle when its actors have ended.
func Open(ctx context.Context, m *Manifest, o Options) (*Bundle, error) {
	if err := o.Consent(m); err != nil {
		return nil, err
	}
	cfg := o.Runtime()
	if o.Engine != nil {
		cfg = o.Engine(cfg)
	}
	engine, err := runtime.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b := &Bundle{engine: engine, loadOnly: o.LoadOnly, log: o.Log, traces: o.Traces, adjustProps: o.AdjustProps, noStore: o.NoStore, services: services{place: o.StateDir}}
	b.adjustStore = o.Store
	b.noRecorder, b.adjustRecorder = o.NoRecorder, o.Recorder
	if b.log == nil {
		b.log = discard
	}
	l := map[string]*loaded{}
	if err := loadModules(ctx, engine, m, o, l); err != nil {
		return nil, errOf(err, b.Close(ctx))
	}
	b.take(m, l)
	b.modules = modulesOf(l)
	return b, nil
}

// errOf is the first error, without that of closing after it.
func errOf(err, _ error) error { return err }

// Build makes a module of a folder, or finds it in the cache.
func Build(ctx context.Context, mod Module, o Options) (*build.Result, error) {
	compiler := mod.Compiler
	if o.Compiler != "" {
		compiler = o.Compiler
	}
	if o.NoBuild {
		return nil, fmt.Errorf("%s would have to be built: %w", mod.Go, ErrNoBuild)
	}
	bo := build.Options{Compiler: compiler, CacheKey: o.CacheKey, Tags: mod.Tags, Flags: mod.Flags, Cgo: o.Cgo, Root: mod.root, Allow: o.allowSources(mod)}
	if o.CacheDir != "" {
		bo.CacheDir, bo.CacheBytes = filepath.Join(o.CacheDir, BuildCache), CacheShares(o.CacheBytes)[BuildCache]
	}
	if o.Progress != nil {
		bo.Progress = func(text string) { o.Progress(mod.Name, text) }
	}
	if o.Inputs != nil {
		bo.Inputs = func(in build.Inputs) { o.Inputs(mod.Name, in) }
	}
	return build.Guest(ctx, mod.Go, bo)
}

// Code is the WebAssembly of a module, built if need be.
func Code(ctx context.Context, mod Module, o Options) ([]byte, *build.Result, error) {
	if mod.Wasm != "" {
		code, err := readModule(ctx, mod)
		return code, nil, err
	}
	built, err := Build(ctx, mod, o)
	if err != nil {
		return nil, nil, err
	}
	code, err := built.Code(ctx)
	return code, built, err
}

func openModule(ctx context.Context, engine *runtime.Engine, mod Module, o Options) (*loaded, error) {
	cfg := mod.ImageConfig()
	if o.Progress != nil {
		cfg.Progress = func(stage string) { o.Progress(mod.Name, stage) }
	}
	if mod.Wasm != "" {
		code, err := readModule(ctx, mod)
		if err != nil {
			return nil, err
		}
		image, err := engine.Load(ctx, code, cfg)
		again := func(ctx context.Context) ([]byte, error) { return readModule(ctx, mod) }
		return &loaded{image: image, hash: hashOf(code), fetch: again}, err
	}
	built, err := Build(ctx, mod, o)
	if err != nil {
		return nil, err
	}
	image, err := engine.LoadFrom(ctx, runtime.Source{Sum: built.Sum, Read: built.Code}, cfg)
	return &loaded{image: image, hash: hexOf(built.Sum), built: built, fetch: built.Code}, err
}

// ImageConfig is how the module becomes an image.
func (mod Module) ImageConfig() runtime.ImageConfig {
	return runtime.ImageConfig{
		Name: mod.Name, MemoryLimit: mod.Memory, StackLimit: mod.Stack, TableLimit: mod.Table,
		SizeLimit: mod.Size, DataLimit: mod.Data, GlobalLimit: mod.Globals, TablesLimit: mod.Tables, EntriesLimit: mod.Entries,
		TypeLimit: mod.Types, FunctionLimit: mod.Functions, SegmentLimit: mod.Segments, ElementLimit: mod.Elements,
		CompileSteps: mod.CompileSteps, CompileBytes: mod.CompileBytes, CompileTime: mod.CompileTime, CompileMemory: mod.CompileMemory,
		InstanceLimit: mod.Instances, InitFuel: mod.InitFuel, InitDeadline: mod.InitDeadline,
		Env: mod.Env, Dirs: mod.Dirs, NoFreeze: !mod.Freeze,
	}
}

// checkTypes reports actors and capabilities whose type their module lacks, and actors whose module keeps no events and has to, at
// their place in the manifest.
func checkTypes(m *Manifest, l map[string]*loaded) error {
	var found Diagnostics
	check := func(_ string, a *Actor) {
		x := l[a.Module]
		if x == nil {
			return // that was reported
		}
		d := x.image.Description()
		types := d.Types
		has := func(name string) bool {
			for _, t := range types {
				if t == name {
					return true
				}
			}
			return name == "*"
		}
		if !has(a.Type) {
			found = append(found, Diagnostic{File: m.File, Line: a.line, Column: a.column,
				Message: fmt.Sprintf("actor %s: the module %s has no type %q%s", a.Name, a.Module, a.Type, grammar.Suggest(a.Type, types))})
		}
		if a.Events && !slices.Contains(d.Needs, abi.FeatureEvents) {
			found = append(found, Diagnostic{File: m.File, Line: a.line, Column: a.column,
				Message: fmt.Sprintf("actor %s: durable: events, and the module %s keeps no events: register the type by guest-sdk/persist", a.Name, a.Module)})
		}
		for _, t := range a.Capabilities.Spawn {
			if t, _, _ = strings.Cut(t, "@"); !has(t) {
				found = append(found, Diagnostic{File: m.File, Line: a.line, Column: a.column,
					Message: fmt.Sprintf("actor %s: capabilities.spawn: the module %s has no type %q%s", a.Name, a.Module, t, grammar.Suggest(t, types))})
			}
		}
	}
	m.Walk(check)
	m.eachMade(func(a *Actor) { check("", a) })
	for _, a := range m.accepted {
		if x := l[a.module]; x != nil && a.typ != "*" && !a.fetched && !slices.Contains(x.image.Description().Types, a.typ) {
			found = append(found, Diagnostic{File: m.File, Line: a.line, Column: a.column, Message: fmt.Sprintf("cluster.accept.types: the module %s has no type %q%s", a.module, a.typ, grammar.Suggest(a.typ, x.image.Description().Types))})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// Close ends the system that was started last, if it still runs, waits for its services and
// closes the images.
func (b *Bundle) Close(ctx context.Context) error {
	var ended error
	if b.system != nil {
		ended = b.system.Close(ctx)
	}
	b.closeRecorder()
	if b.system != nil && ended == nil {
		b.endProbation()
	}
	ended = errors.Join(ended, b.waitServices(ctx), b.closeStore(), b.services.folder.Close())
	if b.borrowed {
		return ended
	}
	return errors.Join(ended, b.engine.Close(ctx))
}

// Start starts the bundle's actors in a new system. change may adjust its
// configuration; nil is fine. watch, which may be nil, is called with the system
// before the first actor starts, so that it can subscribe to all that happens.
func (b *Bundle) Start(change func(host.Config) host.Config, watch func(*host.System)) (*host.System, error) {
	if b.loadOnly {
		return nil, errors.New("bundle: it was opened with LoadOnly, so nobody was asked about what it reaches when it runs")
	}
	var spawnOptions func([]byte) (host.SpawnOptions, error) // known after change, which may have the bundle join
	cfg := host.NewConfig(b.Manifest.Name).WithGuardian(b.Manifest.Supervision).
		WithSpawnOptions(func(o []byte) (host.SpawnOptions, error) { return spawnOptions(o) }).
		WithIdleAfter(b.Manifest.IdleAfter).WithMostAwake(b.Manifest.MostAwake).WithMaxActors(b.Manifest.MostActors)
	if b.Manifest.Memory > 0 {
		cfg = cfg.WithMemory(b.Manifest.Memory)
	}
	if change != nil {
		cfg = change(cfg)
	}
	spawnOptions = b.spawnOptions()
	if err := b.waitServices(context.Background()); err != nil {
		b.log.Error("a service of the last start was not closed in order", "error", err)
	}
	sys, starting, err := b.newSystem(cfg)
	if err != nil {
		return nil, err
	}
	b.system = sys
	if b.journal != nil {
		if err := persist.Attach(sys, b.journal); err != nil {
			starting.Abandon()
			return nil, errOf(err, sys.Close(context.Background()))
		}
	}
	if watch != nil {
		watch(sys)
	}
	for _, start := range []func(*host.System) error{
		b.joined, b.startMetrics, b.startServices, b.startDoor, func(sys *host.System) error { return b.startActors(sys, starting) }, b.startHTTP,
	} {
		if err := start(sys); err != nil {
			starting.Abandon()
			b.retireKept()
			return nil, errOf(err, sys.Close(context.Background()))
		}
	}
	return sys, nil
}

// startActors has durable actors come back, spawns the others, and lets all begin.
func (b *Bundle) startActors(sys *host.System, starting starting) error {
	spawn := func(a *Actor) error {
		if _, err := sys.Spawn(a.Name, b.props(a)); err != nil {
			return fmt.Errorf("actor %s: %w", a.Name, err)
		}
		return nil
	}
	kept := func(a *Actor) bool { return a.Durable && b.store != nil }
	for i := range b.Manifest.Actors {
		if a := &b.Manifest.Actors[i]; !kept(a) {
			if err := spawn(a); err != nil {
				return err
			}
		}
	}
	back, err := starting.Recover()
	if err != nil {
		return fmt.Errorf("the store %s: %w", b.Manifest.Store.Path, err)
	}
	for i := range b.Manifest.Actors {
		if a := &b.Manifest.Actors[i]; kept(a) && !back[a.Name] {
			if err := spawn(a); err != nil {
				return err
			}
		}
	}
	starting.Release()
	b.catchUp(sys)
	b.resume(sys)
	return nil
}

// props of an actor, with its children.
func (b *Bundle) props(a *Actor) host.Props {
	p := b.stated(a)
	if b.adjustProps != nil {
		p = b.adjustProps(a, p)
	}
	return p
}

// stated is the props that the manifest states for an actor, and for its children.
func (b *Bundle) stated(a *Actor) host.Props {
	if a.Keyed != nil && (!a.Keyed.Single || b.node != nil) {
		return b.keeper(a)
	}
	if a.Routing != nil {
		return b.routed(a)
	}
	p := b.single(a)
	var children []host.Child
	for i := range a.Children {
		children = append(children, host.Child{Name: a.Children[i].Name, Props: b.props(&a.Children[i])})
	}
	p = p.WithChildren(children...)
	if a.Durable && !b.volatile {
		p = p.WithDurable()
	}
	if a.Resend != nil {
		p = host.Resender(p, *a.Resend).WithLimits(host.Limits{Mailbox: a.Limits.Mailbox, MailboxBytes: a.Limits.MailboxBytes})
	}
	return p.WithLifetime(a.Lifetime).WithSignificant(a.Significant)
}

// single is the props of an actor's code.
func (b *Bundle) single(a *Actor) host.Props {
	p := host.GuestOf(b.modules[a.Module], a.Type).WithArgs(a.Args).WithLimits(a.Limits).
		WithCapabilities(a.Capabilities).WithSupervision(a.Supervision).WithCrashedMessage(a.Crashed).WithDispatcher(a.Dispatcher)
	if !a.Mailbox.IsUsual() {
		p = p.WithMailbox(a.Mailbox.Make)
	}
	if a.Events && b.journal != nil {
		p = b.journal.Guest(p, a.Mailbox, a.Limits.Durable)
	}
	for _, g := range a.Grants {
		p = p.WithGrant(g.Kind.Name(), b.grantOf(g))
	}
	return p
}
