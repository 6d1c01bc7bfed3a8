package durable

import (
	"encoding/binary"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// Rules have a byte with the lifetime in the lowest two bits and these above; how often a message is delivered again, if it is; if they
// do not inherit, what it may send to, spawn and stop; and services, if there are any. A list has its length before it.
const (
	ruleLifetime    = 3
	ruleSignificant = 1 << (iota + 1)
	ruleLetter
	ruleRedelivered
	ruleInherits
	ruleServices
)

func appendRules(to []byte, r *record.Rules) []byte {
	if r == nil {
		return to
	}
	at := len(to)
	to = append(to, byte(r.Lifetime))
	if r.Significant {
		to[at] |= ruleSignificant
	}
	if r.Letter {
		to[at] |= ruleLetter
	}
	if r.Redelivered != 0 {
		to[at] |= ruleRedelivered
		to = appendUint(to, uint64(r.Redelivered))
	}
	if r.Inherits {
		to[at] |= ruleInherits
		return to
	}
	to = appendStrings(appendStrings(appendStrings(to, r.Send), r.Spawn), r.Stop)
	if len(r.Services) > 0 {
		to[at] |= ruleServices
		to = appendStrings(to, r.Services)
	}
	return to
}

// rulesSize is at least what appendRules writes.
func rulesSize(r *record.Rules) int {
	if r == nil {
		return 0
	}
	n := 1 + 5*binary.MaxVarintLen64
	for _, list := range [][]string{r.Send, r.Spawn, r.Stop, r.Services} {
		for _, s := range list {
			n += binary.MaxVarintLen64 + len(s)
		}
	}
	return n
}

func (p *parser) rules() *record.Rules {
	set := p.byte()
	r := &record.Rules{
		Lifetime: supervision.Lifetime(set & ruleLifetime), Significant: set&ruleSignificant != 0, Letter: set&ruleLetter != 0, Inherits: set&ruleInherits != 0,
	}
	if set >= ruleServices<<1 || r.Inherits && set&ruleServices != 0 {
		p.fail("it has rules that are not known")
	}
	if set&ruleRedelivered != 0 {
		n := p.uint()
		if r.Redelivered = int(min(n, record.MostRedelivered)); n > record.MostRedelivered || n == 0 {
			p.fail("it has a message that is delivered again without end, or not at all")
		}
	}
	if r.Inherits {
		return r
	}
	r.Send, r.Spawn, r.Stop = p.strings(), p.strings(), p.strings()
	if set&ruleServices != 0 {
		if r.Services = p.strings(); len(r.Services) > abi.MaxServices || len(r.Services) == 0 {
			p.fail("it has more services than can be, or none")
		}
	}
	return r
}

func appendStrings(to []byte, all []string) []byte {
	to = appendUint(to, uint64(len(all)))
	for _, s := range all {
		to = appendString(to, s)
	}
	return to
}

// strings is nil if there are none.
func (p *parser) strings() (all []string) {
	n := p.uint()
	if n > uint64(len(p.rest)) {
		p.fail("it has more strings than bytes")
		return nil
	}
	for range n {
		all = append(all, p.string())
	}
	return all
}
