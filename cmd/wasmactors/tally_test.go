package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/host"
)

// However many actors crash, the summary is short, names those that have crashed most often, and loses no crash.
func TestTheSummaryOfCrashesIsBounded(t *testing.T) {
	sys, err := host.New(host.NewConfig("test").WithManual())
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(t.Context())
	var x tally
	const actors = mostTallied + 100
	for i := range actors {
		ref, err := sys.Spawn(fmt.Sprintf("a%d", i), host.Func(func(*host.Context, host.Message) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		x.add(&host.Event{Kind: host.EventFailed, Ref: ref})
		if i == 500 {
			x.add(&host.Event{Kind: host.EventFailed, Ref: ref})
		}
	}
	var b bytes.Buffer
	x.write(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(x.actors) > mostTallied || len(lines) != mostListed+1 {
		t.Errorf("%d actors are kept; %s", len(x.actors), b.String())
	}
	if !strings.Contains(b.String(), "/user/a500           2 crashes") || !strings.Contains(b.String(), "/user/a18 ") || strings.Contains(b.String(), "/user/a19 ") {
		t.Error(b.String())
	}
	if want := fmt.Sprintf("and %d crashes of other actors", actors-mostListed); lines[len(lines)-1] != "    "+want {
		t.Errorf("%q, not %q", lines[len(lines)-1], want)
	}
}
