package main

import (
	"errors"
	"os"
	"unsafe"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
)

// faulty works, with a state that depends on all that it has taken in, and fails in the way that it is told.
type faulty struct {
	n    int64
	list []int64
}

func (f *faulty) Receive(ctx *actor.Context, m *actor.Message) error {
	if n, ok := m.Int(); ok {
		f.n += n + int64(ctx.Rand().Uint64()%1000) + ctx.Now().UnixNano()%1000
		f.list = append(f.list, f.n)
		ctx.TellPath("/user/sink", actor.Int(f.n))
		return nil
	}
	before := f.n
	f.n = -1
	switch m.Text() {
	case "trap": // beyond any memory
		f.n = *(*int64)(unsafe.Add(unsafe.Pointer(f), 0x7000_0000))
	case "panic":
		panic("told to")
	case "error":
		return errors.New("told to")
	case "loop":
		for f.n != before {
			f.n--
			before--
		}
	case "memory":
		for {
			f.list = append(f.list, f.list...)
		}
	case "stack":
		f.n = f.deeper(before)
	case "contract": // two stashes of one message
		ctx.Stash()
		ctx.Stash()
	case "exit":
		os.Exit(3)
	}
	return nil
}

//go:noinline
func (f *faulty) deeper(n int64) int64 {
	var frame [1 << 10]int64
	frame[n%int64(len(frame))] = n
	f.n++
	return f.deeper(n+1) + frame[f.n%int64(len(frame))]
}

func init() { actor.Register("faulty", func() actor.Actor { return &faulty{} }) }
