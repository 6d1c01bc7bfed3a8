package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/internal/filewatch"
)

// Dev runs a bundle and watches its sources and its manifest. When they change it builds what
// is needed and changes the running actors. Errors are reported, and the old code goes on.
type Dev struct {
	Path    string // of the bundle, as for [Load]
	Vars    Variables
	Options Options
	// Start and Watch are as for [Bundle.Start]; both are called for every system.
	Start func(host.Config) host.Config
	Watch func(*host.System)
	// Tell is called with what happens, one call at a time. It must not block for long: nothing
	// is built or replaced meanwhile.
	Tell func(DevEvent)
	// Trouble is called with a folder that the operating system cannot watch and that is polled
	// instead; by any goroutine. It may be nil.
	Trouble func(dir string, err error)
	// StopGrace bounds the wait for actors that stop; default 10 s.
	StopGrace time.Duration
	// Place is where the bundle runs; nil: in systems of this process, of which Start and Watch are called.
	Place DevPlace

	watch filewatch.Options
}

// DevKind says what has happened.
type DevKind string

// The kinds of events of [Dev], as they are called in JSON.
const (
	DevUp        DevKind = "up"        // the bundle runs, in a new system
	DevChanged   DevKind = "changed"   // files have changed, and a build begins
	DevReplaced  DevKind = "replaced"  // the new version runs, in the system that was there
	DevUnchanged DevKind = "unchanged" // the change of files makes no difference
	DevFailed    DevKind = "failed"    // something is wrong; the version before keeps running
	DevWaiting   DevKind = "waiting"   // the manifest is not there
	DevEnded     DevKind = "ended"     // the system has ended by itself; the next change starts another
)

// DevEvent is something that has happened.
type DevEvent struct {
	Kind     DevKind
	System   *host.System      // that runs; nil if none does in this process
	Running  bool              // the bundle runs, here or elsewhere
	Bundle   *Bundle           // likewise
	Manifest *Manifest         // of what runs
	Hashes   map[string]string // of the modules that run, see [Bundle.Hash]
	Took     time.Duration     // since the change

	Files   []string       // changed: which
	Modules []ModuleChange // up, replaced: those with other code or limits
	Actors  []ActorChange  // replaced: those that were changed
	Why     []string       // up: why it has started again as a whole
	Err     error          // failed, waiting, ended: why
}

// ErrNoManifest says that the manifest is missing.
var ErrNoManifest = errors.New("there is no manifest")

// Run runs until ctx ends, and then stops the actors in order. It fails only if the bundle
// does not exist; all other errors are reported by Tell, and Run waits for the next change.
func (d Dev) Run(ctx context.Context) error {
	file, _, err := readManifest(d.Path)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if d.Tell == nil {
		d.Tell = func(DevEvent) {}
	}
	if d.StopGrace <= 0 {
		d.StopGrace = 10 * time.Second
	}
	s := &session{Dev: d, file: file, path: abs, inputs: map[string]build.Inputs{}, dirty: map[string]bool{}}
	if s.Place == nil {
		s.Place = here{s}
	}
	s.watch.Trouble = d.Trouble
	s.watcher = filewatch.New(s.watch)
	defer s.watcher.Close()
	return s.run(ctx)
}

// session is a running Dev. Only run uses its fields, except those under mu, which builds use,
// too.
type session struct {
	Dev
	file    string // the manifest, as messages call it
	path    string // the same, absolute
	watcher *filewatch.Watcher

	bundle *Bundle
	runs   bool         // in its place
	sys    *host.System // that runs here; nil: none does
	since  time.Time    // the first change that was not handled yet

	mu     sync.Mutex
	inputs map[string]build.Inputs // by module
	dirty  map[string]bool         // modules to build
	known  *Manifest               // the last one that could be read
}

// attempt is one attempt to build the present state of the files.
type attempt struct {
	cancel context.CancelFunc
	done   chan result
}

type result struct {
	bundle *Bundle // the first one
	change *Change // of the running bundle
	err    error
	began  filewatch.Mark // what the files were before they were read
}

