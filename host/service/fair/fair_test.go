package fair

import (
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"pgregory.net/rapid"
)

func mail(tree, n, size int) *host.Envelope {
	return &host.Envelope{Kind: abi.KindMessage, SenderPath: fmt.Sprintf("wasm://x/user/t%d/a%d", tree, n%3), Correlation: uint64(n), Payload: make([]byte, size)}
}

// The mailbox is a queue within its bounds, and no tree has more than a quarter of it.
func TestFairMailbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := host.MailboxLimits{Messages: 40, Bytes: 400}
		box := New(limits)
		var model []*host.Envelope
		n := 0
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2, 3, 4:
				e := mail(rapid.IntRange(0, 5).Draw(t, "tree"), n, rapid.IntRange(0, 30).Draw(t, "size"))
				n++
				its, bytes, all := 0, 0, 0
				for _, m := range model {
					all += m.Size()
					if treeOf(m) == treeOf(e) {
						its++
						bytes += m.Size()
					}
				}
				fits := len(model) < 40 && all+e.Size() <= 400 && its < 10 && bytes+e.Size() <= 100
				if err := box.Push(e); (err == nil) != fits {
					t.Fatalf("%v, %d of its, %d bytes of %d", err, its, bytes, all)
				}
				if fits {
					model = append(model, e)
				}
			case 5:
				e := mail(0, n, 3)
				n++
				if !box.Force(e) {
					t.Fatal("refused")
				}
				model = append(model, e)
			case 6:
				k := min(len(model), rapid.IntRange(0, 3).Draw(t, "back"))
				for i := range k {
					if e := box.Pop(); e != model[i] {
						t.Fatal("another order")
					}
				}
				box.PushFront(model[:k]...)
			default:
				if e := box.Peek(); len(model) > 0 && e != model[0] || len(model) == 0 && e != nil {
					t.Fatal("another order")
				}
				e := box.Pop()
				if len(model) == 0 {
					if e != nil {
						t.Fatal("something out of nothing")
					}
					continue
				}
				if e != model[0] {
					t.Fatal("another order")
				}
				model = model[1:]
			}
			if box.Len() != len(model) || box.Empty() != (len(model) == 0) {
				t.Fatalf("%d, want %d", box.Len(), len(model))
			}
		}
		left := 0
		box.Close(func(*host.Envelope) { left++ })
		if left != len(model) || box.Len() != 0 || box.Bytes() != 0 || box.Force(mail(0, 0, 0)) {
			t.Fatalf("%d left of %d", left, len(model))
		}
	})
}
