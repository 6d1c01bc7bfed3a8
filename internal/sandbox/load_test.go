package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasi"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// sketch is a module in the making: a control block at 16, a description, and
// functions that do what a test needs.
type sketch struct {
	control [8]uint32
	about   []byte
	section []byte // a custom section that describes it, nil for none
	m       wasm.Module
}

// newSketch is the least guest that loads.
func newSketch() *sketch {
	s := &sketch{control: [8]uint32{1, 0x1000, 1024, 0x2000, 1024, 96, 0, 0}}
	s.about = abi.AppendDescription(nil, &abi.Description{ABI: 1, SDK: "sketch", Types: []string{"a"}})
	s.control[6] = uint32(len(s.about))
	s.m = wasm.Module{
		Types: []wasm.FuncType{
			{Results: []wasm.ValType{wasm.I32}},
			{Params: []wasm.ValType{wasm.I32}, Results: []wasm.ValType{wasm.I32}},
			{},
		},
		Funcs:    []uint32{0, 1},
		Memories: []wasm.Limits{{Min: 1}},
		Exports: []wasm.Export{
			{Name: "memory", Kind: wasm.KindMemory},
			{Name: "wasmactors_init", Kind: wasm.KindFunc, Index: 0},
			{Name: "wasmactors_turn", Kind: wasm.KindFunc, Index: 1},
		},
		Code: []wasm.Body{
			{Code: []byte{wasm.OpI32Const, 16, wasm.OpEnd}},
			{Code: []byte{wasm.OpI32Const, 0, wasm.OpEnd}},
		},
	}
	return s
}

func (s *sketch) bytes() []byte {
	var block []byte
	for _, v := range s.control {
		block = binary.LittleEndian.AppendUint32(block, v)
	}
	at := func(v int64) wasm.Expr {
		return append(wasm.AppendS64(wasm.Expr{wasm.OpI32Const}, v), wasm.OpEnd)
	}
	m := s.m
	if len(m.Memories) > 0 {
		m.Data = append([]wasm.Data{{Offset: at(16), Bytes: block}, {Offset: at(96), Bytes: s.about}}, m.Data...)
	}
	if s.section != nil {
		m.Customs = append(m.Customs, wasm.Custom{Name: abi.Section, Data: s.section})
	}
	return m.Encode()
}

// imports adds function imports, before the module's own functions.
func (s *sketch) imports(t *testing.T, list ...wasm.Import) {
	t.Helper()
	s.m.Imports = append(s.m.Imports, list...)
	for i := range s.m.Exports {
		if s.m.Exports[i].Kind == wasm.KindFunc {
			s.m.Exports[i].Index += uint32(len(list))
		}
	}
}

