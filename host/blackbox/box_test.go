package blackbox

import (
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"pgregory.net/rapid"
)

// TestBoxesHoldWhatTheyHaveTaken: whatever actors are sent, and whether it fails, boxes have no more memory between two entries
// than they have taken of the recorder's room, and all together no more than that.
func TestBoxesHoldWhatTheyHaveTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bytes = 10 * chunk
		r := &Recorder{cfg: Config{Bytes: bytes, ActorBytes: 4 * chunk}, last: map[cause]int64{}, ended: true}
		r.room.Store(bytes)
		var boxes []*Box
		for range rapid.IntRange(1, 30).Draw(t, "entries") {
			i := rapid.IntRange(0, 3).Draw(t, "box")
			for len(boxes) <= i {
				b, ok := r.NewBox(&Life{Type: "x", Limits: &sandbox.Entry{}})
				if !ok {
					t.Skip("no room for a box")
				}
				boxes = append(boxes, b)
			}
			b := boxes[i]
			failed := b.begin != nil && rapid.Bool().Draw(t, "it fails")
			b.Begin(&Run{Pushed: 1, Done: 1, Failed: failed, Outbox: make([]byte, rapid.IntRange(0, 9000).Draw(t, "outbox"))})
			b.Mail(abi.KindMessage, 1, 0, nil, make([]byte, rapid.SampledFrom([]int{0, 100, chunk / 2, chunk, 5 * chunk, 20 * chunk}).Draw(t, "payload")))
			if failed {
				b.Crash(&Failure{Failure: &abi.Failure{Kind: abi.FailureTrap}, Keep: rapid.Bool().Draw(t, "turns before it count")})
			} else {
				b.Done()
			}
			sum := int64(0)
			for _, b := range boxes {
				sum += b.held
				if has := int64(cap(b.log) + cap(b.begin) + b.base.Bytes()); has > b.held {
					t.Fatalf("a box has %d bytes, and has taken %d (full: %q)", has, b.held, b.full)
				}
			}
			if sum != r.Held() || sum > bytes {
				t.Fatalf("boxes hold %d bytes, %d are taken of %d", sum, r.Held(), bytes)
			}
		}
		for _, b := range boxes {
			b.Drop()
		}
		if r.Held() != 0 {
			t.Fatalf("%d bytes are left", r.Held())
		}
	})
}
