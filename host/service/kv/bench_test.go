package kv

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"
	"github.com/wasmactors/wasmactors/host/service"
)

// BenchmarkStore is what the store does for so many who write, or read, at a time: operations
// a second, and the 99th percentile of their times.
func BenchmarkStore(b *testing.B) {
	value := make([]byte, 100)
	batch := func(i int64) []Op {
		ops := make([]Op, 10)
		for k := range ops {
			ops[k] = Op{Kind: OpPut, Key: fmt.Sprint("k", (i*10+int64(k))%100_000), Value: value}
		}
		return ops
	}
	one := func(i int64) []Op { return batch(i)[:1] }
	for _, c := range []struct {
		name string
		at   int
		do   func(s *store, i int64) error
	}{
		{"put/disk", 1, writing(one, Disk)}, {"put/disk", 64, writing(one, Disk)},
		{"put/os", 1, writing(one, OS)}, {"put/os", 64, writing(one, OS)}, {"put/memory", 64, writing(one, Memory)},
		{"batch-of-10/disk", 1, writing(batch, Disk)}, {"batch-of-10/disk", 64, writing(batch, Disk)},
		{"get", 1, reading}, {"get", 64, reading},
	} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.at), func(b *testing.B) {
			s := openOn(b, filepath.Join(b.TempDir(), "kv"), vfs.Default)
			defer s.close()
			for i := range int64(1000) {
				if err := writing(batch, Memory)(s, i); err != nil {
					b.Fatal(err)
				}
			}
			var next atomic.Int64
			times := make([][]time.Duration, c.at)
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range c.at {
				wg.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						began := time.Now()
						if err := c.do(s, i); err != nil {
							b.Error(err)
							return
						}
						times[w] = append(times[w], time.Since(began))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			all := slices.Concat(times...)
			slices.Sort(all)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
		})
	}
}

func writing(ops func(int64) []Op, d Durability) func(*store, int64) error {
	return func(s *store, i int64) error {
		_, _, err := s.change(context.Background(), "n", Quota{}, ops(i), d)
		return err
	}
}

func reading(s *store, i int64) error {
	_, err := s.get("n", fmt.Sprint("k", i*7919%10_000))
	if service.CodeOf(err) == service.NotFound {
		return nil
	}
	return err
}

// TestBytesAKey says what a key costs on the disk, and that it is no more than what its
// namespace is charged.
func TestBytesAKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	s := openOn(t, dir, vfs.Default)
	defer s.close()
	const n = 20_000
	payload := int64(0)
	for i := 0; i < n; i += 100 {
		ops := make([]Op, 100)
		for k := range ops {
			ops[k] = Op{Kind: OpPut, Key: fmt.Sprintf("key/%08d", i+k), Value: fmt.Appendf(nil, "%x", uint64(i+k)*0x9e3779b97f4a7c15), TTL: time.Hour}
			payload += int64(len(ops[k].Key) + len(ops[k].Value))
		}
		if _, _, err := s.change(context.Background(), "n", Quota{}, ops, Memory); err != nil {
			t.Fatal(err)
		}
	}
	e := s.engine().(*onDisk)
	if err := e.db.Flush(); err != nil {
		t.Fatal(err)
	}
	m := e.db.Metrics()
	size := m.Total().Size
	t.Logf("%d keys of %d bytes with their values take %d bytes each in tables", n, payload/n, size/n)
	if u, err := s.used(context.Background(), "n"); err != nil || u.Bytes < size {
		t.Errorf("charged %d, %d on the disk, %v", u.Bytes, size, err)
	}
}
