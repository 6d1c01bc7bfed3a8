package debug_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host/debug"
)

// The arguments of calls are those that the guest has passed, at any place; and the calls are those of the compiled run.
func TestArguments(t *testing.T) {
	e := engine(t, false)
	for _, batch := range []int{1, 5} {
		d := open(t, e, guests(t)["wat"](e, batch))
		do(t, d, "goto 6")
		for depth := 4; depth >= 0; depth-- {
			do(t, d, "call walk")
			r := do(t, d, "arguments")
			var walks []string
			for _, f := range r.Stack {
				if f.Function == "walk" {
					walks = append(walks, f.Arguments)
				}
			}
			want := []string{}
			for k := depth; k <= 4; k++ {
				want = append(want, "(i32="+string(rune('0'+k))+")")
			}
			if !slices.Equal(walks, want) {
				t.Fatalf("%v, not %v: %+v", walks, want, r.Stack)
			}
		}
		do(t, d, "call stray")
		if r := do(t, d, "args"); r.Stack[0].Arguments != "(i32=9)" || !strings.Contains(r.String(), "stray(i32=9)") {
			t.Errorf("%+v", r.Stack)
		}
		r := rand.New(rand.NewPCG(1, uint64(batch)))
		for range 15 {
			place := debug.Place{Turn: r.Uint64N(11) + 1, Fuel: r.Uint64N(30_000)}
			at := do(t, d, "goto "+place.String()).At
			if at.End {
				continue
			}
			names := func(list []debug.Frame) (names []string) {
				for _, f := range list {
					if !strings.HasPrefix(f.Function, "wasmactors.") && !strings.Contains(f.Function, "next") {
						names = append(names, f.Function)
					}
				}
				return names
			}
			memory := must(d.Memory(context.Background()))(t)
			shown, heard := names(do(t, d, "stack").Stack), names(do(t, d, "arguments").Stack)
			if !slices.Equal(shown, heard) {
				t.Errorf("%s: the calls are %q, those with arguments %q", at, shown, heard)
			}
			if d.At() != at || string(must(d.Memory(context.Background()))(t)) != string(memory) {
				t.Errorf("it has left %s", at)
			}
		}
		do(t, d, "goto failure")
		if r := do(t, d, "arguments"); len(r.Stack) == 0 || r.Stack[0].Function != "act" || r.Stack[0].Arguments != "()" {
			t.Errorf("at the failure: %+v", r.Stack)
		}
	}
}
