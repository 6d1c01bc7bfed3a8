//go:build !wasip1

package main

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/actortest"
)

func TestCounter(t *testing.T) {
	counter := actortest.Spawn(t, "counter", actortest.Args(&settings{Start: 100}))
	counter.Send(actor.Int(1))
	if total := counter.Send(actor.Int(20)).Reply().Int(); total != 121 {
		t.Errorf("the total is %d", total)
	}
	if f := counter.Send(actor.Text("one")).Failure; f == nil || !strings.Contains(f.Error(), "numbers only") {
		t.Errorf("the failure is %v", f)
	}
	counter.Restart()
	if total := counter.Send(actor.Int(300)).Reply().Int(); total != 400 {
		t.Errorf("the total after the restart is %d", total)
	}
}
