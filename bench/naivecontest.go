package main

import (
	"context"
	"errors"
)

// openNaive makes the scenarios of a naive host on wazero; see naive.go.
func openNaive(load func() ([]byte, error)) map[string]func(*env) (*subject, error) {
	in := func(f func(e *env, h *naiveHost) (*subject, error)) func(*env) (*subject, error) {
		return func(e *env) (*subject, error) {
			code, err := load()
			if err != nil {
				return nil, err
			}
			h, err := newNaiveHost(e.ctx, code)
			if err != nil {
				return nil, err
			}
			s, err := f(e, h)
			if s != nil {
				s.close = h.close
			}
			return s, err
		}
	}
	return map[string]func(*env) (*subject, error){
		"ping-pong": in(naivePing), "payload-1k": in(naivePing), "ask": in(naiveAsk),
		"spawn-again": in(naiveSpawn), "spawn-living": in(naiveSpawn), "memory-awake": in(naiveMemory), "crash": in(naiveCrash),
	}
}

func naivePing(e *env, h *naiveHost) (*subject, error) {
	x, err := h.spawn()
	if err != nil {
		return nil, err
	}
	y, err := h.spawn()
	if err != nil {
		return nil, err
	}
	contexts := []context.Context{h.context(x), h.context(y)}
	return &subject{op: func(n int) error {
		h.queue, h.head = append(h.queue[:0], naiveMessage{to: x.id, from: y.id, payload: make([]byte, e.size())}), 0
		if err := h.run(contexts, n); err != nil {
			return err
		}
		if len(h.queue)-h.head != 1 || len(h.queue[h.head].payload) != e.size() {
			return errors.New("the last message has not been answered")
		}
		return nil
	}}, nil
}

// handle delivers one message and drops the answer.
func (h *naiveHost) handle(ctx context.Context, a *naiveActor, payload []byte) error {
	if err := h.deliver(ctx, a, naiveMessage{payload: payload}); err != nil {
		return err
	}
	if len(h.queue) != 1 {
		return errors.New("no answer")
	}
	h.queue, h.head = h.queue[:0], 0
	return nil
}

func naiveAsk(_ *env, h *naiveHost) (*subject, error) {
	a, err := h.spawn()
	if err != nil {
		return nil, err
	}
	ctx, payload := h.context(a), make([]byte, 32)
	return &subject{note: "a call on the caller's goroutine", op: func(n int) error {
		for range n {
			if err := h.handle(ctx, a, payload); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

func naiveSpawn(e *env, h *naiveHost) (*subject, error) {
	keep := e.b.name == "spawn-living"
	s := &subject{op: func(n int) error {
		for range n {
			a, err := h.spawn()
			if err != nil {
				return err
			}
			if err := h.handle(h.context(a), a, make([]byte, 32)); err != nil {
				return err
			}
			if !keep {
				if err := a.mod.Close(h.ctx); err != nil {
					return err
				}
				h.actors = h.actors[:0]
			}
		}
		return nil
	}}
	if keep {
		s.fixed, s.note = e.some(300, 5), "300 living"
	}
	return s, nil
}

func naiveMemory(e *env, h *naiveHost) (*subject, error) {
	spawn, err := naiveSpawn(&env{b: benchmarkOf("spawn-living")}, h)
	if err != nil {
		return nil, err
	}
	if err := spawn.op(2); err != nil {
		return nil, err
	}
	return &subject{note: "of 300", value: func() (float64, error) { return residentEach(e.some(300, 10), spawn.op) }}, nil
}

func naiveCrash(_ *env, h *naiveHost) (*subject, error) {
	a, err := h.spawn()
	if err != nil {
		return nil, err
	}
	return &subject{note: "closed and instantiated again", op: func(n int) error {
		for range n {
			if _, err := a.mod.ExportedFunction("crash").Call(h.ctx); err == nil {
				return errors.New("the guest has survived")
			}
			if err := h.restart(a); err != nil {
				return err
			}
			if err := h.handle(h.context(a), a, make([]byte, 32)); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

var naiveLacks = map[string]string{
	"":            "no mailboxes, scheduler or supervisor: a guest is called",
	"payload-64k": "its buffer is smaller", "payload-1m": "its buffer is smaller", "struct": "not written",
}

var (
	naiveWATContestant = &contestant{
		name: "naive-wat", title: "naive wazero, WAT", version: module("github.com/tetratelabs/wazero"),
		opens: openNaive(func() ([]byte, error) { return naiveWAT, nil }), lacks: naiveLacks,
	}
	naiveGoContestant = &contestant{
		name: "naive-go", title: "naive wazero, standard Go", version: naiveWATContestant.version,
		opens: openNaive(func() ([]byte, error) { return guestFile("naive-go") }), lacks: naiveLacks,
	}
)
