// Package instrcount counts the machine instructions that a piece of a program takes, by
// stepping through it: the number is the same on a busy machine and on an idle one, and
// needs no performance counters.
//
// The program under test, which is the one that counts, calls [Mark] where a span begins and where
// it ends; [Run] starts it once more as a child and steps through its spans. A step takes about 5 us,
// so a span should have no more than some hundred thousand instructions. What Go's scheduler does when
// it finds the stepped program slow is left out.
package instrcount

import "errors"

// Span is what one thread has executed between two calls of Mark.
type Span struct {
	Total uint64
	// Generated are those in code that was made while the program ran, which is the guest's
	// where wazero has compiled it.
	Generated uint64
	// At counts the instructions by their addresses.
	At map[uintptr]uint64
}

// ErrUnsupported is what Run and Mark return where there is no way to step.
var ErrUnsupported = errors.New("instrcount: only on linux/amd64, where tracing of child processes is allowed")

// Least is the span with the smallest total.
func Least(spans []Span) Span {
	least := Span{}
	for i, s := range spans {
		if i == 0 || s.Total < least.Total {
			least = s
		}
	}
	return least
}
