package durable

import (
	"encoding/binary"
	"time"

	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/supervision"
)

// flagsOf are what a decision has as flags, from the lowest bit on.
func flagsOf(d *record.Decision) [4]*bool {
	return [...]*bool{&d.Alone, &d.Keep, &d.Quits, &d.Overtake}
}

// appendDecision writes what a strategy has said: the fields that a decision of its kind has.
func appendDecision(to []byte, d *record.Decision) []byte {
	flags := byte(0)
	for i, on := range flagsOf(d) {
		if *on {
			flags |= 1 << i
		}
	}
	to = append(to, byte(d.About), flags)
	if d.About == record.Delayed {
		return appendUint(appendUint(append(to, byte(d.Meanwhile)), uint64(d.Stash)), uint64(d.Grace))
	}
	to = binary.LittleEndian.AppendUint64(to, uint64(d.Child))
	if d.About == record.Reported {
		to = appendUint(append(to, byte(d.Chosen), byte(d.Directive), byte(d.Group)), uint64(d.Delay))
	}
	return to
}

// decision reads one.
func (p *parser) decision() *record.Decision {
	d := &record.Decision{About: record.About(p.byte())}
	flags := p.byte()
	for i, on := range flagsOf(d) {
		*on = flags&(1<<i) != 0
	}
	if flags>>len(flagsOf(d)) != 0 {
		p.fail("it has flags that no decision has")
	}
	if d.About == record.Delayed {
		d.Meanwhile, d.Stash, d.Grace = supervision.Meanwhile(p.byte()), int(p.uint()), time.Duration(p.uint())
		return d
	}
	d.Child = p.ref()
	if d.About == record.Reported {
		d.Chosen, d.Directive, d.Group, d.Delay = supervision.Directive(p.byte()), supervision.Directive(p.byte()), supervision.Kind(p.byte()), time.Duration(p.uint())
	}
	return d
}
