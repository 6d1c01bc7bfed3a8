package sandbox

import (
	"bytes"

	"github.com/wasmactors/wasmactors/abi"
)

// diagnostics is the output of the running turn that may explain its failure.
type diagnostics struct {
	phase uint64 // of the turn, see Instance.phaseNow
	trace []byte // from the first line that reports a panic on
	last  []byte // the last lines on stderr
}

// maxLastLines bounds diagnostics.last, in bytes.
const maxLastLines = 2048

// turnDiagnostics are those of the running turn.
func (x *Instance) turnDiagnostics() *diagnostics {
	if phase := x.phaseNow(); phase != x.diagnostics.phase {
		x.diagnostics.reset()
		x.diagnostics.phase = phase
	}
	return &x.diagnostics
}

func (d *diagnostics) reset() {
	d.trace, d.last = d.trace[:0], d.last[:0]
}

// panicPrefixes begin the lines on stderr by which Go reports a panic.
var panicPrefixes = [][]byte{[]byte("panic: "), []byte("fatal error: "), []byte("runtime error: ")}

// tinyPanic begins the line on stdout by which TinyGo does.
var tinyPanic = panicPrefixes[:1]

// add takes a line of stderr or stdout.
func (d *diagnostics) add(stderr bool, text []byte) {
	prefixes := tinyPanic
	if stderr {
		prefixes = panicPrefixes
		d.addLast(text)
	}
	begun := len(d.trace) > 0
	for _, prefix := range prefixes {
		begun = begun || bytes.HasPrefix(text, prefix)
	}
	if begun && len(d.trace) < abi.MaxReason {
		d.trace = append(append(d.trace, text...), '\n')
	}
}

// addLast appends a line to the last ones and drops as many old lines as that takes.
func (d *diagnostics) addLast(text []byte) {
	text = text[:clipLen(text, maxLastLines/2)]
	if over := len(d.last) + len(text) + 1 - maxLastLines; over > 0 {
		cut := bytes.IndexByte(d.last[over-1:], '\n') + over // at the end of a line
		d.last = d.last[:copy(d.last, d.last[cut:])]
	}
	d.last = append(append(d.last, text...), '\n')
}
