package simulate

import (
	"context"
	"slices"
)

// Shrunk is a failing case that was made smaller.
type Shrunk struct {
	*Outcome     // of the smallest plan that still fails
	Runs     int // that it has taken
	Drawn    bool
}

// DefaultShrinking is how many runs Shrink may take, if nothing else is said.
const DefaultShrinking = 500

// Shrink makes a failing outcome smaller: fewer classes, then fewer faults, then fewer messages from outside, by bisection,
// as long as the same rule is violated. It takes most runs at most. If the faults as data do not fail, the case stays as it
// was drawn.
func Shrink(ctx context.Context, p Player, o *Outcome, most int) *Shrunk {
	s := &Shrunk{Outcome: o}
	if o.Violation == nil {
		return s
	}
	rule := o.Violation.Rule
	fails := func(plan Plan) bool {
		if s.Runs >= most || ctx.Err() != nil {
			return false
		}
		s.Runs++
		x := p.Play(ctx, plan)
		if x.Err != nil || x.Violation == nil || x.Violation.Rule != rule {
			return false
		}
		s.Outcome = x
		return true
	}
	if !fails(o.Plan.Fix(o.Faults)) {
		s.Drawn = true
		return s
	}
	for _, c := range o.Plan.On() {
		fails(s.Plan.Without(c))
	}
	faults := func(plan Plan, keep []Fault) Plan { plan.Faults = keep; return plan }
	minimize(s.Plan.Faults, func(keep []Fault) bool { return fails(faults(s.Plan, keep)) })
	for i := range s.Plan.Faults { // earlier: then messages before it can be left out
		for n := uint64(0); n < s.Plan.Faults[i].N; n = (n + s.Plan.Faults[i].N + 1) / 2 {
			keep := slices.Clone(s.Plan.Faults)
			keep[i].N = n
			if fails(faults(s.Plan, keep)) {
				break
			}
		}
	}
	if plain := s.Plan; plain.Spell != 1 {
		plain.Spell = 1
		fails(plain)
	}
	var sent []uint64
	for n := range s.Messages {
		if _, not := slices.BinarySearch(s.Plan.Skip, n); !not {
			sent = append(sent, n)
		}
	}
	total := s.Messages
	minimize(sent, func(keep []uint64) bool {
		plan := s.Plan
		plan.Skip = nil
		for n := range total {
			if !slices.Contains(keep, n) {
				plan.Skip = append(plan.Skip, n)
			}
		}
		return fails(plan)
	})
	minimize(s.Plan.Faults, func(keep []Fault) bool { return fails(faults(s.Plan, keep)) })
	return s
}

// minimize leaves out as many elements as it can while fails holds for the rest: parts first, halves of them next (ddmin of
// Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002, complements only).
func minimize[T any](all []T, fails func([]T) bool) {
	if len(all) == 0 || fails(nil) {
		return
	}
	for part := (len(all) + 1) / 2; ; part = (part + 1) / 2 {
		for at := 0; at < len(all); {
			rest := slices.Concat(all[:at], all[min(at+part, len(all)):])
			if len(rest) > 0 && fails(rest) {
				all = rest
				continue
			}
			at += part
		}
		if part == 1 {
			return
		}
	}
}
