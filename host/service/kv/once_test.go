package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/host/service/internal/once"
)

func keyed(life abi.Ref, number, settled uint64) *once.Request {
	return &once.Request{Life: life, Effect: &host.Effect{Key: [16]byte{byte(life), byte(number), byte(number >> 8)}, Number: number, Settled: settled}}
}

func addOnce(s *store, q Quota, r *once.Request) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, _, err := s.changeOnce(ctx, "n", q, []Op{{Kind: OpAdd, Key: "count", Delta: 1}}, Disk, func() {}, r)
	if err != nil {
		return Result{}, err
	}
	return res[0], nil
}

// TestAWriteIsDoneOnce: a write that comes again has no second effect and the same answer, also after the store was opened again, until
// it is settled. A key that is not the same is another write.
func TestAWriteIsDoneOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bed) {
		b.reopen(t)
		want := map[uint64]Result{}
		for n := uint64(1); n <= 3; n++ {
			for range 3 {
				res, err := addOnce(b.s, Quota{}, keyed(7, n, 1))
				if was, had := want[n]; err != nil || had && res != was || res.Count != int64(n) {
					t.Fatalf("%d: %+v %v", n, res, err)
				}
				want[n] = res
				b.reopen(t)
			}
		}
		if res, err := addOnce(b.s, Quota{}, keyed(8, 1, 1)); err != nil || res.Count != 4 {
			t.Errorf("of another life: %+v %v", res, err)
		}
		other := keyed(7, 2, 1)
		other.Effect.Key[5] = 1
		if res, err := addOnce(b.s, Quota{}, other); err != nil || res.Count != 5 {
			t.Errorf("with another key: %+v %v", res, err)
		}
		if res, err := addOnce(b.s, Quota{}, keyed(7, 3, 1)); err != nil || res != want[3] {
			t.Errorf("a later one is forgotten: %+v %v", res, err)
		}
		for _, settled := range []uint64{4, 4} {
			if res, err := addOnce(b.s, Quota{}, keyed(7, 4, settled)); err != nil || res.Count != 6 {
				t.Errorf("%+v %v", res, err)
			}
		}
		kept := 0
		_ = b.s.engine().scan([]byte{spaceKept}, []byte{spaceKept + 1}, false, func(_, _ []byte) bool { kept++; return true })
		if kept != 2 {
			t.Errorf("%d are kept of two lives", kept)
		}
	})
}

