package compute

import (
	"context"
	"errors"
	goruntime "runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmactors/wasmactors/internal/direct"
	"github.com/wasmactors/wasmactors/internal/rewrite"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasm"
)

// Machine is an instance of a suite's module, initialised.
type Machine struct {
	runtime wazero.Runtime
	call    api.Function
	metered bool
	quantum int64
	granted int64 // by refuel, since the turn began
	Fuel    int64 // what the last turn has spent; metered machines only
}

// Plain instantiates the module as it is.
func Plain(ctx context.Context, s *Suite, cfg wazero.RuntimeConfig) (*Machine, error) {
	m := &Machine{runtime: wazero.NewRuntimeWithConfig(ctx, cfg)}
	mod, err := m.instantiate(ctx, s.Wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	m.call = mod.ExportedFunction("wasmactors_turn")
	return m, nil
}

// Metered instantiates the module as the runtime rewrites it. Quanta are the
// runtime's, and there is no end to them.
func Metered(ctx context.Context, s *Suite, cfg wazero.RuntimeConfig) (*Machine, error) {
	src, err := wasm.Decode(s.Wasm)
	if err != nil {
		return nil, err
	}
	res, err := rewrite.Instrument(src, rewrite.Options{MemoryPages: wasm.MaxPages})
	if err != nil {
		return nil, err
	}
	m := &Machine{runtime: wazero.NewRuntimeWithConfig(ctx, cfg), metered: true, quantum: sandbox.DefaultQuantum}
	if err := m.link(ctx); err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	mod, err := m.instantiate(ctx, direct.Calls(res.Module).Encode(), wazero.NewModuleConfig().WithStartFunctions())
	if err == nil {
		m.call = mod.ExportedFunction(rewrite.ExportEnter)
		_, err = m.enter(ctx, rewrite.EnterInitialize, 0)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return m, nil
}

func (m *Machine) instantiate(ctx context.Context, code []byte, cfg wazero.ModuleConfig) (api.Module, error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, err
	}
	return m.runtime.InstantiateWithConfig(ctx, code, cfg.WithName(""))
}

// link provides what the rewriter's code calls.
func (m *Machine) link(ctx context.Context) error {
	i32, i64 := api.ValueTypeI32, api.ValueTypeI64
	refuel := api.GoFunc(func(_ context.Context, stack []uint64) {
		goruntime.Gosched()
		if int64(stack[0]) >= 0 {
			return
		}
		more := max(m.quantum, -int64(stack[0]))
		m.granted += more
		stack[0] += uint64(more)
	})
	exceeded := api.GoFunc(func(context.Context, []uint64) { panic(errors.New("the stack is exceeded")) })
	_, err := m.runtime.NewHostModuleBuilder(rewrite.ImportModule).
		NewFunctionBuilder().WithGoFunction(refuel, []api.ValueType{i64}, []api.ValueType{i64}).Export(rewrite.ImportRefuel).
		NewFunctionBuilder().WithGoFunction(exceeded, []api.ValueType{i32}, nil).Export(rewrite.ImportExceeded).
		Instantiate(ctx)
	return err
}

// Run runs a program once and returns its checksum.
func (m *Machine) Run(ctx context.Context, p *Program) (uint32, error) { return m.run(ctx, p, p.work) }

// RunSmall is Run with very little work.
func (m *Machine) RunSmall(ctx context.Context, p *Program) (uint32, error) {
	return m.run(ctx, p, p.small)
}

func (m *Machine) run(ctx context.Context, p *Program, work int) (uint32, error) {
	what := uint64(p.index | work<<8)
	if m.metered {
		return m.enter(ctx, rewrite.EnterTurn, what)
	}
	res, err := m.call.Call(ctx, what)
	if err != nil {
		return 0, err
	}
	return uint32(res[0]), nil
}

func (m *Machine) enter(ctx context.Context, op, arg uint64) (uint32, error) {
	m.granted = 0
	res, err := m.call.Call(ctx, op, arg, 1, uint64(m.quantum))
	if err != nil {
		return 0, err
	}
	m.Fuel = int64(res[1]) + m.granted
	return uint32(res[0]), nil
}

// Close releases the machine.
func (m *Machine) Close(ctx context.Context) error { return m.runtime.Close(ctx) }
