package host

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// looksHere are the files that look at an actor of this node, and why they may: none of them decides what becomes of a
// message or a signal whose receiver is not here.
var looksHere = map[string]string{
	"arrive.go":     "what actors of this node have guessed on others is counted here",
	"address.go":    "an address is found in this node's tree",
	"apply.go":      "a guest's last receiver is remembered, and a copy that has no room here is not made; all else goes to deliver",
	"action.go":     "what a guest may stop is looked up; all else goes to deliver",
	"boxhost.go":    "only a mailbox that is here can have its senders wait",
	"checkpoint.go": "the durable actors of a checkpoint are on this node",
	"durable.go":    "what leaves for receivers that are here and not durable waits",
	"kernel.go":     "what an actor of this node does, its turns, its incarnation and what it may do, for those outside",
	"keep.go":       "a keeper's children are on its node",
	"load.go":       "how busy an actor of this node is",
	"watching.go":   "the path of an actor of this node",
	"operate.go":    "operators' orders are given on the actor's node",
	"refof.go":      "guesses are counted for actors of this node",
	"refused.go":    "operators' questions are answered on the actor's node",
	"born.go":       "children whose beginning is repeated",
	"repeat.go":     "what is repeated was recorded on this node",
	"swap.go":       "code is exchanged on the actor's node",
	"effect.go":     "services of this node keep the keys of requests",
	"resend.go":     "a resender's child is on its node",
	"seen.go":       "what actors of this node look like",
	"signal.go":     "here is declared there, and the path of an actor of this node",
	"stray.go":      "a parent's children are on its node",
	"sysqueue.go":   "a parent's children are on its node",
	"system.go":     "children are started on their parent's node; what a sender may do",
	"tap.go":        "what an actor of this node does",
	"tracing.go":    "the names of an actor of this node, for a span",
}

// Only deliver and signal decide what becomes of a message or a signal for a ref: who else looks into the table of actors,
// or for somebody outside, would take whoever is on another node for nobody.
func TestOnlyTheDoorsLookForReceivers(t *testing.T) {
	doors := map[string][]string{"table.Get": {"deliver.go", "signal.go"}, "outside.Resolve": {"deliver.go"}, "outside.Signal": {"signal.go"}}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looks := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if s.Sel.Name == "here" {
				looks[name] = true
			}
			if x, ok := s.X.(*ast.SelectorExpr); ok {
				if at, door := doors[x.Sel.Name+"."+s.Sel.Name]; door && !slices.Contains(at, name) {
					t.Errorf("%v looks for a receiver by %s.%s: use deliver, signal or here", fset.Position(s.Pos()), x.Sel.Name, s.Sel.Name)
				}
			}
			return true
		})
	}
	looks["signal.go"] = true
	for name := range looks {
		if looksHere[name] == "" {
			t.Errorf("%s looks at an actor of this node: say in looksHere why it may, or use deliver or signal", name)
		}
	}
	for name := range looksHere {
		if !looks[name] {
			t.Errorf("%s does not look at actors any more: it need not be listed", name)
		}
	}
}
