package asks

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// Questions of this node are forgotten when nobody waits; of other nodes the last ones are kept, so that the list is bounded.
func TestTakenIsBounded(t *testing.T) {
	var none *Taken
	if none.End() != nil {
		t.Error("none has some")
	}
	var here, there Taken
	for i := range uint64(10 * mostTaken) {
		here.Note(abi.Ref(1)<<54|abi.Ref(i), i, 1, func(uid abi.Ref) bool { return uid == abi.Ref(1)<<54|3 })
		there.Note(abi.Ref(2)<<54|abi.Ref(i), i, 1, func(abi.Ref) bool { return false })
	}
	if n := len(here.End()); n > leastTaken || here.End()[0].Correlation != 3 {
		t.Errorf("%d of this node: %v", n, here.End()[0])
	}
	if n := len(there.End()); n < mostTaken || n > 2*mostTaken || there.End()[n-1].Correlation != 10*mostTaken-1 {
		t.Errorf("%d of another node", n)
	}
}
