package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// graph is which files of a package use what other files of it declare.
type graph struct {
	files []string
	next  [][]int // for each file those that it uses, in order
}

// usesOf is the graph of a package: an edge from each file to each other one that declares a name of the
// package, a field or a method that the first mentions.
func usesOf(p *packages.Package) graph {
	fileOf := func(n ast.Node) string { return p.Fset.Position(n.Pos()).Filename }
	var g graph
	for _, f := range p.Syntax {
		g.files = append(g.files, fileOf(f.Name))
	}
	slices.Sort(g.files)
	g.next = make([][]int, len(g.files))
	for id, obj := range p.TypesInfo.Uses {
		if obj.Pkg() != p.Types || !obj.Pos().IsValid() || local(obj) {
			continue
		}
		from := slices.Index(g.files, fileOf(id))
		to := slices.Index(g.files, p.Fset.Position(obj.Pos()).Filename)
		if from >= 0 && to >= 0 && from != to && !slices.Contains(g.next[from], to) {
			g.next[from] = append(g.next[from], to)
		}
	}
	for _, next := range g.next {
		slices.Sort(next)
	}
	return g
}

// local is whether the object lives in a function: those of one file only are seen there anyway.
func local(obj types.Object) bool {
	if obj.Parent() == nil { // a field or a method
		return false
	}
	return obj.Parent() != obj.Pkg().Scope()
}

func (g graph) uses() (n int) {
	for _, next := range g.next {
		n += len(next)
	}
	return n
}

// largestCircle is the largest set of files each of which needs each other one, on some way (Tarjan's
// algorithm: Depth-first search and linear graph algorithms, 1972).
func (g graph) largestCircle() (largest []string) {
	var (
		index   = make([]int, len(g.files)) // 0: not seen
		low     = make([]int, len(g.files))
		stacked = make([]bool, len(g.files))
		stack   []int
		seen    int
		visit   func(v int)
	)
	visit = func(v int) {
		seen++
		index[v], low[v] = seen, seen
		stack, stacked[v] = append(stack, v), true
		for _, to := range g.next[v] {
			if index[to] == 0 {
				visit(to)
				low[v] = min(low[v], low[to])
			} else if stacked[to] {
				low[v] = min(low[v], index[to])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		var circle []string
		for _, of := range stack[at:] {
			stacked[of] = false
			circle = append(circle, g.files[of])
		}
		stack = stack[:at]
		if len(circle) > len(largest) {
			largest = circle
		}
	}
	for v := range g.files {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Sort(largest)
	return largest
}

// methodsOf counts those that package host declares on its central types.
func methodsOf(host *types.Package) map[string]int {
	count := func(name string) (all, exported int) {
		obj := host.Scope().Lookup(name)
		if obj == nil {
			return 0, 0
		}
		named, ok := obj.Type().(*types.Named)
		if !ok {
			return 0, 0
		}
		for m := range named.Methods() {
			if all++; m.Exported() {
				exported++
			}
		}
		return all, exported
	}
	actor, _ := count("actor")
	guest, _ := count("guest")
	system, shown := count("System")
	context, given := count("Context")
	return map[string]int{
		"methods of actor and guest": actor + guest, "methods of System": system, "methods of System, exported": shown,
		"methods of Context": context, "methods of Context, exported": given,
	}
}

// linesOf counts the lines of a package's files, which have no tests.
func linesOf(p *packages.Package) (n int) {
	for _, f := range p.Syntax {
		if file := p.Fset.File(f.FileStart); file != nil && !strings.HasSuffix(file.Name(), "_test.go") {
			n += file.LineCount()
		}
	}
	return n
}