// TestKeptWritesAreBounded: what is kept counts for the namespace, goes with time, and of one life there is not more than a number.
func TestKeptWritesAreBounded(t *testing.T) {
	clock := host.NewVirtualClock(time.Unix(1e9, 0))
	s, err := openStore(newMemory(), clock, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for n := uint64(1); n <= once.MostOpen; n++ {
		if _, err := addOnce(s, Quota{}, keyed(7, n, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := addOnce(s, Quota{}, keyed(7, once.MostOpen+1, 1)); service.CodeOf(err) != service.Busy {
		t.Errorf("one more: %v", err)
	}
	if u, _ := s.used(t.Context(), "n"); u.Bytes < once.MostOpen*once.Overhead {
		t.Errorf("%+v", u)
	}
	if _, err := addOnce(s, Quota{Bytes: 1 << 10}, keyed(9, 1, 1)); service.CodeOf(err) != service.Quota {
		t.Errorf("beyond the quota: %v", err)
	}
	if res, err := addOnce(s, Quota{}, keyed(7, once.MostOpen+1, once.MostOpen)); err != nil || res.Count != once.MostOpen+1 {
		t.Error(res, err)
	}
	for life := range abi.Ref(50) { // each leaves its last one
		if _, err := addOnce(s, Quota{}, keyed(100+life, 1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	full, _ := s.used(t.Context(), "n")
	clock.Advance(once.Keep + time.Second)
	for n := range uint64(60) {
		if _, err := addOnce(s, Quota{}, keyed(1, n+1, n+1)); err != nil {
			t.Fatal(err)
		}
	}
	is, _ := s.used(t.Context(), "n")
	if one := keptCost(1); is.Bytes > full.Bytes-50*one || is.Bytes > 3*one+EntryOverhead+100 {
		t.Errorf("%+v, and was %+v", is, full)
	}
	for _, space := range []byte{spaceKept, spaceOld} {
		left := 0
		_ = s.engine().scan([]byte{space}, []byte{space + 1}, false, func(_, _ []byte) bool { left++; return true })
		if left != 1 {
			t.Errorf("%d in space %c", left, space)
		}
	}
	s.must(t, Op{Kind: OpDelete, Key: "count"})
	if u, _ := s.used(t.Context(), "n"); u.Keys != 0 || u.Bytes != keptCost(1) {
		t.Errorf("%+v", u)
	}
}

// apart writes keys apart from their effects: what must not be.
type apart struct{ engine }

func (a apart) apply(w *writes, d Durability) (func() error, error) {
	var effect, key writes
	for _, x := range w.list {
		if to := &effect; x.key[0] == spaceKept {
			key.list = append(key.list, x)
		} else {
			to.list = append(to.list, x)
		}
	}
	wait, err := a.engine.apply(&effect, d)
	if err == nil {
		if err = wait(); err == nil && len(key.list) > 0 {
			wait, err = a.engine.apply(&key, d)
		}
	}
	return wait, err
}

// TestEveryCrashOfAWrite: whichever call of the disk is the last before the power fails, a write that is sent again has one effect. With
// keys that are written apart from their effects it has two.
func TestEveryCrashOfAWrite(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		wrong, crashes := 0, 0
		for n := int64(1); ; n++ {
			count, crashed, err := crashedWrites(t, n, mutant)
			if err != nil {
				t.Fatal(n, err)
			}
			if !crashed {
				break
			}
			if crashes++; count != writesOfACrash {
				wrong++
				if !mutant {
					t.Errorf("call %d: %d for %d", n, count, writesOfACrash)
				}
			}
		}
		if t.Logf("%d crashes, %d wrong (apart: %v)", crashes, wrong, mutant); mutant && wrong == 0 {
			t.Error("it makes no difference whether keys are in the batch of their effects")
		}
	}
}

const writesOfACrash = 5

// crashedWrites is what is counted when call n of the disk, and all that follow, fail, and the power with them.
func crashedWrites(t *testing.T, n int64, mutant bool) (count int64, crashed bool, _ error) {
	mem := vfs.NewStrictMem()
	var calls atomic.Int64
	fail := func(op string) error {
		if (op == "write" || op == "sync") && calls.Add(1) >= n {
			return &os.PathError{Op: op, Path: "x", Err: syscall.EIO}
		}
		return nil
	}
	open := func(fs vfs.FS) *store {
		eng, err := openLocked("kv", fs, quiet())
		if err != nil {
			t.Fatal(n, err)
		}
		var e engine = eng
		if mutant {
			e = apart{eng}
		}
		s, err := openStore(e, host.RealClock(), quiet(), nil)
		if err != nil {
			t.Fatal(n, err)
		}
		return s
	}
	begun := open(mem)
	begun.must(t, Op{Kind: OpAdd, Key: "count"})
	if err := begun.close(); err != nil {
		t.Fatal(err)
	}
	bad := newBadFS(mem)
	s := open(bad)
	bad.fail.Store(&fail)
	for i := uint64(1); i <= writesOfACrash; i++ {
		if _, err := addOnce(s, Quota{}, keyed(7, i, i)); err == nil {
			continue
		} else if crashed {
			return 0, true, err
		}
		crashed = true
		mem.SetIgnoreSyncs(true)
		_ = s.close()
		mem.ResetToSyncedState()
		mem.SetIgnoreSyncs(false)
		s = open(mem)
		i-- // it comes again
	}
	defer s.close()
	e, err := s.get("n", "count")
	if err != nil {
		return 0, crashed, err
	}
	return e.Count, crashed, nil
}

// FuzzOutcome: what is read is what was written, or refused.
func FuzzOutcome(f *testing.F) {
	f.Add((&outcome{5, []Result{{1, -2, true}, {Version: 9}}}).encode())
	f.Add([]byte{1, 0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decodeOutcome(b)
		if err != nil {
			if !errors.Is(err, once.ErrKept) {
				t.Error(err)
			}
			return
		}
		again, err := decodeOutcome(o.encode())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(o) || len(o.encode()) > len(b) || !bytes.Equal(again.encode(), o.encode()) {
			t.Errorf("%x: %+v, %+v", b, o, again)
		}
	})
}
