package remote

import (
	"slices"

	"github.com/wasmactors/wasmactors/supervision"
)

// ended is a strategy under which a failure that would escalate stops the child: no supervisor is above it on this node, and so its parent is
// told the failure, and not that of the actor that keeps the child.
func ended(p supervision.Plain) supervision.Plain {
	if p.Exceeded == supervision.Escalate {
		p.Exceeded = supervision.Stop
	}
	if p.Otherwise == supervision.Escalate || p.Otherwise == 0 && len(p.Rules) > 0 && !p.Stopping {
		p.Otherwise = supervision.Stop // what no rule covers escalates
	}
	p.First, p.Rules = slices.Clone(p.First), slices.Clone(p.Rules)
	for _, rules := range [][]supervision.PlainRule{p.First, p.Rules} {
		for i := range rules {
			if rules[i].Directive == supervision.Escalate {
				rules[i].Directive = supervision.Stop
			}
		}
	}
	if p.Delays != nil && p.Delays.GiveUp == supervision.GiveUpEscalate {
		delays := *p.Delays
		delays.GiveUp = supervision.GiveUpStop
		p.Delays = &delays
	}
	return p
}
