package host

import (
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/wasmactors/wasmactors/supervision"
)

// BenchmarkLarge has two actors send each other a large message; an operation is one message. The copies are two of as
// many bytes, between buffers that are there: what a message is held against.
func BenchmarkLarge(b *testing.B) {
	for _, n := range []int{64 << 10, 1 << 20} {
		b.Run(strconv.Itoa(n>>10)+"KiB/copies", func(b *testing.B) {
			from, to := make([]byte, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(to, from)
				copy(from, to)
			}
		})
		b.Run(strconv.Itoa(n>>10)+"KiB/WAT", func(b *testing.B) { largeGuests(b, largeGuest(b, newEngine(b)), n) })
		b.Run(strconv.Itoa(n>>10)+"KiB/Go SDK", func(b *testing.B) {
			image, err := familyImage()
			if err != nil {
				b.Fatal(err)
			}
			largeGuests(b, Guest(image, "porter"), n)
		})
		b.Run(strconv.Itoa(n>>10)+"KiB/native", func(b *testing.B) {
			sys := newSystem(b, NewConfig("large").WithWorkers(1))
			left, done := 0, make(chan struct{})
			echo := Func(func(c *Context, m Message) error {
				if left--; left <= 0 {
					done <- struct{}{}
					return nil
				}
				return c.Reply(Raw(m.Payload))
			})
			x, y := largeActor(b, sys, echo), largeActor(b, sys, echo)
			large := largeBytes(n)
			b.SetBytes(int64(n))
			for _, count := range []int{100, b.N} {
				left = count
				b.ResetTimer()
				if err := sys.TellFrom(x, y, large); err != nil {
					b.Fatal(err)
				}
				<-done
			}
		})
	}
}

// largeBytes is a byte string of n bytes and its head.
func largeBytes(n int) Raw {
	r := append(Raw{0x5a, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
	for i := range n {
		r[5+i] = byte(i * 7)
	}
	return r
}

func largeActor(b *testing.B, sys *System, p Props) Ref {
	b.Helper()
	ref, err := sys.Spawn("", p)
	if err != nil {
		b.Fatal(err)
	}
	return ref
}

// largeGuests has two guests send each other a message until it has gone to and fro b.N times.
func largeGuests(b *testing.B, p Props, n int) {
	sys := newSystem(b, NewConfig("large").WithWorkers(1).WithGuardian(supervision.Default().WithSilence(true).WithMaxRestarts(-1, 0)))
	x, y := largeActor(b, sys, p), largeActor(b, sys, p)
	large := largeMessage('r', n-5)
	b.SetBytes(int64(n))
	failures := sys.Subscribe(10, func(e *Event) bool { return e.Kind == EventFailed })
	defer failures.Close()
	for _, count := range []int{100, b.N} {
		binary.LittleEndian.PutUint32(large[6:], uint32(count))
		b.ResetTimer()
		if err := sys.TellFrom(x, y, large); err != nil {
			b.Fatal(err)
		}
		<-failures.C()
	}
}
