package journal

import "testing"

// A key that does not fit into a record is not written anew, and nobody waits for that.
func TestNobodyWaitsForAKeyThatIsNotWrittenAnew(t *testing.T) {
	j, k := &Journal{}, &key{last: 1, records: 9, unfit: true}
	if j.renew(k, true) {
		t.Error("it is said to be written anew")
	}
	if k.whole = true; !j.renew(k, true) {
		t.Error("it is being written anew, and that is not said")
	}
}
