package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// naiveHost runs actors the way a first version would: it instantiates the
// module for every actor, calls an export for every message and takes every
// answer through a host call. No metering, no images, no limits.
type naiveHost struct {
	ctx      context.Context
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	queue    []naiveMessage
	head     int
	actors   []*naiveActor
}

type naiveMessage struct {
	to, from int32
	payload  []byte
}

type naiveActor struct {
	id      int32
	mod     api.Module
	receive api.Function
	buffer  uint32
	stack   [3]uint64
}

type naiveKey struct{}

// newNaiveHost compiles wasm with wazero's defaults and links the one import.
func newNaiveHost(ctx context.Context, wasm []byte) (*naiveHost, error) {
	return newNaiveHostWith(ctx, wasm, wazero.NewRuntimeConfig())
}

func newNaiveHostWith(ctx context.Context, wasm []byte, cfg wazero.RuntimeConfig) (*naiveHost, error) {
	h := &naiveHost{ctx: ctx, runtime: wazero.NewRuntimeWithConfig(ctx, cfg)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, h.runtime); err != nil {
		return nil, err
	}
	send := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
		from := ctx.Value(naiveKey{}).(*naiveActor)
		view, ok := m.Memory().Read(uint32(stack[1]), uint32(stack[2]))
		if !ok {
			panic("out of bounds")
		}
		h.queue = append(h.queue, naiveMessage{to: int32(stack[0]), from: from.id, payload: append([]byte(nil), view...)})
	})
	i32 := api.ValueTypeI32
	_, err := h.runtime.NewHostModuleBuilder("env").NewFunctionBuilder().
		WithGoModuleFunction(send, []api.ValueType{i32, i32, i32}, nil).Export("send").Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	h.compiled, err = h.runtime.CompileModule(ctx, wasm)
	return h, err
}

// spawn instantiates the module and runs its initialisation.
func (h *naiveHost) spawn() (*naiveActor, error) {
	a := &naiveActor{id: int32(len(h.actors))}
	if err := h.instantiate(a); err != nil {
		return nil, err
	}
	h.actors = append(h.actors, a)
	return a, nil
}

func (h *naiveHost) instantiate(a *naiveActor) error {
	cfg := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithRandSource(rand.Reader).WithStderr(io.Discard)
	mod, err := h.runtime.InstantiateModule(h.ctx, h.compiled, cfg)
	if err != nil {
		return err
	}
	a.mod, a.receive = mod, mod.ExportedFunction("receive")
	res, err := mod.ExportedFunction("buffer").Call(h.ctx)
	if err != nil {
		return err
	}
	a.buffer = uint32(res[0])
	return nil
}

// restart does what a host without images can do: close and instantiate again.
func (h *naiveHost) restart(a *naiveActor) error {
	if err := a.mod.Close(h.ctx); err != nil {
		return err
	}
	return h.instantiate(a)
}

func (h *naiveHost) deliver(ctx context.Context, a *naiveActor, m naiveMessage) error {
	if !a.mod.Memory().Write(a.buffer, m.payload) {
		return fmt.Errorf("the message does not fit")
	}
	a.stack = [3]uint64{uint64(m.from), uint64(a.buffer), uint64(len(m.payload))}
	return a.receive.CallWithStack(ctx, a.stack[:])
}

// run delivers queued messages, n at most.
func (h *naiveHost) run(contexts []context.Context, n int) error {
	for ; n > 0 && h.head < len(h.queue); n-- {
		m := h.queue[h.head]
		h.queue[h.head] = naiveMessage{}
		h.head++
		if h.head == len(h.queue) {
			h.queue, h.head = h.queue[:0], 0
		}
		if err := h.deliver(contexts[m.to], h.actors[m.to], m); err != nil {
			return err
		}
	}
	return nil
}

// context returns the context through which a's host calls find a.
func (h *naiveHost) context(a *naiveActor) context.Context {
	return context.WithValue(h.ctx, naiveKey{}, a)
}

func (h *naiveHost) close() error { return h.runtime.Close(h.ctx) }
