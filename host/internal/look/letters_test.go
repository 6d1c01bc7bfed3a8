package look

import (
	"strings"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host/event"
	"github.com/wasmactors/wasmactors/internal/mailbox"
)

// What dead letters keep is bounded, whatever they are; the oldest give way.
func TestDeadLettersAreBoundedInBytes(t *testing.T) {
	var d Letters
	var secrets Secrets
	d.Init(8, 10_000)
	for i := range 100 {
		e := &mailbox.Envelope{Kind: abi.KindMessage, Payload: []byte(strings.Repeat("x", 1500+i*10))}
		l := secrets.Letter(event.DeadUnknown, 77, "", e)
		d.Add(&l, e)
		if d.bytes > 10_000 {
			t.Fatalf("%d bytes", d.bytes)
		}
		sum := int64(0)
		for k := range d.ring {
			sum += d.ring[k].extra()
		}
		if sum != d.bytes {
			t.Fatalf("%d are counted, %d there", d.bytes, sum)
		}
	}
	letters, total := d.All()
	if len(letters) != 8 || total != 100 || letters[7].ID != 100 || !letters[7].Whole || letters[0].Whole {
		t.Errorf("%d of %d, %+v", len(letters), total, letters[0])
	}
}
