package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/servicetest"
	"github.com/wasmactors/wasmactors/runtime"
)

// needs writes a bundle of the guest that needs a known amount of everything.
func needs(t *testing.T, limits, moduleLimits, actors string) string {
	t.Helper()
	wasm, err := filepath.Abs("testdata/needs.wasm")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "wasmactors: 1\nname: needs\nmodules:\n  m: {wasm: " + wasm + ", limits: {" + moduleLimits + "}}\nlimits: {" + limits + "}\nactors: {" + actors + "}\n"
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir string) (*Bundle, error) { return openOn(t, dir, nil) }

func openOn(t *testing.T, dir string, engine func(runtime.Config) runtime.Config) (*Bundle, error) {
	t.Helper()
	return openWith(t, dir, Options{Allow: anywhere, CacheDir: servicetest.CacheDir(), Engine: engine})
}

// openWith is for those who want no cache.
func openWith(t *testing.T, dir string, o Options) (*Bundle, error) {
	t.Helper()
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(context.Background(), m, o)
	if err == nil {
		t.Cleanup(func() {
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return b, err
}

// begin starts the bundle and collects what its supervisor sees.
func begin(t *testing.T, b *Bundle) (*host.System, *host.Subscription) {
	t.Helper()
	var events *host.Subscription
	sys, err := b.Start(nil, func(s *host.System) {
		events = s.Subscribe(1000, func(e *host.Event) bool { return e.Kind == host.EventFailed || e.Kind == host.EventStarted })
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := sys.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return sys, events
}

// failed waits for the next failure; nil if the actor has ended well instead.
func failed(t *testing.T, events *host.Subscription, ended <-chan struct{}) *abi.Failure {
	t.Helper()
	for {
		select {
		case e := <-events.C():
			if e.Kind == host.EventFailed {
				return e.Failure
			}
		case <-ended:
			for len(events.C()) > 0 {
				if e := <-events.C(); e.Kind == host.EventFailed {
					return e.Failure
				}
			}
			return nil
		case <-time.After(60 * time.Second):
			t.Fatal("nothing has happened")
		}
	}
}

// TestLimitsOfTurns: each limit bites when it is too small for what the guest
// needs, with the failure that the supervisor sees, and does not when it is not.
func TestLimitsOfTurns(t *testing.T) {
	for _, c := range []struct {
		name          string
		message       int
		small, enough string // limits of the actors
		module        bool   // or of the module
		kind          abi.FailureKind
		reason        string
	}{
		{"memory", 1, "memory: 128KiB", "memory: 320KiB", false, abi.FailureMemoryLimit, "more than 128 KiB of memory"},
		{"memory of a module", 1, "memory: 256KiB", "memory: 1MiB", true, abi.FailureMemoryLimit, "more than 256 KiB of memory"},
		{"table", 2, "table: 509", "table: 510", false, abi.FailureTrap, "unreachable"},
		{"table of a module", 2, "table: 509", "table: 510", true, abi.FailureTrap, "unreachable"},
		{"stack", 3, "stack: 8KiB", "stack: 1MiB", false, abi.FailureStackOverflow, "calls nest deeper than 8192 bytes of stack"},
		{"stack of a module", 3, "stack: 8KiB", "stack: 1MiB", true, abi.FailureStackOverflow, "calls nest deeper than 8192 bytes of stack"},
		{"fuel", 4, "fuel: 1M", "fuel: 1G", false, abi.FailureFuel, "fuel 1000000 spent"},
		{"deadline", 4, "deadline: 1us", "deadline: 30s", false, abi.FailureDeadline, "deadline 1µs passed"},
		{"outbox", 5, "outbox: 1KiB", "", false, abi.FailureABIViolation, "1024"},
	} {
		for _, small := range []bool{true, false} {
			limit := c.enough
			if small {
				limit = c.small
			}
			if limit == "" {
				continue
			}
			t.Run(c.name+", "+limit, func(t *testing.T) {
				actors, module := limit, ""
				if c.module {
					actors, module = "", limit
				}
				b, err := open(t, needs(t, actors, module, "a: {type: needs}"))
				if err != nil {
					t.Fatal(err)
				}
				sys, events := begin(t, b)
				ref, err := sys.Lookup("/user/a")
				if err != nil {
					t.Fatal(err)
				}
				ended, err := sys.Ended(ref)
				if err != nil {
					t.Fatal(err)
				}
				if err := sys.Tell(ref, c.message); err != nil {
					t.Fatal(err)
				}
				if err := sys.PoisonPill(ref); err != nil { // it ends after the message
					t.Fatal(err)
				}
				f := failed(t, events, ended)
				switch {
				case small && (f == nil || f.Kind != c.kind || !strings.Contains(f.Reason, c.reason)):
					t.Errorf("%v, want %v with %q", f, c.kind, c.reason)
				case !small && f != nil:
					t.Errorf("failed though the limit is not exceeded: %v", f)
				}
			})
		}
	}
}

// TestLimitsAtLoad: a module that needs more than it may have is refused with a
// message that says what, how much, and which key raises it.
func TestLimitsAtLoad(t *testing.T) {
	for _, c := range []struct{ small, enough, want string }{
		{"size: 484", "size: 485", "the module takes 485 bytes, the limit is 484 bytes; modules.m.limits.size raises it"},
		{"data: 10", "data: 100", "the module has data of 61 bytes, the limit is 10 bytes; modules.m.limits.data raises it"},
		{"globals: 2", "globals: 3", "the module has 3 globals, the limit is 2 globals; modules.m.limits.globals raises it"},
		{"types: 1", "types: 100", "types, the limit is 1 types; modules.m.limits.types raises it"},
		{"functions: 1", "functions: 100", "functions, the limit is 1 functions; modules.m.limits.functions raises it"},
		{"segments: 1", "segments: 100", "segments, the limit is 1 segments; modules.m.limits.segments raises it"},
		{"table-entries: 9", "table-entries: 10", "the module needs tables with a total of 10 entries, the limit is 9 entries; modules.m.limits.table-entries raises it"},
		{"memory: 64KiB", "memory: 128KiB", "the module needs a memory of 128 KiB, the limit is 64 KiB; modules.m.limits.memory raises it"},
		{"table: 9", "table: 10", "the module needs a table of 10 entries, the limit is 9 entries; modules.m.limits.table raises it"},
		{"init-fuel: 10k", "init-fuel: 20M", "fuel 10000 spent; modules.m.limits.init-fuel raises it"},
		{"init-deadline: 1ns", "init-deadline: 30s", "deadline 1ns passed; modules.m.limits.init-deadline raises it"},
		{"compile-time: 1ns", "compile-time: 30s", "takes more than 1ns of processor time to compile (the limit is ImageConfig.CompileTime); modules.m.limits.compile-time raises it"},
	} {
		t.Run(c.small, func(t *testing.T) {
			_, err := openWith(t, needs(t, "", c.small, "a: {type: needs}"), Options{Allow: anywhere})
			var m *ModuleError
			if !errors.As(err, &m) || m.Module != "m" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if _, err := openWith(t, needs(t, "", c.enough, "a: {type: needs}"), Options{Allow: anywhere}); err != nil {
				t.Errorf("%s: %v", c.enough, err)
			}
		})
	}
}

// TestLimitOfInstances: an actor that gets no instance fails as init, and is
// stopped; the others go on.
func TestLimitOfInstances(t *testing.T) {
	b, err := open(t, needs(t, "", "instances: 2", "a: {type: needs}, b: {type: needs}, c: {type: needs}"))
	if err != nil {
		t.Fatal(err)
	}
	sys, events := begin(t, b)
	f := failed(t, events, nil)
	if f.Kind != abi.FailureInit || !strings.Contains(f.Reason, "the limit of instances of the image is reached: m: the limit is 2") {
		t.Error(f)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := sys.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	living := 0
	for _, name := range []string{"a", "b", "c"} {
		if _, err := sys.Lookup("/user/" + name); err == nil {
			living++
		}
	}
	if living != 2 {
		t.Errorf("%d actors live", living)
	}
}

// TestLimitOfTheInbox: a mailbox that is full, by messages or by bytes, takes no
// more; the sender in Go sees an error, others a dead letter.
func TestLimitOfTheInbox(t *testing.T) {
	for limit, size := range map[string]int{"mailbox: 3": 1, "mailbox-bytes: 3kB": 1000} {
		t.Run(limit, func(t *testing.T) {
			b, err := open(t, needs(t, limit+", fuel: 1000G, deadline: 0", "", "a: {type: needs}"))
			if err != nil {
				t.Fatal(err)
			}
			sys, _ := begin(t, b)
			ref, err := sys.Lookup("/user/a")
			if err != nil {
				t.Fatal(err)
			}
			if err := sys.Tell(ref, 6); err != nil { // busy for ever
				t.Fatal(err)
			}
			sent := 0
			for ; err == nil && sent < 10; sent++ {
				err = sys.Tell(ref, make([]byte, size))
			}
			if !errors.Is(err, host.ErrMailboxFull) || sent < 2 || sent > 4 {
				t.Errorf("message %d: %v", sent, err)
			}
		})
	}
}

// TestLimitOfAMessage: what is larger than limits.message says is refused, and what is as large comes in.
func TestLimitOfAMessage(t *testing.T) {
	wasm, err := filepath.Abs("../testdata/large.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for limits, most := range map[string]int{"": 1 << 20, "message: 2MiB": 2 << 20, "message: 4KiB": 4 << 10, "message: 1GiB, memory: 1MiB": 1<<20 - 64} {
		dir := t.TempDir()
		text := "wasmactors: 1\nname: large\nmodules:\n  m: {wasm: " + wasm + "}\nlimits: {" + limits + "}\nactors: {a: {type: large}}\n"
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := open(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		sys, _ := begin(t, b)
		ref, err := sys.Lookup("/user/a")
		if err != nil {
			t.Fatal(err)
		}
		if err := sys.Tell(ref, host.Raw(make([]byte, most))); err != nil {
			t.Errorf("%s: %d bytes: %v", limits, most, err)
		}
		if err := sys.Tell(ref, host.Raw(make([]byte, most+1))); !errors.Is(err, host.ErrTooLarge) {
			t.Errorf("%s: %d bytes: %v", limits, most+1, err)
		}
	}
}