func (s *session) run(ctx context.Context) error {
	s.since = time.Now()
	work := s.try(ctx)
	defer func() {
		s.giveUp(work)
		s.stop()
		if s.bundle != nil {
			_ = s.bundle.Close(context.Background())
		}
	}()
	for {
		var done chan result
		if work != nil {
			done = work.done
		}
		var ended <-chan struct{}
		if s.runs {
			ended = s.Place.Ended()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			s.hasEnded()
		case <-s.watcher.C():
			files := s.watcher.Take()
			if len(files) == 0 {
				continue
			}
			s.giveUp(work)
			if work == nil {
				s.since = time.Now()
			}
			s.changed(files)
			work = s.try(ctx)
		case r := <-done:
			work.cancel()
			again := s.watcher.Rewritten(r.began)
			work = nil
			s.apply(ctx, r)
			if len(again) > 0 { // what it has read may be gone, and nobody tells: it is as it was before
				s.since = time.Now()
				s.changed(again)
				work = s.try(ctx)
			}
		}
	}
}

// tell calls Tell with an event, to which it adds what runs.
func (s *session) tell(e DevEvent) {
	if e.System, e.Running, e.Bundle = s.sys, s.runs, s.bundle; s.bundle != nil {
		e.Manifest, e.Hashes = s.bundle.Manifest, map[string]string{}
		for _, m := range s.bundle.Manifest.Modules {
			e.Hashes[m.Name] = s.bundle.Hash(m.Name)
		}
	}
	e.Took = time.Since(s.since)
	s.Tell(e)
}

// changed notes which modules files belong to.
func (s *session) changed(files []string) {
	s.mu.Lock()
	if s.known != nil {
		for _, mod := range s.known.Modules {
			in, ok := s.inputs[mod.Name]
			s.dirty[mod.Name] = s.dirty[mod.Name] || mod.Go != "" && !ok || slices.ContainsFunc(files, func(path string) bool { return path == mod.Wasm || reads(in, path) })
		}
	}
	s.mu.Unlock()
	s.tell(DevEvent{Kind: DevChanged, Files: files})
}

// reads reports whether a build depends on a file, also on one that does not exist.
func reads(in build.Inputs, path string) bool {
	if slices.Contains(in.Files, path) {
		return true
	}
	return slices.ContainsFunc(in.Dirs, func(d build.InputDir) bool {
		rel, err := filepath.Rel(d.Path, path)
		return err == nil && filepath.IsLocal(rel) && (d.Deep || filepath.Dir(path) == d.Path)
	})
}

// try begins an attempt.
func (s *session) try(ctx context.Context) *attempt {
	ctx, cancel := context.WithCancel(ctx)
	a := &attempt{cancel, make(chan result, 1)}
	go func() {
		var r result
		r.err = s.make(ctx, &r)
		a.done <- r
	}()
	return a
}

// giveUp ends an attempt and discards its result.
func (s *session) giveUp(a *attempt) {
	if a == nil {
		return
	}
	a.cancel()
	r := <-a.done
	if r.bundle != nil {
		_ = r.bundle.Close(context.Background())
	}
	if r.change != nil {
		r.change.Discard()
	}
}

// make reads the manifest and builds the modules that need it.
func (s *session) make(ctx context.Context, r *result) error {
	s.follow(nil)
	r.began = s.watcher.Mark()
	m, err := s.Options.Words.Load(s.file, s.Vars, s.Options.Services...)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoManifest, err)
	}
	if err != nil {
		return err
	}
	if err := s.Options.Consent(m); err != nil {
		return err // nothing that it names is even watched
	}
	s.follow(m)
	r.began = r.began.And(s.watcher.Mark())
	o := s.Options
	o.Inputs = func(module string, in build.Inputs) {
		s.mu.Lock()
		s.inputs[module] = in
		s.mu.Unlock()
		s.follow(nil)
		if s.Options.Inputs != nil {
			s.Options.Inputs(module, in)
		}
	}
	if s.bundle == nil {
		r.bundle, err = Open(ctx, m, o)
		return err
	}
	r.change, err = s.bundle.Prepare(ctx, m, o, func(module string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.dirty[module]
	})
	return err
}

// follow watches the inputs of a manifest and its modules; nil means the last manifest.
func (s *session) follow(m *Manifest) {
	s.mu.Lock()
	if m != nil {
		s.known = m
	}
	set := filewatch.Set{Files: []string{s.path}}
	if s.known != nil {
		for _, mod := range s.known.Modules {
			if mod.Wasm != "" {
				set.Files = append(set.Files, mod.Wasm)
				continue
			}
			in, ok := s.inputs[mod.Name]
			if !ok { // its build has not reported them yet
				in.Dirs = []build.InputDir{{Path: mod.Go}}
			}
			set.Files = append(set.Files, in.Files...)
			for _, d := range in.Dirs {
				dir := filewatch.Dir{Path: d.Path, Deep: d.Deep}
				if !d.Deep {
					dir.Name = build.IsSource
				}
				set.Dirs = append(set.Dirs, dir)
			}
		}
		set.Skip = outputs(s.known, set)
	}
	s.mu.Unlock()
	s.watcher.Watch(set)
}

