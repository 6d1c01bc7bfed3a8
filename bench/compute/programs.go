// Package compute is a suite of real programs, in C and in standard Go, that shows
// what metering costs: the same module runs in plain wazero and rewritten.
//
// Nothing in it is an actor: a turn is wasmactors_turn(program | work<<8), and
// its result a checksum.
package compute

import (
	"context"
	_ "embed"
	"path/filepath"

	"github.com/wasmactors/wasmactors/host/build"
)

// cWasm is what c/build.sh makes.
//
//go:embed c/suite.wasm
var cWasm []byte

// Program is one of a suite's programs.
type Program struct {
	Name  string
	index int
	work  int // so that it takes some 20 ms
	small int // the least that makes sense, for tests
}

// Suite is a module and its programs.
type Suite struct {
	Name     string
	Wasm     []byte
	Programs []Program
}

// C is the suite in C; see c/build.sh.
func C() *Suite {
	return &Suite{Name: "c", Wasm: cWasm, Programs: number([]Program{
		{Name: "sort", work: 200, small: 1},
		{Name: "sha256", work: 900, small: 2},
		{Name: "json", work: 12000, small: 2},
		{Name: "regexp", work: 1000, small: 2},
		{Name: "matrix", work: 240, small: 10},
		{Name: "nbody", work: 1500, small: 1},
		{Name: "deflate", work: 200, small: 2},
		{Name: "interpreter", work: 500, small: 1},
		{Name: "fib", work: 32, small: 12},
		{Name: "sieve", work: 2000, small: 2},
	})}
}

// Go builds the suite in Go, whose sources lie in dir/go.
func Go(ctx context.Context, dir string) (*Suite, error) {
	r, err := build.Guest(ctx, filepath.Join(dir, "go"), build.Options{Compiler: "go"})
	if err != nil {
		return nil, err
	}
	wasm, err := r.Code(ctx)
	if err != nil {
		return nil, err
	}
	return &Suite{Name: "go", Wasm: wasm, Programs: number([]Program{
		{Name: "sort", work: 60, small: 1},
		{Name: "sha256", work: 200, small: 2},
		{Name: "json", work: 8, small: 1},
		{Name: "regexp", work: 60, small: 1},
		{Name: "matrix", work: 160, small: 10},
		{Name: "nbody", work: 400, small: 1},
		{Name: "deflate", work: 200, small: 2},
		{Name: "interpreter", work: 150, small: 1},
	})}, nil
}

func number(ps []Program) []Program {
	for i := range ps {
		ps[i].index = i
	}
	return ps
}
