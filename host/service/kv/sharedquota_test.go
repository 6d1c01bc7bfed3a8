package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
)

// oneOf carries out one operation.
func oneOf(t *testing.T, s *shared, q Quota, op Op) error {
	t.Helper()
	_, _, err := s.changeThen(t.Context(), "n", q, []Op{op}, Disk, func() {})
	return err
}

// What was removed, or has ended, counts for as long as the cluster keeps it, and then no more.
func TestSharedQuotaCountsWhatIsKept(t *testing.T) {
	q := Quota{Keys: 1, Bytes: 128 << 10}
	for name, write := range map[string]func(s *shared, clock *host.VirtualClock, i int) error{
		"ended": func(s *shared, clock *host.VirtualClock, i int) error {
			err := oneOf(t, s, q, Op{Kind: OpPut, Key: fmt.Sprint(i), Value: make([]byte, 60<<10), TTL: time.Millisecond})
			clock.Advance(1100 * time.Millisecond)
			return err
		},
		"removed": func(s *shared, _ *host.VirtualClock, i int) error {
			key := fmt.Sprint(strings.Repeat("k", 200), i)
			if err := oneOf(t, s, q, Op{Kind: OpPut, Key: key, Value: []byte("x")}); err != nil {
				return err
			}
			return oneOf(t, s, q, Op{Kind: OpDelete, Key: key})
		},
	} {
		c := &common{}
		all, clock := sharing(t, c, 1)
		i := 0
		for err := error(nil); err == nil; i++ {
			if err = write(all[0], clock, i); err != nil && service.CodeOf(err) != service.Quota {
				t.Fatal(name, err)
			}
			if i > 1000 {
				t.Fatalf("%s: one key after the other is written", name)
			}
		}
		if i < 2 {
			t.Errorf("%s: %d were written", name, i)
		}
		if u, err := all[0].used(t.Context(), "n"); err != nil || u.Bytes < 60<<10 {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
		for range 80 {
			clock.Advance(time.Second)
		}
		if u, err := all[0].used(t.Context(), "n"); err != nil || u.Bytes != 0 || all[0].held.total != 0 || all[0].held.ends.Len() != 0 || len(all[0].held.of) != 0 {
			t.Errorf("%s: later: %+v, %v, %d", name, u, err, all[0].held.total)
		}
		if err := write(all[0], clock, i); err != nil {
			t.Errorf("%s: later: %v", name, err)
		}
	}
}

// The store of all bundles has a bound, and what it holds can be removed at any time.
func TestSharedTotal(t *testing.T) {
	c := &common{}
	a, _ := sharing(t, c, 1)
	b, _ := sharingAs(t, "other", c, 1)
	for i := 0; ; i++ {
		err := oneOf(t, a[0], Quota{}, Op{Kind: OpPut, Key: fmt.Sprint(i), Value: make([]byte, MaxValue)})
		if service.CodeOf(err) == service.Quota {
			break
		}
		if err != nil || i > 2*service.MaxSharedTotal/MaxValue {
			t.Fatal(i, err)
		}
	}
	if err := oneOf(t, b[0], Quota{}, Op{Kind: OpPut, Key: "x", Value: make([]byte, MaxValue)}); service.CodeOf(err) != service.Quota {
		t.Error("another bundle", err)
	}
	if err := oneOf(t, a[0], Quota{}, Op{Kind: OpPut, Key: "1", Value: make([]byte, MaxValue)}); err != nil {
		t.Error("of the same size", err)
	}
	for i := range 2 {
		if err := oneOf(t, a[0], Quota{}, Op{Kind: OpDelete, Key: fmt.Sprint(i)}); err != nil {
			t.Error(err)
		}
	}
	if err := oneOf(t, b[0], Quota{}, Op{Kind: OpPut, Key: "x", Value: make([]byte, MaxValue)}); err != nil {
		t.Error("another bundle, later", err)
	}
}

// Bundles of different names have entries of their own.
func TestSharedByName(t *testing.T) {
	c := &common{}
	a, _ := sharing(t, c, 1)
	b, _ := sharingAs(t, "stranger", c, 1)
	if err := oneOf(t, a[0], Quota{}, Op{Kind: OpPut, Key: "k", Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b[0].read(t.Context(), "n", "k"); service.CodeOf(err) != service.NotFound {
		t.Error(err)
	}
	if page, _, err := b[0].page(t.Context(), listing{ns: "n"}); err != nil || len(page) != 0 {
		t.Error(page, err)
	}
	if err := oneOf(t, b[0], Quota{}, Op{Kind: OpPut, Key: "k", Value: []byte("y"), If: version(0)}); err != nil {
		t.Error(err)
	}
	if e, err := a[0].read(t.Context(), "n", "k"); err != nil || string(e.Value) != "x" {
		t.Error(e, err)
	}
	if _, err := openShared(&service.Env{Clock: host.NewVirtualClock(time.Unix(1, 0)), Shared: func(context.Context, string) (service.Shared, error) { return c, nil }}); err == nil {
		t.Error("a bundle without a name")
	}
}

// Writes that are under way, or of which the node was not told yet, count.
func TestSharedQuotaOfWritesUnderWay(t *testing.T) {
	c := &common{hold: true}
	all, _ := sharing(t, c, 1)
	s, q := all[0], Quota{Keys: 2}
	for i := range 2 {
		if err := oneOf(t, s, q, Op{Kind: OpPut, Key: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := oneOf(t, s, q, Op{Kind: OpPut, Key: "third"}); service.CodeOf(err) != service.Quota {
		t.Error(err)
	}
	c.tell()
	if len(s.held.under) != 0 {
		t.Errorf("%d are under way", len(s.held.under))
	}
	if err := oneOf(t, s, q, Op{Kind: OpDelete, Key: "0"}); err != nil {
		t.Error(err)
	}
	if err := oneOf(t, s, q, Op{Kind: OpPut, Key: "third"}); err != nil {
		t.Error(err)
	}
	for range 2 { // what fails is not under way any more
		c.refuse = errors.New("refused")
		_ = oneOf(t, s, Quota{}, Op{Kind: OpPut, Key: "failed"})
	}
	if len(s.held.under) != 0 {
		t.Errorf("%d are under way", len(s.held.under))
	}
}

// Until the copy has had all that there is, no quota is known: writes wait for it.
func TestSharedQuotaWaitsForTheCopy(t *testing.T) {
	c := &common{unready: true}
	all, _ := sharing(t, c, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := all[0].changeThen(ctx, "n", Quota{}, []Op{{Kind: OpPut, Key: "k"}}, Disk, func() {}); service.CodeOf(err) != service.Cancelled || c.revision != 0 {
		t.Error(err, c.revision)
	}
	if _, err := all[0].used(ctx, "n"); service.CodeOf(err) != service.Cancelled {
		t.Error(err)
	}
}

// An error says that nothing was written, if that is known.
func TestSharedErrors(t *testing.T) {
	c := &common{}
	all, _ := sharing(t, c, 1)
	for _, x := range []struct {
		err  error
		code service.Code
		text string
	}{
		{service.ErrFull, service.Quota, "nothing was written"}, {service.ErrNotWritten, service.Unavailable, "nothing was written"},
		{host.ErrNodeLost, service.Unavailable, "nothing was written"}, {errors.New("lost"), service.Unavailable, "not known"},
	} {
		c.refuse = x.err
		if err := oneOf(t, all[0], Quota{}, Op{Kind: OpPut, Key: "k"}); service.CodeOf(err) != x.code || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%v: %v", x.err, err)
		}
	}
}

// A version of an entry that has ended, or was removed, is none.
func TestSharedVersionsOfWhatHasEnded(t *testing.T) {
	c := &common{}
	all, clock := sharing(t, c, 1)
	s := all[0]
	for _, end := range []func(){
		func() { clock.Advance(time.Millisecond) },
		func() { _ = oneOf(t, s, Quota{}, Op{Kind: OpDelete, Key: "k"}) },
	} {
		if err := oneOf(t, s, Quota{}, Op{Kind: OpPut, Key: "k", Value: []byte("x"), TTL: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		end()
		at := c.last[sharedKey("b", "n", "k")].revision
		if err := oneOf(t, s, Quota{}, Op{Kind: OpPut, Key: "k", If: &at}); service.CodeOf(err) != service.Conflict {
			t.Errorf("version %d: %v", at, err)
		}
	}
}

// An entry that ends is told of with its version, in order with what is written to its key.
func TestSharedExpiryHasItsVersion(t *testing.T) {
	c := &common{}
	all, clock := sharing(t, c, 1)
	w, _, err := all[0].hub.watch("n", "", true, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if err := oneOf(t, all[0], Quota{}, Op{Kind: OpPut, Key: key, TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	clock.Advance(3 * time.Second)
	list, _, _ := w.take(10, 1<<20)
	if len(list) != 4 || list[2].Version != list[0].Version || list[3].Version != list[1].Version || list[2].Version == 0 || !list[3].Expired {
		t.Errorf("%+v", list)
	}
}