func TestRefusedModulesAreToldWhy(t *testing.T) {
	e := newEngine(t, NewConfig())
	for _, c := range []struct {
		want   string
		change func(s *sketch)
	}{
		{"", func(s *sketch) {}},
		{"ABI version 2, this host version 1", func(s *sketch) { s.control[0] = 2 }},
		{"unknown flags: 0x4", func(s *sketch) { s.control[7] = 4 }},
		{"the inbox has 1023 bytes; 1024 to 16777216 are allowed", func(s *sketch) { s.control[2] = 1023 }},
		{"the outbox has 4294967295 bytes", func(s *sketch) { s.control[4] = 1<<32 - 1 }},
		{"the outbox (1024 bytes at 0xfffffff0) lies outside", func(s *sketch) { s.control[3] = 0xfffffff0 }},
		{"the inbox (1024 bytes at 0xfff0) lies outside", func(s *sketch) { s.control[1] = 0xfff0 }},
		{"the inbox and the outbox overlap", func(s *sketch) { s.control[3] = 0x13ff }},
		{"the control block at 0xfff4 lies outside", func(s *sketch) {
			s.m.Code[0].Code = append(wasm.AppendS64([]byte{wasm.OpI32Const}, 0xfff4), wasm.OpEnd)
		}},
		{"the control block at 0xfffffff0 lies outside", func(s *sketch) { s.m.Code[0].Code = []byte{wasm.OpI32Const, 0x70, wasm.OpEnd} }},
		{"does not describe itself", func(s *sketch) { s.control[5], s.control[6] = 0, 0 }},
		{"lies outside of the memory", func(s *sketch) { s.control[6] = 1 << 31 }},
		{"the description in the control block is malformed", func(s *sketch) { s.about[0] = 0xff }},
		{`the custom section "wasmactors" is malformed`, func(s *sketch) { s.section = []byte{0xa0} }},
		{"", func(s *sketch) { s.section, s.control[5], s.control[6] = s.about, 0, 0 }},
		{"describes itself as ABI version 7", func(s *sketch) {
			s.section = abi.AppendDescription(nil, &abi.Description{ABI: 7, SDK: "x", Types: []string{"a"}})
		}},
		{`does not export the function "wasmactors_init"`, func(s *sketch) { s.m.Exports[1].Name = "init" }},
		{`does not export the function "wasmactors_turn"`, func(s *sketch) { s.m.Exports[2].Name = "turn" }},
		{`does not export its memory as "memory"`, func(s *sketch) { s.m.Exports[0].Name = "mem" }},
		{"needs a memory of 65600 KiB, the limit is 64 MiB", func(s *sketch) { s.m.Memories[0].Min = 1025 }},
		{`unknown import "env"."abort"`, func(s *sketch) {
			s.m.Imports = []wasm.Import{{Module: "env", Name: "abort", Kind: wasm.KindFunc}}
		}},
		{`unknown import "wasmactors"."send"`, func(s *sketch) {
			s.m.Imports = []wasm.Import{{Module: "wasmactors", Name: "send", Kind: wasm.KindFunc}}
		}},
		{`unknown import "wasi_snapshot_preview1"."fd_fly"`, func(s *sketch) {
			s.m.Imports = []wasm.Import{{Module: wasi.Module, Name: "fd_fly", Kind: wasm.KindFunc}}
		}},
		{`the import "wasmactors"."log" has the wrong type`, func(s *sketch) {
			s.m.Imports = []wasm.Import{{Module: "wasmactors", Name: "log", Kind: wasm.KindFunc, Func: 1}}
		}},
		{"the initialisation failed: trap: unreachable", func(s *sketch) { s.m.Code[0].Code = []byte{wasm.OpUnreachable, wasm.OpEnd} }},
		{"the initialisation failed: fuel", func(s *sketch) {
			s.m.Code[0].Code = []byte{wasm.OpLoop, 0x40, wasm.OpBr, 0, wasm.OpEnd, wasm.OpUnreachable, wasm.OpEnd}
		}},
		{"the rewritten module is refused", func(s *sketch) { s.m.Code[1].Code = []byte{wasm.OpEnd} }}, // type error
		{"the rewritten module is refused", func(s *sketch) { // a data segment outside of the memory
			s.m.Data = []wasm.Data{{Offset: wasm.Expr{wasm.OpI32Const, 0x7f, wasm.OpEnd}, Bytes: []byte{1}}}
		}},
	} {
		s := newSketch()
		c.change(s)
		i, err := e.Load(context.Background(), s.bytes(), ImageConfig{Name: "bank", InitFuel: 1_000_000})
		if c.want == "" {
			if err != nil {
				t.Errorf("refused: %v", err)
			} else {
				i.Close()
			}
			continue
		}
		var le *LoadError
		if !errors.As(err, &le) || !strings.HasPrefix(err.Error(), "bank: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for name, raw := range map[string][]byte{"nothing": nil, "text": []byte("hello"), "a component": []byte("\x00asm\x0d\x00\x01\x00")} {
		var le *LoadError
		if _, err := e.Load(context.Background(), raw, ImageConfig{}); !errors.As(err, &le) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, cfg := range []ImageConfig{{Env: []string{"novalue"}}, {MemoryLimit: 100}, {Dirs: []wasi.Dir{{Host: "/does/not/exist", Guest: "/x"}}}} {
		var le *LoadError
		if _, err := e.Load(context.Background(), newSketch().bytes(), cfg); !errors.As(err, &le) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestAllImportsLink: every function that docs/abi.md promises can be imported.
func TestAllImportsLink(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		s := newSketch()
		var list []wasm.Import
		add := func(module, name string, params, results []byte) {
			ft := wasm.FuncType{}
			for _, p := range params {
				ft.Params = append(ft.Params, wasm.ValType(p))
			}
			for _, r := range results {
				ft.Results = append(ft.Results, wasm.ValType(r))
			}
			s.m.Types = append(s.m.Types, ft)
			list = append(list, wasm.Import{Module: module, Name: name, Kind: wasm.KindFunc, Func: uint32(len(s.m.Types) - 1)})
		}
		add(abi.Module, "next", []byte{i32}, []byte{i32})
		for _, f := range guestFuncs {
			add(abi.Module, f.name, f.params, f.results)
		}
		for _, f := range wasi.Functions() {
			add(wasi.Module, f.Name, f.Params, f.Results)
		}
		s.imports(t, list...)
		i, err := e.Load(context.Background(), s.bytes(), ImageConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(i.Info().Imports); n != len(list) || !Batching(i) {
			t.Errorf("%d of %d imports", n, len(list))
		}
		x := get(t, i)
		x.Put()
	})
}

func TestDirtyTableIsNotFrozen(t *testing.T) {
	e := newEngine(t, NewConfig())
	s := newSketch()
	s.m.Tables = []wasm.Table{{Elem: wasm.FuncRef, Limits: wasm.Limits{Min: 4}}}
	s.m.Code[0].Code = []byte{wasm.OpI32Const, 0, wasm.OpRefNull, byte(wasm.FuncRef), wasm.OpTableSet, 0, wasm.OpI32Const, 16, wasm.OpEnd}
	i, err := e.Load(context.Background(), s.bytes(), ImageConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if i.Frozen() || !strings.Contains(i.Info().NotFrozen, "table") {
		t.Errorf("%+v", i.Info())
	}
	x := get(t, i)
	defer x.Put()
	push(t, x, 0)
	if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
		t.Error(out.Failure, err)
	}
}

// TestCache: the second engine finds what the first has made, whatever happens to
// the files, it never runs anything wrong.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	visit := func(t *testing.T, cached bool, warned bool) {
		t.Helper()
		var warnings bytes.Buffer
		e := newEngine(t, NewConfig().WithCacheDir(dir).WithLog(slog.New(slog.NewTextHandler(&warnings, nil))))
		i := load(t, e, "echo", ImageConfig{})
		if i.Info().Cached != cached {
			t.Errorf("cached: %v", i.Info().Cached)
		}
		if (warnings.Len() > 0) != warned {
			t.Errorf("warnings: %q", warnings.String())
		}
		if d := i.Description(); d.SDK != "wat/1" || !d.Has("echo") {
			t.Errorf("%+v", d)
		}
		x := get(t, i)
		defer x.Put()
		push(t, x, 0, 10)
		if out, turns, err := run(t, x, entry()); out.Failure != nil || err != nil || turns[1][0].Correlation != 2 {
			t.Error(out.Failure, err)
		}
	}
	visit(t, false, false)
	visit(t, true, false)
	files := func(match func(path string) bool) (found []string) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && match(path) {
				found = append(found, path)
			}
			return nil
		})
		return found
	}
	images := files(func(p string) bool { return filepath.Base(p) == "image" })
	codes := files(func(p string) bool { return filepath.Base(p) == "code" })
	if len(images) != 1 || len(codes) == 0 {
		t.Fatalf("%q %q", images, codes)
	}
	if err := os.Truncate(images[0], 100); err != nil {
		t.Fatal(err)
	}
	visit(t, false, true) // built anew
	visit(t, true, false)
	for _, damage := range []func(raw []byte) []byte{
		func(raw []byte) []byte { return raw[:len(raw)/2] },
		func([]byte) []byte { return []byte("nonsense") },
		func(raw []byte) []byte { raw[30] ^= 4; return raw }, // where a function begins, say
		func([]byte) []byte { return nil },
	} {
		for _, f := range codes {
			raw, err := os.ReadFile(f)
			if err == nil {
				err = os.WriteFile(f, damage(raw), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			visit(t, true, true) // compiled anew
			visit(t, true, false)
		}
	}
	if err := os.RemoveAll(filepath.Join(filepath.Dir(images[0]), "code")); err != nil {
		t.Fatal(err)
	}
	visit(t, true, false)
	if err := os.Remove(filepath.Join(filepath.Dir(images[0]), "module")); err != nil {
		t.Fatal(err)
	}
	visit(t, true, false) // not needed
	if err := os.RemoveAll(filepath.Join(filepath.Dir(images[0]), "code")); err != nil {
		t.Fatal(err)
	}
	visit(t, false, false) // needed
	if err := os.RemoveAll(filepath.Dir(images[0])); err != nil {
		t.Fatal(err)
	}
	visit(t, false, false)
}

func TestCacheKeyCoversTheConfiguration(t *testing.T) {
	seen := map[string]int{}
	for n, cfg := range []ImageConfig{{}, {MemoryLimit: 1 << 20}, {TableLimit: 5}, {StackLimit: 5}, {Env: []string{"A=b"}}, {Env: []string{"A=c"}}, {NoFreeze: true}, {InitFuel: 5}, {GlobalLimit: 5}, {DataLimit: 5}, {SizeLimit: 5}, {Dirs: []wasi.Dir{{Guest: "/"}}}} {
		key := imageKey([32]byte{1}, &cfg).String()
		if m, ok := seen[key]; ok {
			t.Errorf("configurations %d and %d share a key", m, n)
		}
		seen[key] = n
	}
	a, b := ImageConfig{Name: "a"}, ImageConfig{Name: "b", InstanceLimit: 5}
	if imageKey([32]byte{}, &a) != imageKey([32]byte{}, &b) {
		t.Error("the name or the number of instances is part of the key")
	}
}

func TestCacheThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	e := newEngine(t, NewConfig().WithCacheDir(filepath.Join(file, "x")).WithLog(slog.New(slog.NewTextHandler(&warnings, nil))))
	if warnings.Len() == 0 {
		t.Error("no warning")
	}
	x := get(t, load(t, e, "echo", ImageConfig{}))
	defer x.Put()
	push(t, x, 0)
	if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
		t.Error(out.Failure, err)
	}
}

