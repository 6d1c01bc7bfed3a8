package blackbox

import (
	"reflect"
	"testing"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/mailbox"
	"github.com/wasmactors/wasmactors/internal/sandbox"
	"pgregory.net/rapid"
)

// handed is an entry and its only envelope.
type handed struct {
	Entry
	env abi.Envelope
}

// TestTurnsAreReadAsTheyWereWritten: entries of one turn, which have a form of their own, are read like any others, in any
// order with failed ones, and whatever the sizes of their parts.
func TestTurnsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Recorder{cfg: Config{Bytes: 1 << 30, ActorBytes: 1 << 30}, last: map[cause]int64{}, ended: true}
		r.room.Store(r.cfg.Bytes)
		b, _ := r.NewBox(&Life{Type: "x", Limits: &sandbox.Entry{}, Turns: rapid.Uint64Range(0, 1<<40).Draw(t, "turns before")})
		sizes := rapid.SampledFrom([]int{0, 1, 15, 16, 20, 31, 32, 33, 49, 64, 65, 100, 127, 128, 300, wholeOutbox, wholeOutbox + 1, 20_000})
		numbers := rapid.SampledFrom([]uint64{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 40, 1<<64 - 1})
		text := func(what string) []byte {
			b := make([]byte, sizes.Draw(t, what))
			for i := range b {
				b[i] = byte(i + len(what))
			}
			return b
		}
		var want []handed
		next := b.next
		for i := range rapid.IntRange(1, 20).Draw(t, "entries") {
			h := handed{Entry{Now: int64(i), First: next, Pushed: 1, Done: 1, Fuel: numbers.Draw(t, "fuel")}, abi.Envelope{
				Kind: abi.KindMessage, Time: int64(i), Sender: abi.Ref(numbers.Draw(t, "sender")), Correlation: numbers.Draw(t, "correlation"),
				Headers: text("headers"), Payload: text("payload")}}
			outbox := text("out")
			h.Failed = i > 0 && rapid.IntRange(0, 4).Draw(t, "it fails") == 0
			if e := &h.env; h.Failed {
				h.Done = 0
				b.Begin(&Run{Now: h.Now, Pushed: 1, Fuel: h.Fuel, Failed: true, Outbox: outbox})
				b.Mail(e.Kind, e.Sender, e.Correlation, e.Headers, e.Payload)
				b.Crash(&Failure{Failure: &abi.Failure{Kind: abi.FailureTrap}, Keep: true})
			} else {
				b.Turn(h.Now, h.Fuel, outbox, &mailbox.Envelope{Kind: e.Kind, Sender: e.Sender, Correlation: e.Correlation, Headers: e.Headers, Payload: e.Payload})
			}
			if len(h.env.Headers) == 0 {
				h.env.Headers = nil
			}
			if h.Outbox = outbox; len(outbox) > wholeOutbox {
				hash := hashOf(outbox)
				h.Hashed, h.Outbox = true, hash[:]
			}
			next++
			want = append(want, h)
		}
		rd := reader{b: b.log}
		var list []byte
		if rd.list(&list, 1<<62); rd.err != nil {
			t.Fatalf("at %d: %v", rd.at, rd.err)
		}
		i := 0
		(&File{entries: list}).Entries(func(e *Entry) bool {
			n := 0
			e.Mail(func(env *abi.Envelope) bool {
				if n++; !reflect.DeepEqual(*env, want[i].env) {
					t.Fatalf("entry %d: %+v is not %+v", i, *env, want[i].env)
				}
				return true
			})
			got, w := *e, want[i].Entry
			got.mail, got.plain = nil, nil
			if len(got.Outbox) == 0 {
				got.Outbox, w.Outbox = nil, nil
			}
			if n != 1 || !reflect.DeepEqual(got, w) {
				t.Fatalf("entry %d of %d envelopes: %+v is not %+v", i, n, got, w)
			}
			i++
			return true
		})
		if i != len(want) {
			t.Errorf("%d of %d entries are read", i, len(want))
		}
	})
}

// TestTurnsAllocateNothing: once its buffers have grown, a box writes without allocating.
func TestTurnsAllocateNothing(t *testing.T) {
	r := &Recorder{cfg: Config{Bytes: 1 << 20, ActorBytes: 1 << 20}, ended: true}
	r.room.Store(r.cfg.Bytes)
	b, _ := r.NewBox(&Life{Type: "x", Limits: &sandbox.Entry{}})
	payload := make([]byte, 30)
	env := &mailbox.Envelope{Kind: abi.KindMessage, Sender: 1, Payload: payload}
	turn := func() { b.Turn(1, 900, payload, env) }
	turn()
	b.log = append(make([]byte, 0, 1<<19), b.log...)
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

// TestSnapshotsAreDue: when the entries take more than their bound, or when the turns have computed for long, but never
// before those are worth many times what a snapshot costs.
func TestSnapshotsAreDue(t *testing.T) {
	payload := make([]byte, 100)
	for name, c := range map[string]struct {
		bytes int64
		fuel  uint64
		due   int // after how many turns; 0: never
	}{
		"bound":      {4 << 10, 10_000, 34},
		"long turns": {1 << 20, longest / 10, 10},
		"neither":    {1 << 20, 10_000, 0},
		"too cheap":  {1 << 10, 0, 0},
	} {
		r := &Recorder{cfg: Config{Bytes: 1 << 24, ActorBytes: c.bytes}, ended: true}
		r.room.Store(r.cfg.Bytes)
		b, _ := r.NewBox(&Life{Type: "x", Limits: &sandbox.Entry{}})
		due := 0
		for i := 1; i < 40 && due == 0; i++ {
			if b.Turn(1, c.fuel, nil, &mailbox.Envelope{Kind: abi.KindMessage, Sender: 1, Payload: payload}) {
				due = i
			}
		}
		if due != c.due {
			t.Errorf("%s: a snapshot is due after %d turns, not after %d", name, due, c.due)
		}
	}
}
