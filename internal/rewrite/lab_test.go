package rewrite

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/internal/wasmgen"
)

// lab runs generated modules on one engine. Its host functions answer the same
// every time, and note what they were asked.
type lab struct {
	engine  string
	runtime wazero.Runtime
	memory  func() []byte // of the module that runs
	calls   []uint64      // of the step that runs: what each has looked like
	most    int           // calls, 0 for any number
	subject *subject      // that runs
	begun   uint32        // what an original's next has let begin
	count   uint32
	quantum int64 // what refuel grants, 0 for nothing
	account
}

// account of the fuel that was granted. What a batching module does before its
// first turn and after its last belongs to no turn.
type account struct {
	phase            uint64 // odd while a turn runs
	granted, earlier uint64 // to this phase, and to turns that have ended
}

func (a *account) enter(phase uint64) {
	if phase == a.phase {
		return
	}
	if a.phase%2 == 1 {
		a.earlier += a.granted
	}
	a.phase, a.granted = phase, 0
}

var errCalls = errors.New("too many host calls")

var hashSeed = maphash.MakeSeed()

func newLab(t testing.TB, engine string, cfg wazero.RuntimeConfig) *lab {
	ctx := context.Background()
	l := &lab{engine: engine, runtime: wazero.NewRuntimeWithConfig(ctx, cfg)}
	t.Cleanup(func() { l.runtime.Close(ctx) })
	build := func(module string, names []string, funcs []wasm.FuncType, f func(i int, stack []uint64)) {
		b := l.runtime.NewHostModuleBuilder(module)
		for i, name := range names {
			b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { f(i, stack) }),
				toBytes(funcs[i].Params), toBytes(funcs[i].Results)).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i := range wasmgen.HostFuncs {
		names = append(names, wasmgen.HostName(i))
	}
	build(wasmgen.HostModule, names, wasmgen.HostFuncs, l.answer)
	one := func(t wasm.ValType) []wasm.ValType { return []wasm.ValType{t} }
	build("wasmactors", []string{"next"}, []wasm.FuncType{{Params: one(wasm.I32), Results: one(wasm.I32)}}, func(_ int, stack []uint64) {
		stack[0] = 0
		if l.begun < l.count {
			l.begun++
			stack[0] = 1
		}
	})
	build(ImportModule, []string{ImportRefuel, ImportExceeded}, []wasm.FuncType{{Params: one(wasm.I64), Results: one(wasm.I64)}, {Params: one(wasm.I32)}}, l.meter)
	return l
}

func newLabs(t testing.TB) []*lab {
	return []*lab{newLab(t, "compiler", wazero.NewRuntimeConfigCompiler()), newLab(t, "interpreter", wazero.NewRuntimeConfigInterpreter())}
}

// answer is host function i.
func (l *lab) answer(i int, stack []uint64) {
	if l.most > 0 && len(l.calls) >= l.most {
		panic(errCalls)
	}
	sig := &wasmgen.HostFuncs[i]
	mix := uint64(len(l.calls)*31 + i + 1)
	for k, p := range sig.Params {
		v := stack[k]
		if p == wasm.I32 || p == wasm.F32 {
			v = uint64(uint32(v))
		}
		mix = (mix ^ v) * 0x9e3779b97f4a7c15
		mix ^= mix >> 29
	}
	mem := l.memory()
	l.calls = append(l.calls, mix^maphash.Bytes(hashSeed, mem[:min(len(mem), 1<<12)]))
	for k, r := range sig.Results {
		switch v := mix >> k; r {
		case wasm.I32, wasm.F32:
			stack[k] = uint64(uint32(v))
		case wasm.ExternRef:
			stack[k] = v&1 + 1
		default:
			stack[k] = v
		}
	}
}

func (l *lab) meter(i int, stack []uint64) {
	switch {
	case i == 1:
		panic(errStack)
	case int64(stack[0]) >= 0:
		return
	case l.quantum == 0:
		panic(errFuel)
	}
	l.enter(l.subject.phase())
	left := int64(stack[0])
	more := (-left/l.quantum + 1) * l.quantum
	l.granted += uint64(more)
	stack[0] = uint64(left + more)
}

// step is one entry into a module.
type step struct {
	op, a, b uint32
}

// script is what is done with a module: it is initialised, then it has turns.
var script = []step{{EnterInitialize, 0, 0}, {EnterInit, 0, 0}, {EnterTurn, 0, 1}, {EnterTurn, 7, 3}, {EnterTurn, 0x80000001, 2}}

// turns is the part of the script that frozen modules have.
const firstTurn = 2

// moment is all that can be seen of a module after a step.
type moment struct {
	result uint64
	begun  uint64 // of batching modules
	trap   string
	calls  []uint64
	pages  uint32
	memory uint64   // a hash
	state  []uint64 // globals and tables
	fuel   uint64   // of rewritten modules: what was spent; not compared
}

