package sandbox

import (
	"bytes"

	"github.com/wasmactors/wasmactors/abi"
)

// told is what a guest has written in the turn that runs and what may explain its failure.
type told struct {
	phase uint64 // see Instance.phaseNow
	trace []byte // from the line on with which a language tells of a panic
	last  []byte // the last lines on stderr
}

// keepLast bounds told.last, in bytes.
const keepLast = 2048

// thisTurn is what the turn that runs has told.
func (x *Instance) thisTurn() *told {
	if phase := x.phaseNow(); phase != x.told.phase {
		x.told.reset()
		x.told.phase = phase
	}
	return &x.told
}

func (t *told) reset() {
	t.trace, t.last = t.trace[:0], t.last[:0]
}

// panicPrefixes are how Go begins to tell of a panic, on stderr.
var panicPrefixes = [][]byte{[]byte("panic: "), []byte("fatal error: "), []byte("runtime error: ")}

// TinyGo tells of one in a line on stdout.
var tinyPanic = panicPrefixes[:1]

// hear takes a line.
func (t *told) hear(stderr bool, text []byte) {
	prefixes := tinyPanic
	if stderr {
		prefixes = panicPrefixes
		t.remember(text)
	}
	begins := len(t.trace) > 0
	for _, prefix := range prefixes {
		begins = begins || bytes.HasPrefix(text, prefix)
	}
	if begins && len(t.trace) < abi.MaxReason {
		t.trace = append(append(t.trace, text...), '\n')
	}
}

// remember keeps a line among the last, as far as there is room.
func (t *told) remember(text []byte) {
	text = text[:clipLen(text, keepLast/2)]
	if over := len(t.last) + len(text) + 1 - keepLast; over > 0 {
		cut := bytes.IndexByte(t.last[over-1:], '\n') + over // behind a whole line
		t.last = t.last[:copy(t.last, t.last[cut:])]
	}
	t.last = append(append(t.last, text...), '\n')
}
