package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"
)

// Extism's Go SDK: a plugin an actor, a call a message; the host passes what a plugin
// has answered on to the other one.

type extismWorld struct {
	ctx      context.Context
	compiled *extism.CompiledPlugin
}

func openExtism(f func(e *env, w *extismWorld) (*subject, error)) func(*env) (*subject, error) {
	return func(e *env) (*subject, error) {
		code, err := guestFile("extism")
		if err != nil {
			return nil, err
		}
		extism.SetLogLevel(extism.LogLevelOff)
		c, err := extism.NewCompiledPlugin(e.ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: code}}}, extism.PluginConfig{EnableWasi: true}, nil)
		if err != nil {
			return nil, err
		}
		return f(e, &extismWorld{e.ctx, c})
	}
}

func (w *extismWorld) plugin() (*extism.Plugin, error) {
	return w.compiled.Instance(w.ctx, extism.PluginInstanceConfig{})
}

// handle makes the plugin handle one message.
func (w *extismWorld) handle(p *extism.Plugin) error {
	b := make([]byte, 32)
	binary.BigEndian.PutUint32(b, 1)
	_, out, err := p.Call("receive", b)
	if err == nil && binary.BigEndian.Uint32(out) != 0 {
		err = fmt.Errorf("%x", out)
	}
	return err
}

func extismPing(e *env, w *extismWorld) (*subject, error) {
	var two [2]*extism.Plugin
	for i := range two {
		var err error
		if two[i], err = w.plugin(); err != nil {
			return nil, err
		}
	}
	if e.b.name == "struct" {
		return &subject{note: "JSON", op: func(n int) error {
			b, err := json.Marshal(sample(n))
			for i := 0; err == nil && i < n; i++ {
				_, b, err = two[i%2].Call("record", b)
			}
			var s six
			return errors.Join(err, json.Unmarshal(b, &s), arrived(int64(n)-int64(s.ID), n))
		}}, nil
	}
	return &subject{op: func(n int) error {
		b := make([]byte, e.size())
		binary.BigEndian.PutUint32(b, uint32(n))
		for i := range n {
			_, out, err := two[i%2].Call("receive", b)
			if err != nil {
				return err
			}
			b = append(b[:0], out...) // it is in the plugin's memory
		}
		return arrived(int64(n)-int64(binary.BigEndian.Uint32(b)), n)
	}}, nil
}

func extismAsk(_ *env, w *extismWorld) (*subject, error) {
	p, err := w.plugin()
	return &subject{note: "a call on the caller's goroutine", op: func(n int) error {
		for range n {
			if err := w.handle(p); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

func extismSpawn(e *env, w *extismWorld) (*subject, error) {
	keep := e.b.name == "spawn-living"
	s := &subject{op: func(n int) error {
		for range n {
			p, err := w.plugin()
			if err != nil {
				return err
			}
			if err := w.handle(p); err != nil {
				return err
			}
			if !keep {
				if err := p.Close(w.ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}}
	if keep {
		s.fixed, s.note = e.some(300, 5), "300 living"
	}
	return s, nil
}

func extismMemory(e *env, w *extismWorld) (*subject, error) {
	spawn, err := extismSpawn(&env{b: benchmarkOf("spawn-living")}, w)
	if err != nil {
		return nil, err
	}
	if err := spawn.op(2); err != nil {
		return nil, err
	}
	return &subject{note: "of 300", value: func() (float64, error) { return residentEach(e.some(300, 10), spawn.op) }}, nil
}

func extismCrash(_ *env, w *extismWorld) (*subject, error) {
	p, err := w.plugin()
	return &subject{note: "closed and instantiated again by the host", op: func(n int) error {
		for range n {
			if _, _, err := p.Call("crash", nil); err == nil {
				return errors.New("the plugin has survived")
			}
			if err := p.Close(w.ctx); err != nil {
				return err
			}
			var err error
			if p, err = w.plugin(); err != nil {
				return err
			}
			if err := w.handle(p); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

var extismContestant = &contestant{
	name: "extism", title: "Extism, standard Go", version: module("github.com/extism/go-sdk"),
	opens: map[string]func(*env) (*subject, error){
		"ping-pong": openExtism(extismPing), "struct": openExtism(extismPing), "payload-1k": openExtism(extismPing),
		"payload-64k": openExtism(extismPing), "payload-1m": openExtism(extismPing),
		"ask": openExtism(extismAsk), "spawn-again": openExtism(extismSpawn), "spawn-living": openExtism(extismSpawn),
		"memory-awake": openExtism(extismMemory), "crash": openExtism(extismCrash),
	},
	lacks: map[string]string{"": "no mailboxes, scheduler or supervisor: a plugin is called"},
}