func (a *moment) same(b *moment) bool {
	return a.result == b.result && a.begun == b.begun && a.trap == b.trap && slices.Equal(a.calls, b.calls) && a.pages == b.pages && a.memory == b.memory && slices.Equal(a.state, b.state)
}

func (a *moment) String() string {
	return fmt.Sprintf("{result %#x, begun %d, trap %q, %d calls, %d pages, memory %x, state %x, fuel %d}", a.result, a.begun, a.trap, len(a.calls), a.pages, a.memory, a.state, a.fuel)
}

// subject is an instance, original or rewritten.
type subject struct {
	lab      *lab
	mod      api.Module
	compiled wazero.CompiledModule // if it is closed with the instance
	enter    api.Function          // nil for the original
	batching bool
	tables   int // that can be observed
	globals  int // how much of what is observed are globals
}

// start makes an instance of m, which is closed by close.
func (l *lab) start(m *wasm.Module, batching bool) (*subject, error) {
	c, err := l.runtime.CompileModule(l.context(), m.Encode())
	if err != nil {
		return nil, fmt.Errorf("%s refuses: %w", l.engine, err)
	}
	s, err := l.instance(c, batching)
	if err != nil {
		c.Close(l.context())
		return nil, err
	}
	s.compiled = c
	return s, nil
}

// instance makes one of c, which stays open.
func (l *lab) instance(c wazero.CompiledModule, batching bool) (*subject, error) {
	s := &subject{lab: l, batching: batching}
	var err error
	s.mod, err = l.runtime.InstantiateModule(l.context(), c, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, &uninstantiable{firstLine(err)}
	}
	s.enter = s.mod.ExportedFunction(ExportEnter)
	for s.mod.ExportedFunction(fmt.Sprint(obsSize, s.tables)) != nil {
		s.tables++
	}
	return s, nil
}

// uninstantiable is how a module fails whose segments do not fit.
type uninstantiable struct{ trap string }

func (e *uninstantiable) Error() string { return "not instantiated: " + e.trap }

func (l *lab) context() context.Context { return context.Background() }

func (s *subject) close() {
	s.mod.Close(s.lab.context())
	if s.compiled != nil {
		s.compiled.Close(s.lab.context())
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line, _, _ = strings.Cut(line, " (recovered by wazero)")
	return line
}

// run takes one step.
func (s *subject) run(st step, fuel uint64) *moment {
	l := s.lab
	l.calls, l.begun, l.count = nil, 0, st.b
	l.subject, l.account = s, account{}
	l.memory = func() []byte { b, _ := s.mod.Memory().Read(0, s.mod.Memory().Size()); return b }
	m := &moment{}
	var err error
	if s.enter != nil {
		m.result, m.begun, err = s.rewritten(st, fuel)
		m.fuel = s.spent(st)
	} else {
		m.result, err = s.original(st)
		m.begun = uint64(l.begun)
	}
	if !s.batching || err != nil {
		m.begun = 0
	}
	if err != nil {
		m.trap = firstLine(err)
		m.result = 0
	}
	m.calls = l.calls
	mem := l.memory()
	m.pages = uint32(len(mem) >> 16)
	m.memory = maphash.Bytes(hashSeed, mem)
	m.state = s.observe()
	return m
}

func (s *subject) rewritten(st step, fuel uint64) (result, begun uint64, err error) {
	res, err := s.enter.Call(context.Background(), uint64(st.op), uint64(st.a), uint64(st.b), fuel)
	if err != nil {
		return 0, 0, err
	}
	if st.op == EnterTurn {
		return uint64(uint32(res[0])), res[0] >> 32, nil
	}
	return res[0], 0, nil
}

func (s *subject) original(st step) (uint64, error) {
	call := func(name string, args ...uint64) (uint64, error) {
		f := s.mod.ExportedFunction(name)
		if f == nil {
			return 0, nil
		}
		res, err := f.Call(context.Background(), args...)
		if err != nil || len(res) == 0 {
			return 0, err
		}
		return res[0], nil
	}
	switch st.op {
	case EnterInitialize:
		if _, err := call(obsStart); err != nil {
			return 0, err
		}
		return call("_initialize")
	case EnterInit:
		return call("wasmactors_init")
	}
	return call("wasmactors_turn", uint64(st.a))
}

func (s *subject) phase() uint64 { return s.global(GlobalBegun) + s.global(GlobalEnded) }

// spent is what the step's turns have cost so far.
func (s *subject) spent(st step) uint64 {
	l := s.lab
	l.enter(s.phase())
	total := s.global(GlobalSpent) + l.earlier
	if st.op != EnterTurn || l.phase%2 == 1 {
		total += s.global(GlobalQuantum) + l.granted - s.global(GlobalFuel)
	}
	return total
}

func (s *subject) global(name string) uint64 { return s.mod.ExportedGlobal(name).Get() }
