package sandbox

import (
	"context"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// BenchmarkTurn is the whole path of a message through an instance: Push, Run,
// NextCommand.
func BenchmarkTurn(b *testing.B) {
	for _, name := range []string{"single", "echo"} {
		b.Run(name, func(b *testing.B) {
			x := get(b, load(b, newEngine(b, NewConfig()), name, ImageConfig{}))
			defer x.Put()
			in, msg := entry(), message(0)
			var out Result
			var c abi.Command
			b.ReportAllocs()
			for b.Loop() {
				x.Push(msg)
				x.Run(in, &out)
				if _, ok, _ := x.NextCommand(&c); !ok {
					b.Fatal(out.Failure)
				}
			}
		})
	}
	b.Run("echo, batches of 32", func(b *testing.B) {
		x := get(b, load(b, newEngine(b, NewConfig()), "echo", ImageConfig{}))
		defer x.Put()
		in, msg := entry(), message(0)
		var out Result
		var c abi.Command
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			x.Push(msg)
			if n++; n%32 != 0 {
				continue
			}
			x.Run(in, &out)
			for {
				if _, ok, _ := x.NextCommand(&c); !ok {
					break
				}
			}
		}
	})
}

func first(b *testing.B, x *Instance, in *Entry, what byte) {
	var out Result
	if !x.Push(message(what)) {
		b.Fatal("does not fit")
	}
	x.Run(in, &out)
	if out.Failure != nil && what == 0 {
		b.Fatal(out.Failure)
	}
}

// BenchmarkPooled is what a short life costs: Get, a message, Put.
func BenchmarkPooled(b *testing.B) {
	for _, name := range []string{"single", "echo"} {
		b.Run(name, func(b *testing.B) {
			i := load(b, newEngine(b, NewConfig()), name, ImageConfig{})
			in := entry()
			b.ReportAllocs()
			for b.Loop() {
				x := get(b, i)
				first(b, x, in, 0)
				x.Put()
			}
		})
	}
}

func BenchmarkPooledParallel(b *testing.B) {
	i := load(b, newEngine(b, NewConfig()), "echo", ImageConfig{})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		in := entry()
		for p.Next() {
			x := get(b, i)
			first(b, x, in, 0)
			x.Put()
		}
	})
}

// BenchmarkGetPut is the pool alone.
func BenchmarkGetPut(b *testing.B) {
	i := load(b, newEngine(b, NewConfig()), "echo", ImageConfig{})
	x := get(b, i)
	x.Put()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if x := i.pool.take(); x != nil {
				i.pool.giveBack(x)
			}
		}
	})
}

// BenchmarkFork is an instance that no pool has: made, one message, thrown away.
func BenchmarkFork(b *testing.B) {
	for _, name := range []string{"single", "echo"} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, NewConfig())
			e.cfg.poolBytes = -1
			i := load(b, e, name, ImageConfig{})
			in := entry()
			b.ReportAllocs()
			for b.Loop() {
				x := get(b, i)
				first(b, x, in, 0)
				x.Put()
			}
		})
	}
}

// BenchmarkRestart is a crash, a reset and the next message.
func BenchmarkRestart(b *testing.B) {
	x := get(b, load(b, newEngine(b, NewConfig()), "echo", ImageConfig{}))
	defer x.Put()
	in := entry()
	b.ReportAllocs()
	for b.Loop() {
		first(b, x, in, 1)
		if err := x.Reset(); err != nil {
			b.Fatal(err)
		}
		first(b, x, in, 0)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"echo"} {
		b.Run(name, func(b *testing.B) {
			e := newEngine(b, NewConfig())
			raw := guest(b, name)
			for b.Loop() {
				i, err := e.Load(context.Background(), raw, ImageConfig{})
				if err != nil {
					b.Fatal(err)
				}
				i.Close()
			}
		})
	}
}
