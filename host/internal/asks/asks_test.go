package asks

import (
	"slices"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/internal/alarm"
	"github.com/wasmactors/wasmactors/internal/clock"
)

func TestWhoMayAnswer(t *testing.T) {
	var a Answerers
	if a.Has(0) || a.Has(1) {
		t.Error("nobody was asked")
	}
	a.Add(1)
	if !a.Has(1) || a.Has(2) || a.Has(0) {
		t.Error("the actor that was asked may not answer")
	}
	if a.Delegate(2, 3) || a.Has(3) {
		t.Error("one that was not asked forwards")
	}
	if !a.Delegate(1, 2) || !a.Delegate(2, 3) || !a.Has(3) || !a.Has(1) {
		t.Error("forwarded, and forwarded again")
	}
	for i := range abi.Ref(2 * MaxAnswerers) {
		a.Delegate(1, 10+i)
	}
	n := 0
	for i := range abi.Ref(3 * MaxAnswerers) {
		if a.Has(i) {
			n++
		}
	}
	if n != MaxAnswerers {
		t.Errorf("%d may answer", n)
	}
	if !a.Delegate(1, 2) {
		t.Error("one that may already is refused")
	}
}

func TestWhoHasAnswered(t *testing.T) {
	var a Answerers
	for i := range abi.Ref(4) {
		a.Add(i + 1)
	}
	for i, ref := range []abi.Ref{1, 3, 9, 2, 4} {
		if empty := a.Remove(ref); empty != (i == 4) || a.Has(ref) {
			t.Errorf("%d: %v", ref, empty)
		}
	}
}

func TestTable(t *testing.T) {
	v := clock.NewVirtual(time.Unix(0, 0))
	var b alarm.Board
	var tab Table
	for c := range uint64(3) {
		tab.Add(3-c, &Ask{Target: 7}, b.After(v, time.Second, func() {}))
	}
	if !tab.Observe(2, 20) || !tab.Observe(1, 10) || tab.Observe(9, 90) {
		t.Error("observe")
	}
	if got := tab.Remove(2); !slices.Equal(got, []abi.Ref{20}) || tab.Get(2) != nil || b.Pending() != 2 {
		t.Error("remove", got)
	}
	if tab.Remove(2) != nil {
		t.Error("removed twice")
	}
	tab.Observe(3, 30)
	if got := tab.RemoveAll(); !slices.Equal(got, []abi.Ref{10, 30}) || tab.Len() != 0 || b.Pending() != 0 || v.Pending() != 0 {
		t.Error("remove all", got)
	}
}
