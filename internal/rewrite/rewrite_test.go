package rewrite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/wasmactors/wasmactors/internal/thorough"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// host runs rewritten modules with the least that they need.
type host struct {
	runtime wazero.Runtime
	refuel  func(fuel int64) int64 // nil: out of fuel
}

var (
	errFuel  = errors.New("out of fuel")
	errStack = errors.New("stack exceeded")
	errHost  = errors.New("host function called")
)

func newHost(t testing.TB, cfg wazero.RuntimeConfig) *host {
	ctx := context.Background()
	h := &host{runtime: wazero.NewRuntimeWithConfig(ctx, cfg)}
	t.Cleanup(func() { h.runtime.Close(ctx) })
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	b := h.runtime.NewHostModuleBuilder(ImportModule)
	b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, st []uint64) {
		switch {
		case h.refuel != nil:
		case int64(st[0]) >= 0:
			return
		default:
			panic(errFuel)
		}
		st[0] = uint64(h.refuel(int64(st[0])))
	}), []api.ValueType{i64}, []api.ValueType{i64}).Export(ImportRefuel)
	b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errStack) }), []api.ValueType{i32}, nil).Export(ImportExceeded)
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

// stub exports functions that fail, for the imports of m other than ours.
func (h *host) stub(t testing.TB, m *wasm.Module) {
	ctx := context.Background()
	builders := map[string]wazero.HostModuleBuilder{}
	done := map[string]bool{}
	for i := range m.Imports {
		imp := &m.Imports[i]
		key := imp.Module + "." + imp.Name
		if imp.Module == ImportModule || done[key] || h.runtime.Module(imp.Module) != nil {
			continue
		}
		done[key] = true
		if builders[imp.Module] == nil {
			builders[imp.Module] = h.runtime.NewHostModuleBuilder(imp.Module)
		}
		typ := m.Types[imp.Func]
		builders[imp.Module].NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errHost) }),
			toBytes(typ.Params), toBytes(typ.Results)).Export(imp.Name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

type instance struct {
	t     testing.TB
	mod   api.Module
	enter api.Function
}

func (h *host) instantiate(t testing.TB, m *wasm.Module) *instance {
	t.Helper()
	mod, err := h.runtime.InstantiateWithConfig(context.Background(), m.Encode(), wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return &instance{t, mod, mod.ExportedFunction(ExportEnter)}
}

func (x *instance) call(op, a, b uint64, fuel int64) (uint64, uint64, error) {
	res, err := x.enter.Call(context.Background(), op, a, b, uint64(fuel))
	if err != nil {
		return 0, 0, err
	}
	return res[0], res[1], nil
}

func (x *instance) global(name string) uint64 { return x.mod.ExportedGlobal(name).Get() }

func read(t testing.TB, path string) *wasm.Module {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func instrument(t testing.TB, m *wasm.Module, o Options) *Result {
	t.Helper()
	res, err := Instrument(m, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func engines() map[string]wazero.RuntimeConfig {
	return map[string]wazero.RuntimeConfig{"compiler": wazero.NewRuntimeConfigCompiler(), "interpreter": wazero.NewRuntimeConfigInterpreter()}
}

// TestHostileGuests runs every hostile guest that loads and expects that it ends.
func TestHostileGuests(t *testing.T) {
	files, _ := filepath.Glob("../../host/testdata/hostile/*.wasm")
	if len(files) < 40 {
		t.Fatalf("%d guests", len(files))
	}
	for engine, cfg := range engines() {
		for _, path := range files {
			name := strings.TrimSuffix(filepath.Base(path), ".wasm")
			t.Run(engine+"/"+name, func(t *testing.T) {
				head, err := os.ReadFile(strings.TrimSuffix(path, ".wasm") + ".wat")
				if err != nil {
					t.Fatal(err)
				}
				_, want, _ := strings.Cut(string(head), "fails as: ")
				want, _, _ = strings.Cut(want, "\n")
				if want == "refused" || strings.HasPrefix(name, "grow-memory") {
					t.Skip("not here")
				}
				res := instrument(t, read(t, path), Options{})
				h := newHost(t, cfg)
				h.stub(t, res.Module)
				x := h.instantiate(t, res.Module)
				mem := x.mod.Memory()
				mem.Write(0x1000, []byte{0x86, 0, 0, 0, 0, 0xf6, 0x40})
				fuel := int64(50_000_000)
				if engine == "interpreter" {
					fuel = thorough.Of[int64](5_000_000, fuel)
				}
				_, _, err = x.call(EnterTurn, 7, 1, fuel)
				switch {
				case errors.Is(err, errHost): // beyond this test
				case engine == "interpreter" && want == "stack_overflow" && err != nil: // its own limit is lower
				case want == "fuel" && !errors.Is(err, errFuel),
					want == "stack_overflow" && !errors.Is(err, errStack),
					want == "trap" && (err == nil || errors.Is(err, errFuel) || errors.Is(err, errStack)):
					t.Errorf("want %s, got %v", want, err)
				}
			})
		}
	}
}

func TestPingTurnsAndFuel(t *testing.T) {
	var spent []uint64
	for _, cfg := range engines() {
		res := instrument(t, read(t, "../../bench/guests/ping.wasm"), Options{})
		if !res.Batching {
			t.Fatal("next is not seen")
		}
		h := newHost(t, cfg)
		x := h.instantiate(t, res.Module)
		if r, _, err := x.call(EnterInit, 0, 0, 1000); err != nil || r != 16 {
			t.Fatal(r, err)
		}
		one := []byte{0x86, 0, 0, 7, 0, 0xf6, 0x45, 0x1a, 0, 0, 0, 9}
		bad := []byte{0x86, 0, 0, 7, 0, 0xf6, 0x41, 0x00}
		x.mod.Memory().Write(0x1000, append(append([]byte(nil), one...), one...))
		r, fuel, err := x.call(EnterTurn, 24, 2, 1000)
		if err != nil || r>>32 != 2 || uint32(r) != 26 {
			t.Fatal(r>>32, uint32(r), err)
		}
		spent = append(spent, fuel)
		// The third turn traps: two have ended, and what they wrote is known.
		x.mod.Memory().Write(0x1000, append(append(append([]byte(nil), one...), one...), bad...))
		if _, _, err = x.call(EnterTurn, 32, 3, 1000); err == nil {
			t.Fatal("no trap")
		}
		if x.global(GlobalBegun) != 3 || x.global(GlobalEnded) != 2 || x.global(GlobalOut) != 26 {
			t.Errorf("begun %d, ended %d, out %d", x.global(GlobalBegun), x.global(GlobalEnded), x.global(GlobalOut))
		}
	}
	if spent[0] != spent[1] || spent[0] == 0 {
		t.Errorf("the engines disagree about the fuel: %d", spent)
	}
}

func TestFreezeAndReset(t *testing.T) {
	h := newHost(t, wazero.NewRuntimeConfigCompiler())
	res := instrument(t, read(t, "../../bench/guests/ping.wasm"), Options{})
	frozen, err := Freeze(res, State{Globals: []Value{{Lo: 0x1234}, {Lo: 0xffffffff}}, Pages: 2})
	if err != nil {
		t.Fatal(err)
	}
	x := h.instantiate(t, frozen)
	if size := x.mod.Memory().Size(); size != 2<<16 {
		t.Errorf("memory of %d bytes", size)
	}
	if b, _ := x.mod.Memory().ReadByte(16); b != 0 {
		t.Error("the data segments are still there")
	}
	if _, _, err := x.call(EnterReset, 0, 0, 0); err != nil {
		t.Error(err)
	}
	if _, _, err := x.call(EnterInitialize, 0, 0, 1000); err == nil {
		t.Error("a frozen module can be initialised again")
	}
	for _, dirty := range []uint32{DirtyTable, DirtySegment} {
		if _, err := Freeze(res, State{Globals: make([]Value, 2), Pages: 1, Dirty: dirty}); !errors.Is(err, ErrNotFreezable) {
			t.Error(err)
		}
	}
}
