package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
	"github.com/wasmactors/wasmactors/host/cluster/clustertest"
)

// register has the list of a shard on one node of a world.
type register struct {
	t       *testing.T
	world   *clustertest.World
	j       *Journal
	refused []string
}

func newRegister(t *testing.T, kept int64) *register {
	r := &register{t: t, world: clustertest.New(3)}
	m := r.world.Machine(func() uint16 { return 1 })
	var err error
	r.j, err = New(Options{Log: m.Log(), Node: 1, Born: 1, Clock: m, Manual: true, Kept: kept, Refused: func(text string) { r.refused = append(r.refused, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.j.Close() })
	r.j.Remembers("carts", 1)
	r.j.Serve("carts", 0, 1, 0)
	return r
}

func (r *register) pass() {
	for end := r.world.Clock.Now().Add(5 * time.Second); ; r.world.Clock.AdvanceToNext() {
		if next, ok := r.world.Clock.Next(); !ok || next.After(end) {
			return
		}
	}
}

// remember has keys recorded, and returns what has become of each.
func (r *register) remember(names ...string) (errs []error) {
	errs = make([]error, len(names))
	for i, name := range names {
		errs[i] = errors.New("no answer")
		r.j.Remember("carts", 0, name, func(err error) { errs[i] = err })
	}
	r.pass()
	return errs
}

// recall is who is to live, as the log has it when the shard begins anew.
func (r *register) recall() (names []string) {
	r.t.Helper()
	r.j.Release("carts", 0)
	r.j.Serve("carts", 0, 1, 0)
	why := errors.New("no answer")
	r.j.Recall("carts", 0, func(all []string, err error) { names, why = all, err })
	if r.pass(); why != nil {
		r.t.Error(why)
	}
	return names
}

// A list has so many keys, and so many bytes, and who is beyond is told. One that ends makes room.
func TestBoundsOfTheList(t *testing.T) {
	for _, c := range []struct {
		name  string
		of    func(int) string
		most  int
		kept  int64
		error error
	}{
		{"keys", func(i int) string { return fmt.Sprint("k", i) }, MaxLiving, 0, ErrMany},
		{"bytes", func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 240)) }, MaxLivingBytes / (244 + livingOverhead), 0, ErrMany},
		{"memory", func(i int) string { return fmt.Sprintf("k%05d", i) }, 10, 10 * (memoryOfName + livingOverhead + 6), ErrCrowded},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegister(t, c.kept)
			for i := 0; i < c.most+200; i += 1000 {
				var names []string
				for k := i; k < min(i+1000, c.most+200); k++ {
					names = append(names, c.of(k))
				}
				for k, err := range r.remember(names...) {
					if at := i + k; at < c.most-20 && err != nil || at > c.most+20 && !errors.Is(err, c.error) {
						t.Fatalf("key %d: %v", at, err)
					}
				}
			}
			n := len(r.recall())
			if n < c.most-20 || n > c.most+20 || c.name == "keys" && n != MaxLiving {
				t.Errorf("%d keys are to live", n)
			}
			last := c.of(c.most + 100)
			if err := r.remember(last)[0]; !errors.Is(err, c.error) {
				t.Errorf("one more: %v", err)
			}
			r.j.Forget("carts", 0, c.of(0))
			r.pass()
			if err := r.remember(last)[0]; err != nil && c.name != "bytes" {
				t.Errorf("when one has ended: %v", err)
			}
			if len(r.refused) > 0 {
				t.Error(r.refused)
			}
		})
	}
}

// A full log takes no more keys, and forgets those that end, whose records are dropped then.
func TestAFullLogForgets(t *testing.T) {
	r := newRegister(t, 0)
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprint("k", i, strings.Repeat("x", 100)))
	}
	r.remember(names...)
	r.remember("ann")
	r.world.FillLog(true)
	if err := r.remember("bob")[0]; !errors.Is(err, cluster.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	for _, name := range names {
		r.j.Forget("carts", 0, name)
	}
	r.pass()
	if !r.j.Settled("carts", 0) {
		t.Error("it is not written who has ended")
	}
	if got := r.recall(); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("%d are to live: %.80v", len(got), got)
	}
	if n := len(r.world.LogOf("carts", listName(0))); n > 2 {
		t.Errorf("the log has %d records of the list still", n)
	}
}

// What no node writes in the place of a list is told, and passed over, and the next owner finds a list again.
func TestASpoiltList(t *testing.T) {
	whole := frame{form: turnForm, epoch: 1, number: 9, data: []byte("x")}
	cut := frame{form: listForm, epoch: 1, number: 8, data: append(appendChange(nil, "eve", true), 9, 'x')}
	for name, record := range map[string][]byte{"nothing": {}, "another record": whole.encode(), "half a change": cut.encode(), "of a later epoch": (&frame{form: listForm, epoch: 7, number: 1}).encode()} {
		t.Run(name, func(t *testing.T) {
			r := newRegister(t, 0)
			r.remember("ann", "bob")
			done := false
			fence := r.world.FencesOf("carts", 0)[0].At
			r.j.opt.Log.Append("carts", 0, fence, listName(0), record, func(_ uint64, err error) { done = err == nil })
			if r.pass(); !done {
				t.Fatal("it is not written")
			}
			got := r.recall()
			if !slices.Contains(got, "ann") || !slices.Contains(got, "bob") {
				t.Errorf("%v are to live", got)
			}
			if len(r.refused) != 1 || !strings.Contains(r.refused[0], "shard 0: what the log has of the keys that live") {
				t.Errorf("%q", r.refused)
			}
			r.pass()
			if again := r.recall(); !slices.Equal(again, got) || len(r.refused) != 1 {
				t.Errorf("then %v, %q", again, r.refused)
			}
		})
	}
}

// A copy of a record that comes late counts for nothing: without the numbers of records it would.
func TestALateCopyOfAList(t *testing.T) {
	for _, skip := range []guard{0, guardNumber} {
		r := newRegister(t, 0)
		r.j.opt.skip = skip
		r.remember("ann")
		copied := r.world.LogOf("carts", listName(0))[0].Record
		r.j.Forget("carts", 0, "ann")
		r.pass()
		fence := r.world.FencesOf("carts", 0)[0].At
		r.j.opt.Log.Append("carts", 0, fence, listName(0), copied, func(uint64, error) {})
		r.pass()
		if got := r.recall(); (len(got) == 0) != (skip == 0) || len(r.refused) > 0 {
			t.Errorf("%v: %v are to live, %q", skip, got, r.refused)
		}
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(appendChange(appendChange(nil, "ann", true), "bob", false))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		if err := eachChange(b, func(name string, lives bool) { again = appendChange(again, name, lives) }); err == nil && len(again) > len(b) {
			t.Errorf("%x is read as %x", b, again)
		}
	})
}
