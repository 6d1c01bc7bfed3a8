package mailbox

import "testing"

func BenchmarkPushPop(b *testing.B) {
	m := boxOf(Limits{})
	var cache Cache
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Push(cache.New()); err != nil {
			b.Fatal(err)
		}
		cache.Free(m.Pop())
	}
}

func BenchmarkPushPop64(b *testing.B) {
	m := boxOf(Limits{})
	var cache Cache
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		for range 64 {
			if err := m.Push(cache.New()); err != nil {
				b.Fatal(err)
			}
		}
		for range 64 {
			cache.Free(m.Pop())
		}
	}
}