// outputs are the folders that actors may write to, except those that contain the manifest or
// sources. They are not watched.
func outputs(m *Manifest, set filewatch.Set) (skip []string) {
	sources := []string{set.Files[0]} // the manifest
	for _, mod := range m.Modules {
		if mod.Wasm != "" {
			sources = append(sources, mod.Wasm)
		}
	}
	for _, d := range set.Dirs {
		sources = append(sources, d.Path)
	}
	for _, mod := range m.Modules {
		for _, d := range mod.Dirs {
			inside := func(path string) bool {
				rel, err := filepath.Rel(d.Host, path)
				return err == nil && filepath.IsLocal(rel)
			}
			if !d.ReadOnly && !slices.ContainsFunc(sources, inside) {
				skip = append(skip, d.Host)
			}
		}
	}
	return skip
}

// apply applies the result of an attempt to the running system.
func (s *session) apply(ctx context.Context, r result) {
	switch {
	case errors.Is(r.err, ErrNoManifest):
		s.tell(DevEvent{Kind: DevWaiting, Err: r.err})
		return
	case r.err != nil:
		s.tell(DevEvent{Kind: DevFailed, Err: r.err})
		return
	}
	s.mu.Lock()
	clear(s.dirty)
	s.mu.Unlock()
	switch c := r.change; {
	case c == nil:
		s.bundle = r.bundle
		var first []ModuleChange
		for _, m := range r.bundle.Manifest.Modules {
			first = append(first, ModuleChange{Name: m.Name, Now: r.bundle.Hash(m.Name)})
		}
		s.start(ctx, DevEvent{Modules: first})
	case !s.runs, len(c.Whole) > 0:
		s.again(ctx, c, c.Whole)
	case c.Empty():
		s.bundle.take(c.Manifest, c.loaded) // the text has changed, but not its meaning
		s.tell(DevEvent{Kind: DevUnchanged})
	default:
		done, why := s.Place.Change(ctx, c)
		if len(why) > 0 {
			s.again(ctx, c, why)
			return
		}
		s.tell(DevEvent{Kind: DevReplaced, Modules: c.Modules, Actors: done})
	}
}

// again starts the changed bundle as a whole.
func (s *session) again(ctx context.Context, c *Change, why []string) {
	s.stop()
	c.Replace()
	s.start(ctx, DevEvent{Modules: c.Modules, Why: why})
}

// start starts the actors anew.
func (s *session) start(ctx context.Context, e DevEvent) {
	err := s.Place.Start(ctx, s.bundle)
	switch {
	case err != nil && ctx.Err() != nil: // it was not wanted any more
	case err != nil:
		s.tell(DevEvent{Kind: DevFailed, Err: err})
	default:
		s.runs = true
		e.Kind = DevUp
		s.tell(e)
	}
}

// stop ends what runs.
func (s *session) stop() {
	s.Place.Stop()
	s.runs = false
}

// endDev ends a system; actors that do not stop are killed.
func endDev(sys *host.System, grace time.Duration) {
	stop, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = sys.Close(stop)
}

// hasEnded reports that the bundle has ended by itself.
func (s *session) hasEnded() {
	cause := s.Place.Cause()
	s.stop()
	s.tell(DevEvent{Kind: DevEnded, Err: cause})
}

// here is the usual place: a system in this process.
type here struct{ *session }

// Start implements DevPlace.
func (h here) Start(_ context.Context, b *Bundle) (err error) {
	h.sys, err = b.Start(h.Dev.Start, h.Dev.Watch)
	return err
}

// Change implements DevPlace.
func (h here) Change(ctx context.Context, c *Change) ([]ActorChange, []string) {
	ctx, cancel := context.WithTimeout(ctx, h.StopGrace)
	defer cancel()
	return c.Apply(ctx, h.sys), nil
}

// Ended implements DevPlace.
func (h here) Ended() <-chan struct{} { return h.sys.Terminated() }

// Cause implements DevPlace.
func (h here) Cause() error { return h.sys.Cause() }

// Stop implements DevPlace.
func (h here) Stop() {
	if h.sys == nil {
		return
	}
	endDev(h.sys, h.StopGrace)
	h.sys = nil
}
