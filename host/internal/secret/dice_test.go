package secret

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
)

// Dice follow from the secret and the actor, and go on where they were saved.
func TestDice(t *testing.T) {
	var a, again, other, late Dice
	if a.Save() != nil {
		t.Error("something was drawn")
	}
	first := a.Rand(Of(1), 7).Uint64()
	if again.Rand(Of(1), 7).Uint64() != first || other.Rand(Of(1), 8).Uint64() == first {
		t.Error("the first draw does not follow from the secret and the actor")
	}
	if err := late.Load(Of(1), 7, a.Save()); err != nil || late.Rand(Of(1), 7).Uint64() != a.Rand(Of(1), 7).Uint64() {
		t.Errorf("%v; it does not go on where it was", err)
	}
	if late.Load(Of(1), 7, []byte("x")) == nil {
		t.Error("no state of a generator is loaded")
	}
}

// The key stays that of the first incarnation, whenever it is first asked for.
func TestKeysOfGuests(t *testing.T) {
	var k, late Keys
	k.Draw(Of(1), 7, 0)
	seed, key := k.Seed, k.Child(Of(1), 7)
	if k.Draw(Of(1), 7, 1); k.Seed == seed || k.Child(Of(1), 7) != key {
		t.Error("another incarnation has the same seed, or another key")
	}
	if late.Draw(Of(1), 7, 1); late.Seed != k.Seed || late.Child(Of(1), 7) != key || key == (abi.RefKey{}) {
		t.Error("one that begins with a later incarnation has other keys")
	}
}
