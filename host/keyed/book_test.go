package keyed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
)

// Checked is c.Props, and a check of what the keeper knows, for a system that runs by hand.
func (c Config) Checked() (p host.Props, check func() error) {
	var h *head
	return c.props(func() host.Behaviour {
		h = &head{Config: c, past: newPast(c.remember)}
		return h
	}), func() error { return h.check() }
}

// check compares the counts and the lists of the book with its entries, and all of it with the bounds.
func (h *head) check() error {
	var alive, grants, ending, failing, waits, lined, due int
	var weight int64
	made := map[abi.Ref]int{}
	for name, e := range h.entries {
		switch e.state {
		case awake, leaving:
			alive++
			if h.byRef[e.ref.UID()] != e || !e.used.Listed() || e.used.Of != e {
				return fmt.Errorf("%s is not found", name)
			}
		case waiting:
			lined++
		case granted:
			grants++
		case failed:
			failing++
		}
		if e.maker != 0 {
			made[e.maker]++
		}
		if e.state == leaving {
			ending++
		}
		if looks := e.state == awake || e.state == failed; looks {
			due++
			if e.pos < 0 || int(e.pos) >= len(h.due) || h.due[e.pos] != e {
				return fmt.Errorf("nobody looks at %s", name)
			}
		} else if e.pos != -1 {
			return fmt.Errorf("somebody looks at %s, which is %s", name, stateNames[e.state])
		}
		waits, weight = waits+int(e.held), weight+e.bytes
	}
	for i, e := range h.due {
		if i > 0 && h.due.Less(i, (i-1)/2) {
			return fmt.Errorf("%s is due before %s", e.name, h.due[(i-1)/2].name)
		}
	}
	for _, e := range h.queue {
		if h.entries[e.name] != e || e.state != waiting {
			return fmt.Errorf("%s waits for a place", e.name)
		}
	}
	used := 0
	for x := h.used.First(); x != nil; x = x.Next() {
		used++
	}
	got := []int{h.alive, len(h.byRef), used, h.grants, h.ending, h.failing, h.waits, int(h.weight), len(h.queue), len(h.due), h.past.order.Len()}
	want := []int{alive, alive, alive, grants, ending, failing, waits, int(weight), lined, due, len(h.past.at)}
	switch {
	case !slices.Equal(got, want):
		return fmt.Errorf("counted %v, there are %v", got, want)
	case !maps.Equal(h.made, made):
		return fmt.Errorf("counted %v by their makers, there are %v", h.made, made)
	case alive > h.max, failing > h.max, waits > h.buffer, weight > h.bytes, len(h.past.at) > h.remember:
		return fmt.Errorf("too many: %v", got)
	}
	for who, n := range made {
		if h.perSender > 0 && n > h.perSender {
			return fmt.Errorf("%d of %v", n, who)
		}
	}
	return nil
}
