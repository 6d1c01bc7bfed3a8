package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/wasmactors/wasmactors/abi"
)

// TestFramesOfATrace: names come without what the rewriter and wazero add, cut to their bound and
// valid; of a long trace they are copies.
func TestFramesOfATrace(t *testing.T) {
	long := strings.Repeat("x", 2*maxName)
	for _, c := range []struct {
		trace string
		want  []string
	}{
		{"", nil},
		{"\n\t.f(i32) i32\n\tmain.(*T).m()\n\t... maybe followed by omitted frames", []string{"f", "main.(*T).m"}},
		{"\n\t.f()\n\t.wasmactors.enter()\n\n\tgoroutine 1", []string{"f"}},
		{"\n\t." + long + "()", []string{long[:maxName]}},
		{"\n\t.a\xffb()", []string{"a\uFFFDb"}},
	} {
		for _, shared := range []bool{false, true} {
			if got := frames(c.trace, shared); !slices.Equal(got, c.want) {
				t.Errorf("%q: %q", c.trace, got)
			}
		}
	}
	trace := "\n\t.name()"
	if got := frames(trace, false); within(got[0], trace) {
		t.Error("a name holds a text that is not to be shared")
	}
	if got := frames(trace, true); !within(got[0], trace) {
		t.Error("a name is copied without need")
	}
	if n := testing.AllocsPerRun(100, func() { frames("\n\t.f()\n\t.g(i32)\n\t.h() i32", true) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func within(part, whole string) bool {
	p, w := uintptr(unsafe.Pointer(unsafe.StringData(part))), uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return p >= w && p < w+uintptr(len(whole))
}

// TestOriginIsWhatErrorsAsFinds, and the innermost error.
func TestOriginIsWhatErrorsAsFinds(t *testing.T) {
	a, plain := &abort{kind: abi.FailureFuel}, errors.New("plain")
	for _, c := range []struct {
		err   error
		abort *abort
		inner error
	}{{a, a, a}, {fmt.Errorf("x: %w", fmt.Errorf("y: %w", a)), a, a}, {plain, nil, plain}, {fmt.Errorf("x: %w", plain), nil, plain}} {
		if got, inner := origin(c.err); got != c.abort || inner != c.inner {
			t.Errorf("%v: %v, %v", c.err, got, inner)
		}
	}
}