// TestTwoEnginesOneCache loads the same modules from several engines at once, as
// processes that share a directory do.
func TestTwoEnginesOneCache(t *testing.T) {
	dir := t.TempDir()
	done := make(chan error)
	const engines = 4
	for range engines {
		e := newEngine(t, NewConfig().WithCacheDir(dir).WithCacheBytes(100_000))
		go func() {
			var failed error
			for n := range 6 {
				raw, err := os.ReadFile(filepath.Join("testdata", []string{"echo", "single"}[n%2]+".wasm"))
				if err != nil {
					failed = err
					break
				}
				i, err := e.Load(context.Background(), raw, ImageConfig{StackLimit: uint32(100_000 + n)})
				if err != nil {
					failed = err
					break
				}
				x, err := Get(i)
				if err != nil {
					failed = err
					break
				}
				var out Result
				x.Push(message(0))
				x.Run(entry(), &out)
				if out.Failure != nil {
					failed = out.Failure
				}
				x.Put()
				i.Close()
			}
			done <- failed
		}()
	}
	for range engines {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestRecord(t *testing.T) {
	r := &record{outline: []byte("outline"), memory: make([]byte, 3<<16)}
	r.meta.MemoryBytes = 3 << 16
	r.meta.Control = control{Inbox: 0, InboxCap: 1024, Outbox: 1024, OutboxCap: 1024}
	r.memory[5], r.memory[100_000] = 1, 2
	raw := r.encode()
	got, err := decodeRecord(raw)
	if err != nil || !bytes.Equal(got.memory, r.memory) || string(got.outline) != "outline" || got.meta.Control != r.meta.Control {
		t.Fatal("not what was written", err)
	}
	for n := range raw { // it is checked, not trusted, though it has a checksum
		if got, err := decodeRecord(raw[:n]); err == nil && len(got.memory) != 3<<16 {
			t.Errorf("cut at %d: accepted", n)
		}
	}
}

func FuzzRecord(f *testing.F) {
	r := &record{outline: []byte("m"), memory: make([]byte, 1<<16)}
	r.meta.MemoryBytes = 1 << 16
	r.meta.Control = control{InboxCap: 1024, Outbox: 1024, OutboxCap: 1024}
	r.memory[7] = 1
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<20 {
			return
		}
		r, err := decodeRecord(raw)
		if err == nil && r.meta.NotFrozen == "" && uint64(len(r.memory)) != r.meta.MemoryBytes {
			t.Error("a memory of the wrong size")
		}
	})
}

// TestDirectories: a guest with files is frozen too, but not kept on disk, since
// what it read may have changed.
func TestDirectories(t *testing.T) {
	cache, data := t.TempDir(), t.TempDir()
	for range 2 {
		e := newEngine(t, NewConfig().WithCacheDir(cache))
		s := newSketch()
		i, err := e.Load(context.Background(), s.bytes(), ImageConfig{Dirs: []wasi.Dir{{Host: data, Guest: "/data", ReadOnly: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if !i.Frozen() || i.Info().Cached {
			t.Errorf("%+v", i.Info())
		}
		x := get(t, i)
		push(t, x, 0)
		if out, _, err := run(t, x, entry()); out.Failure != nil || err != nil {
			t.Error(out.Failure, err)
		}
		if err := x.Reset(); err != nil {
			t.Error(err)
		}
		x.Put()
	}
}
