package price

import "testing"

type yields int

func (y *yields) Yield() bool { *y++; return true }

// Others run after so many commands, or bytes that count as commands, or actors that are passed.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name    string
		carry   func(p *Pace, y *yields)
		n, want int
	}{
		{"commands", func(p *Pace, y *yields) { p.Carry(y, 0) }, 3 * carriedCommands, 3},
		{"bytes", func(p *Pace, y *yields) { p.Carry(y, 63*CarriedBytes) }, 8, 2},
		{"too few", func(p *Pace, y *yields) { p.Carry(y, CarriedBytes-1) }, carriedCommands - 1, 0},
		{"actors", func(p *Pace, y *yields) { _ = p.Walks(y).Pass(31 * CarriedBytes / walkedBytes) }, 8, 1},
	} {
		var p Pace
		var y yields
		for range c.n {
			c.carry(&p, &y)
		}
		if int(y) != c.want {
			t.Errorf("%s: others have run %d times, not %d", c.name, y, c.want)
		}
	}
}
