package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// mutant is one way to break a package.
type mutant struct {
	ID     int    `json:"-"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Func   string `json:"func"`
	Kind   string `json:"kind"`
	Source string `json:"source"`
	Nth    int    `json:"nth"` // of several of one kind and source in the function
	Status string `json:"status"`
	By     string `json:"by,omitempty"` // the tests that were run
	Reason string `json:"reason,omitempty"`
}

// key names a mutant, also after the lines around it have moved.
func (m *mutant) key() string {
	return fmt.Sprintf("%s: %s: %s: %s #%d", m.File, m.Func, m.Kind, m.Source, m.Nth)
}

// The kinds.
const (
	kindNegate   = "negated"           // a condition
	kindBoundary = "boundary"          // < is <=, and so on
	kindRemove   = "removed"           // a statement
	kindBool     = "other constant"    // true is false
	kindNumber   = "one more"          // a constant
	kindSign     = "plus and minus"    // + is -, and so on
	kindSwap     = "results exchanged" // return a, b is return b, a
)

// mutator makes the mutants of a file, as insertions.
type mutator struct {
	p     *pkg
	f     *file
	edits *edits
	base  int // of the ids
	all   []*mutant
	fn    string
	seen  map[string]int
}

// add notes a mutant and returns its id.
func (m *mutator) add(n ast.Node, kind string) int {
	src := m.source(n)
	k := fmt.Sprint(m.fn, kind, src)
	m.seen[k]++
	x := &mutant{ID: m.base + len(m.all), File: m.f.name, Line: m.p.fset.Position(n.Pos()).Line, Func: m.fn, Kind: kind, Source: src, Nth: m.seen[k]}
	m.all = append(m.all, x)
	return x.ID
}

func (m *mutator) offset(p token.Pos) int { return m.p.fset.Position(p).Offset }

func (m *mutator) source(n ast.Node) string {
	s := strings.Join(strings.Fields(string(m.f.text[m.offset(n.Pos()):m.offset(n.End())])), " ")
	if len(s) > 80 {
		s = s[:77] + "..."
	}
	return s
}

// wrap puts text around a node.
func (m *mutator) wrap(n ast.Node, before, after string) {
	m.edits.wrap(m.offset(n.Pos()), m.offset(n.End()), before, after)
}

// file mutates the functions of the file.
func (m *mutator) file() {
	for _, d := range m.f.tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Name.Name == "init" {
			continue
		}
		m.fn = fn.Name.Name
		if fn.Recv != nil && len(fn.Recv.List) > 0 {
			m.fn = receiver(fn.Recv.List[0].Type) + "." + m.fn
		}
		m.block(fn.Body.List)
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// block mutates statements that stand in a list, so that each can be removed.
func (m *mutator) block(list []ast.Stmt) {
	for _, s := range list {
		if removable(s) {
			id := m.add(s, kindRemove)
			m.wrap(s, fmt.Sprintf("if !mutant_(%d) { ", id), " }")
		}
		m.stmt(s)
	}
}

// removable reports whether the code compiles without the statement.
func removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			f, ok := call.Fun.(*ast.Ident)
			return !ok || f.Name != "panic"
		}
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !blank(s.Lhs)
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	case *ast.ReturnStmt:
		return len(s.Results) == 0
	}
	return false
}

func blank(lhs []ast.Expr) bool {
	for _, e := range lhs {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

// stmt mutates what is within a statement.
func (m *mutator) stmt(s ast.Node) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			m.block(n.List)
			return false
		case *ast.IfStmt:
			m.part(n.Init)
			m.condition(n.Cond)
			m.block(n.Body.List)
			m.part(n.Else)
			return false
		case *ast.ForStmt:
			m.part(n.Init)
			if n.Cond != nil {
				m.condition(n.Cond)
			}
			m.part(n.Post)
			m.block(n.Body.List)
			return false
		case *ast.CaseClause:
			for _, e := range n.List {
				m.expr(e)
			}
			m.block(n.Body)
			return false
		case *ast.CommClause:
			m.block(n.Body)
			return false
		case *ast.GenDecl:
			if n.Tok == token.CONST || n.Tok == token.TYPE {
				return false
			}
		case *ast.ReturnStmt:
			m.results(n)
		case ast.Expr:
			m.expr(n)
			return false
		}
		return true
	})
}

func (m *mutator) part(s ast.Stmt) {
	if s != nil {
		m.stmt(s)
	}
}

// results exchanges two results of one type.
func (m *mutator) results(n *ast.ReturnStmt) {
	if len(n.Results) != 2 {
		return
	}
	a, b := n.Results[0], n.Results[1]
	ta, tb := m.p.info.Types[a].Type, m.p.info.Types[b].Type
	if ta == nil || tb == nil || !types.Identical(ta, tb) || m.source(a) == m.source(b) {
		return
	}
	if _, basic := ta.(*types.Basic); basic && m.p.info.Types[a].Value != nil {
		return // untyped constants need not fit together
	}
	id := m.add(n, kindSwap)
	m.edits.wrap(m.offset(a.Pos()), m.offset(b.End()), fmt.Sprintf("mutantSwap_(%d, ", id), ")")
}

// expr mutates an expression and what is within.
func (m *mutator) expr(e ast.Expr) {
	if e == nil || m.p.info.Types[e].IsType() {
		return
	}
	if tv := m.p.info.Types[e]; tv.Value != nil {
		m.constant(e, tv)
		return
	}
	switch e := e.(type) {
	case *ast.FuncLit:
		m.block(e.Body.List)
	case *ast.BinaryExpr:
		m.binary(e)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			m.condition(e.X)
			return
		}
		m.expr(e.X)
	case *ast.ParenExpr:
		m.expr(e.X)
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			if kv, ok := x.(*ast.KeyValueExpr); ok {
				x = kv.Value
			}
			m.expr(x)
		}
	case *ast.CallExpr:
		m.expr(e.Fun)
		for _, x := range e.Args {
			m.expr(x)
		}
	case *ast.SelectorExpr:
		m.expr(e.X)
	case *ast.IndexExpr:
		m.expr(e.X)
		m.expr(e.Index)
	case *ast.SliceExpr:
		for _, x := range []ast.Expr{e.X, e.Low, e.High, e.Max} {
			m.expr(x)
		}
	case *ast.StarExpr:
		m.expr(e.X)
	case *ast.TypeAssertExpr:
		m.expr(e.X)
	}
}

// condition mutates an operand of a condition.
func (m *mutator) condition(e ast.Expr) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		m.condition(x.X)
		return
	case *ast.BinaryExpr, *ast.UnaryExpr:
		m.expr(e)
		return
	}
	if t := m.p.info.Types[e]; t.Value != nil || t.Type == nil || !isBool(t.Type) {
		m.expr(e)
		return
	}
	m.wrap(e, fmt.Sprintf("(mutant_(%d) != ", m.add(e, kindNegate)), ")")
	m.expr(e)
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

var boundary = map[token.Token]string{token.LSS: "mutantLess_", token.LEQ: "mutantLessEqual_", token.GTR: "mutantGreater_", token.GEQ: "mutantGreaterEqual_"}

func (m *mutator) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		m.condition(e.X)
		m.condition(e.Y)
		return
	case token.EQL, token.NEQ:
		m.wrap(e, fmt.Sprintf("(mutant_(%d) != (", m.add(e, kindNegate)), "))")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		m.wrap(e, fmt.Sprintf("(mutant_(%d) != %s(%d, ", m.add(e, kindNegate), boundary[e.Op], m.add(e, kindBoundary)), "))")
		m.edits.replace(m.offset(e.OpPos), len(e.Op.String()), ",")
	case token.ADD, token.SUB:
		if b, ok := m.p.info.Types[e].Type.Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
			name := "mutantAdd_"
			if e.Op == token.SUB {
				name = "mutantSub_"
			}
			m.wrap(e, fmt.Sprintf("%s(%d, ", name, m.add(e, kindSign)), ")")
			m.edits.replace(m.offset(e.OpPos), 1, ",")
		}
	case token.SHL, token.SHR:
		m.expr(e.X) // a constant count must stay one
		return
	}
	m.expr(e.X)
	m.expr(e.Y)
}

// constant changes literals of predeclared types.
func (m *mutator) constant(e ast.Expr, tv types.TypeAndValue) {
	b, ok := tv.Type.(*types.Basic)
	if !ok {
		return
	}
	switch x := e.(type) {
	case *ast.Ident:
		if x.Name == "true" || x.Name == "false" {
			m.wrap(e, fmt.Sprintf("(mutant_(%d) != ", m.add(e, kindBool)), ")")
		}
	case *ast.BasicLit:
		if x.Kind == token.INT && b.Info()&types.IsInteger != 0 && b.Info()&types.IsUntyped == 0 {
			m.wrap(e, fmt.Sprintf("mutantMore_[%s](%d, ", b.Name(), m.add(e, kindNumber)), ")")
		}
	}
}
