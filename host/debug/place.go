package debug

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// Place is a place in a file.
type Place struct {
	Turn uint64 `json:"turn"`
	Fuel uint64 `json:"fuel"` // that the turn has spent
	// Before says that it is in the guest's code that comes before the turn, in a module that takes messages in batches; the
	// fuel is that of this code.
	Before bool `json:"before,omitempty"`
	// End says that the turn has ended there, and the entry with it.
	End bool `json:"end,omitempty"`
}

// String is the place as Parse reads it.
func (p Place) String() string {
	switch {
	case p.End:
		return fmt.Sprintf("%d:end", p.Turn)
	case p.Before:
		return fmt.Sprintf("-%d:%d", p.Turn, p.Fuel)
	}
	return fmt.Sprintf("%d:%d", p.Turn, p.Fuel)
}

// parsePlace reads TURN, TURN:FUEL, TURN:end, -TURN:FUEL for the code before a turn, or :FUEL in the present turn.
func parsePlace(text string, now Place) (p Place, err error) {
	no := func() (Place, error) {
		return Place{}, fmt.Errorf("%q is not a place: it is TURN, TURN:FUEL, TURN:end or :FUEL", text)
	}
	rest, before := strings.CutPrefix(text, "-")
	turn, fuel, has := strings.Cut(rest, ":")
	p = Place{Turn: now.Turn, Before: before}
	if turn != "" {
		if p.Turn, err = strconv.ParseUint(turn, 10, 64); err != nil {
			return no()
		}
	} else if !has || before {
		return no()
	}
	switch {
	case fuel == "end":
		p.End = true
	case has:
		if p.Fuel, err = strconv.ParseUint(strings.ReplaceAll(fuel, ",", ""), 10, 64); err != nil {
			return no()
		}
	}
	return p, nil
}

// before reports whether p comes before q.
func (p Place) before(q Place) bool {
	if p.Turn != q.Turn {
		return p.Turn < q.Turn
	}
	a, b := p.part(), q.part()
	return a < b || a == b && a != partEnd && p.Fuel < q.Fuel
}

const (
	partBefore = iota
	partWithin
	partEnd
)

func (p Place) part() int {
	switch {
	case p.End:
		return partEnd
	case p.Before:
		return partBefore
	}
	return partWithin
}

// position is a place of the present entry as the sandbox has it. In a module that has no batches the turn begins with the entry.
func (d *Debugger) position(p Place) sandbox.Position {
	if p.End {
		return sandbox.Position{Phase: math.MaxUint64}
	}
	phase := 2*(p.Turn-d.entry.First) + 1
	if p.Turn < d.entry.First {
		phase = 0
	}
	if p.Before && phase > 0 {
		phase--
	}
	return sandbox.Position{Phase: phase, Fuel: p.Fuel}
}

// place is the inverse.
func (d *Debugger) place(p sandbox.Position) Place {
	return Place{Turn: d.entry.First + p.Phase/2, Before: p.Phase%2 == 0, Fuel: p.Fuel}
}
