// Package servicetest is what tests of services share: the guest of host/service/testdata,
// and systems in which its actors ask.
package servicetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/build"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/guesttest"
	"github.com/wasmactors/wasmactors/runtime"
)

// Dir is the folder of the guest. In a test that was built with -trimpath it is looked for above the
// working directory.
func Dir() string {
	_, file, _, _ := goruntime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "testdata", "guest")
	if filepath.IsAbs(file) {
		return dir
	}
	const below = "host/service/testdata/guest"
	at, err := os.Getwd()
	for ; err == nil && filepath.Dir(at) != at; at = filepath.Dir(at) {
		if dir := filepath.Join(at, below); isDir(dir) {
			return dir
		}
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

var guest struct {
	sync.Once
	engine *runtime.Engine
	image  *runtime.Image
	module *host.Module
	err    error
}

// Image is the guest, built by standard Go and loaded once a process. [Close] ends it.
func Image(t testing.TB) *runtime.Image {
	t.Helper()
	guest.Do(func() {
		if guest.image, guest.err = load(); guest.err == nil {
			guest.module = host.NewModule(guest.image)
		}
	})
	if guest.err != nil {
		t.Fatal(guest.err)
	}
	return guest.image
}

// Module is the module of [Image].
func Module(t testing.TB) *host.Module {
	t.Helper()
	Image(t)
	return guest.module
}

// CacheDir is a cache that tests share which do not test caches: to compile a guest under the
// race detector takes half a minute. What is in it is authenticated, and bounded as every cache.
func CacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "wasmactors-tests")
}

func load() (*runtime.Image, error) {
	ctx := context.Background()
	built, err := build.Guest(ctx, Dir(), build.Options{Compiler: guesttest.Compiler(), CacheDir: filepath.Join(CacheDir(), "builds")})
	if err != nil {
		return nil, err
	}
	code, err := built.Code(ctx)
	if err != nil {
		return nil, err
	}
	engine, err := runtime.New(ctx, runtime.NewConfig().WithCacheDir(filepath.Join(CacheDir(), "images")))
	if err != nil {
		return nil, err
	}
	guest.engine = engine
	return engine.Load(ctx, code, runtime.ImageConfig{Name: "services"})
}

// Close closes the engine of [Image], for a TestMain that looks for goroutines afterwards.
func Close() {
	if guest.engine != nil {
		_ = guest.engine.Close(context.Background())
	}
}

// World is a system with a service, and actors of the guest.
type World struct {
	*host.System
	Running *service.Running

	t      testing.TB
	module *host.Module
}

// New starts a system and a service in it; change may be nil. Both end with the test.
func New(t testing.TB, kind service.Kind, env *service.Env, settings any, change func(host.Config) host.Config) *World {
	t.Helper()
	w := &World{t: t, module: Module(t)}
	cfg := host.NewConfig("test")
	if change != nil {
		cfg = change(cfg)
	}
	sys, err := host.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.System = sys
	t.Cleanup(w.End)
	if settings == nil {
		settings = kind.NewSettings()
	}
	if w.Running, err = kind.StartWith(sys, env, settings); err != nil {
		t.Fatal(err)
	}
	return w
}

// End ends the system and waits for the service. It may be called more than once.
func (w *World) End() {
	_ = w.Close(context.Background())
	if w.Running != nil {
		if err := w.Running.Wait(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}

// Spawn starts an actor of the guest, with a grant of the service unless that is nil.
func (w *World) Spawn(name, typ string, grant, args any) host.Ref {
	w.t.Helper()
	p := host.GuestOf(w.module, typ).WithArgs(args)
	if grant != nil {
		p = p.WithGrant(w.Running.Name(), grant)
	}
	ref, err := w.System.Spawn(name, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ref
}

// Asker is an actor that asks the service what it is asked by [World.Request].
func (w *World) Asker(name string, grant any) host.Ref {
	return w.Spawn(name, "service-asker", grant, nil)
}

// Request has an asker make a request, and decodes the answer into out unless that is nil. The
// error is the text of the service's: CODE: what is wrong.
func (w *World) Request(who host.Ref, op string, args, out any) error {
	w.t.Helper()
	m, err := w.Ask(w.t.Context(), who, []any{w.Running.Name(), op, args})
	switch {
	case err != nil:
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "host: the actor replied with an error: "))
	case out == nil:
		return nil
	}
	return m.Decode(out)
}
