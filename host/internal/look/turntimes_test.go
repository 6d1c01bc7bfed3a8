package look

import (
	"fmt"
	"testing"
	"time"
)

func TestTypesOfTurnTimesAreBounded(t *testing.T) {
	var x TurnTimesOf
	for i := range mostTimedTypes + 50 {
		x.Of(fmt.Sprint("type-", i)).Observe(time.Millisecond)
	}
	c := x.All()
	others := c[OtherTypes]
	if len(c) != mostTimedTypes+1 || others.N() != 50 {
		t.Errorf("%d types, %d others", len(c), others.N())
	}
}
