package debug

import (
	"context"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmactors/wasmactors/host/replay"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"github.com/wasmactors/wasmactors/internal/wasm"
	"github.com/wasmactors/wasmactors/runtime"
)

// Compiled code keeps the arguments of calls where nobody finds them again. So the present entry is run once more in the
// interpreter, which tells of each call, from the state before the entry up to the present place.

// Bounds of calls that are listened to.
const (
	mostListened  = 100_000 // calls under way
	mostArguments = 16      // of a call
)

// called is a call under way.
type called struct {
	function api.FunctionDefinition
	args     []uint64
}

// ear hears of calls: it is an experimental.FunctionListenerFactory and the listener of each function.
type ear struct {
	calls  []called
	depth  int      // of calls under way, those included that are not kept
	failed []called // the calls under way when the run failed
}

// NewFunctionListener implements experimental.FunctionListenerFactory.
func (l *ear) NewFunctionListener(api.FunctionDefinition) experimental.FunctionListener { return l }

// Before implements experimental.FunctionListener.
func (l *ear) Before(_ context.Context, _ api.Module, f api.FunctionDefinition, args []uint64, _ experimental.StackIterator) {
	if l.depth++; len(l.calls) < mostListened {
		l.calls = append(l.calls, called{f, append([]uint64(nil), args[:min(len(args), mostArguments)]...)})
	}
}

// After implements experimental.FunctionListener.
func (l *ear) After(context.Context, api.Module, api.FunctionDefinition, []uint64) { l.leave() }

// Abort implements experimental.FunctionListener.
func (l *ear) Abort(context.Context, api.Module, api.FunctionDefinition, error) {
	if l.failed == nil {
		l.failed = append(l.failed, l.calls...)
	}
	l.leave()
}

func (l *ear) leave() {
	if l.depth--; l.depth < len(l.calls) {
		l.calls = l.calls[:max(l.depth, 0)]
	}
}

// listener is a second session of the file, in an interpreter.
type listener struct {
	engine  *runtime.Engine
	session *replay.Session
	ear     *ear
}

func (l *listener) close() {
	l.session.Close()
	_ = l.engine.Close(context.Background()) // it never fails
}

// listen opens the second session.
func (d *Debugger) listen(ctx context.Context) error {
	if d.listener != nil {
		return nil
	}
	engine, err := runtime.New(ctx, runtime.NewConfig().WithInterpreter(true))
	if err != nil {
		return err
	}
	l := &listener{engine: engine, ear: &ear{}}
	o := d.options
	if o.Module == nil {
		o.Module = d.session.Module()
	}
	l.session, err = replay.Open(experimental.WithFunctionListenerFactory(ctx, l.ear), engine, d.file, o)
	if err == nil {
		if err = l.session.Begin(); err != nil {
			l.session.Close()
		}
	}
	if err != nil {
		_ = engine.Close(ctx)
		return err
	}
	d.listener = l
	return nil
}

// doArguments shows the calls under way with their arguments.
func (d *Debugger) doArguments(ctx context.Context, args []string, r *Result) error {
	err := none(args)
	if err == nil {
		err = d.listen(ctx)
	}
	if err != nil {
		return err
	}
	here, number := d.at, d.find(d.at.Turn)
	state := d.stateOf(number)
	if state == nil { // it was dropped
		if err := d.prepare(ctx, number); err != nil {
			return err
		}
		if state = d.stateOf(number); state == nil {
			return fmt.Errorf("the state before turn %d cannot be saved", here.Turn)
		}
		if err := d.seek(ctx, here); err != nil {
			return err
		}
	}
	if err := d.ensure(ctx); err != nil {
		return err
	}
	l, to := d.listener, d.position(here)
	if err := l.session.Adopt(d.session, state); err != nil {
		return err
	}
	entry, last := d.load(number)
	var calls []called
	*l.ear = ear{}
	_, err = l.session.Run(ctx, &entry, last, nil, func(in *sandbox.Entry, out *sandbox.Result) {
		sandbox.RunSteps(l.session.Instance(), in, out, to, func(s *sandbox.Steps) {
			calls = append(calls, l.ear.calls...)
			s.End("the arguments are known")
		})
	})
	if err != nil {
		return err
	}
	if calls == nil {
		calls = l.ear.failed
	}
	r.Stack = []Frame{}
	for k := len(calls) - 1; k >= 0 && len(r.Stack) < mostFrames; k-- {
		if f, ok := d.frame(&calls[k]); ok {
			r.Stack = append(r.Stack, f)
		}
	}
	return nil
}

// stateOf is the state before an entry; nil: it is not kept.
func (d *Debugger) stateOf(number int) *replay.State {
	for _, s := range d.states {
		if s.number == number {
			return s.state
		}
	}
	return nil
}

// frame is a call as it is shown; false: it is none of the guest's own.
func (d *Debugger) frame(c *called) (f Frame, ok bool) {
	if _, _, imported := c.function.Import(); imported {
		return f, false
	}
	number := int(c.function.Index()) - len(sandbox.Compiled(d.listener.session.Instance().Image()).ImportedFunctions())
	types := c.function.ParamTypes()
	if m := d.symbols.module; m != nil {
		if number < 0 || number >= len(m.Funcs) {
			return f, false // the host has added it
		}
		types = nil
		for _, t := range m.Types[m.Funcs[number]].Params {
			types = append(types, api.ValueType(t))
		}
	}
	var b strings.Builder
	for k, t := range types {
		if k > 0 {
			b.WriteString(", ")
		}
		if k >= len(c.args) {
			b.WriteString("...")
			break
		}
		b.WriteString(argument(t, c.args[k]))
	}
	return Frame{Function: strings.TrimPrefix(c.function.DebugName(), "."), Arguments: "(" + b.String() + ")"}, true
}

// argument is a value with its type.
func argument(t api.ValueType, v uint64) string {
	switch t {
	case api.ValueType(wasm.I32):
		return fmt.Sprintf("i32=%d", int32(v))
	case api.ValueType(wasm.I64):
		return fmt.Sprintf("i64=%d", int64(v))
	case api.ValueTypeF32:
		return fmt.Sprintf("f32=%v", api.DecodeF32(v))
	case api.ValueTypeF64:
		return fmt.Sprintf("f64=%v", api.DecodeF64(v))
	}
	return fmt.Sprintf("%s=%#x", api.ValueTypeName(t), v)
}
