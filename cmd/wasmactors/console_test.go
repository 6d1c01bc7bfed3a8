package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
)

// Row K09 of the semantics: ten dead letters are logged, then a line that says so, and
// as JSON all.
func TestK09_DeadLettersAreLoggedTenTimes(t *testing.T) {
	for _, c := range []struct {
		json        bool
		lines, last int
	}{{false, 10, 1}, {true, 25, 0}} {
		var stderr bytes.Buffer
		console := newConsole(&environment{stderr: &stderr, terminal: &stderr}, c.json, false, 1, "none")
		for range 25 {
			console.event(&host.Event{Kind: host.EventDeadLetter, Dead: &host.DeadLetter{Path: "/user/nobody", Payload: []byte{1}}})
		}
		lines, last := strings.Count(stderr.String(), "/user/nobody"), strings.Count(stderr.String(), "more dead letters are counted")
		if lines != c.lines || last != c.last {
			t.Errorf("json %v: %d lines and %d\n%s", c.json, lines, last, &stderr)
		}
	}
}
