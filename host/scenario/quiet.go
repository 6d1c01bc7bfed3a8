package scenario

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"
)

// Services work in goroutines of their own. A step is over only when these have done what they
// can: then each waits for a turn, or for time to pass. The Go runtime knows which goroutines
// wait; RATIONALE.md says why the runtime is asked.

// serviceCode are parts of the names of functions that goroutines of services run.
var serviceCode = [][]byte{[]byte("wasmactors/host/service"), []byte("database/sql.")}

// waits are the states of goroutines that only another goroutine can wake.
var waits = [][]byte{
	[]byte("select"), []byte("select (no cases)"), []byte("chan receive"), []byte("chan receive (nil chan)"), []byte("chan send"),
	[]byte("sync.Cond.Wait"), []byte("sync.WaitGroup.Wait"),
}

// quiet waits until all goroutines of services wait.
func quiet(ctx context.Context) error {
	stacks := make([]byte, 64<<10)
	for pause := 10 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		n := runtime.Stack(stacks, true)
		for n == len(stacks) && n < 16<<20 {
			stacks = make([]byte, 2*len(stacks))
			n = runtime.Stack(stacks, true)
		}
		busy := busyService(stacks[:n])
		if busy == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: a service is at work: %s", context.Cause(ctx), busy)
		case <-time.After(pause):
		}
	}
}

// busyService is the first line of a goroutine of a service that does not wait; nil if all do. The
// caller's goroutine comes first and does not count.
func busyService(stacks []byte) []byte {
	all := bytes.Split(stacks, []byte("\n\n"))
	for _, g := range all[1:] {
		head, body, _ := bytes.Cut(g, []byte("\n"))
		if !containsAny(body, serviceCode) {
			continue
		}
		_, state, _ := bytes.Cut(head, []byte("["))
		state = bytes.TrimSuffix(state, []byte("]:"))
		state, _, _ = bytes.Cut(state, []byte(", "))
		if !equalsAny(state, waits) {
			first, _, _ := bytes.Cut(body, []byte("\n"))
			return bytes.Clone(first)
		}
	}
	return nil
}

func containsAny(b []byte, parts [][]byte) bool {
	for _, p := range parts {
		if bytes.Contains(b, p) {
			return true
		}
	}
	return false
}

func equalsAny(b []byte, all [][]byte) bool {
	for _, x := range all {
		if bytes.Equal(b, x) {
			return true
		}
	}
	return false
}
