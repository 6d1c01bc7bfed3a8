package sandbox

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// A snapshot carries an actor over to another instance, or back, and neither
// notices: what follows is the same.
func TestSnapshot(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		i := load(t, e, "echo", ImageConfig{})
		a, b := get(t, i), get(t, i)
		defer a.Put()
		defer b.Put()
		in := entry()
		count := func(x *Instance, whats ...byte) []turn {
			push(t, x, whats...)
			out, turns, err := run(t, x, in)
			if err != nil || out.Failure != nil {
				t.Fatal(err, out.Failure)
			}
			// Payloads alias the outbox.
			for _, cmds := range turns {
				for k := range cmds {
					cmds[k].Payload = nil
				}
			}
			return turns
		}
		var s Snapshot
		count(a, 10, 10, 14, 4, 10) // a global, an address, many pages, a page more
		if err := a.Save(&s); err != nil {
			t.Fatal(err)
		}
		size := a.MemoryBytes()
		push(t, b, 1) // b has failed meanwhile
		if out, _, _ := run(t, b, in); out.Failure == nil {
			t.Fatal("no trap")
		}
		want := count(a, 10, 4, 10)
		if err := b.Restore(s.Clone()); err != nil {
			t.Fatal(err)
		}
		if b.MemoryBytes() != size {
			t.Errorf("%d bytes of memory, not %d", b.MemoryBytes(), size)
		}
		if got := count(b, 10, 4, 10); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		if err := a.Restore(&s); err != nil { // back in time
			t.Fatal(err)
		}
		if got := count(a, 10, 4, 10); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
	})
}

// answer is the correlation of what the guest sends.
func answer(t *testing.T, x *Instance, what byte) uint64 {
	t.Helper()
	push(t, x, what)
	out, turns, err := run(t, x, entry())
	if err != nil || out.Failure != nil || len(turns) != 1 || len(turns[0]) != 1 {
		t.Fatal(out.Failure, turns, err)
	}
	return turns[0][0].Correlation
}

func TestSnapshotOfGo(t *testing.T) {
	goSetups(t, func(t *testing.T, e *Engine) {
		i := loadGo(t, e, ImageConfig{})
		a, b := get(t, i), get(t, i)
		defer a.Put()
		defer b.Put()
		for k := range 50 {
			if k == 20 {
				answer(t, a, 11)
			}
			answer(t, a, 10)
		}
		var s Snapshot
		if err := a.Save(&s); err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(&s); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if x, y := answer(t, a, 10), answer(t, b, 10); x != y {
				t.Fatalf("%d, not %d", y, x)
			}
		}
	})
}

func TestNotSaved(t *testing.T) {
	everywhere(t, func(t *testing.T, e *Engine) {
		save := func(i *Image, prepare ...byte) error {
			x := get(t, i)
			defer x.Put()
			push(t, x, prepare...)
			if len(prepare) > 0 && prepare[0] != 0 {
				_, _, _ = run(t, x, entry())
			}
			return x.Save(new(Snapshot))
		}
		echo := load(t, e, "echo", ImageConfig{})
		for what, err := range map[string]error{
			"is not frozen":     save(load(t, e, "echo", ImageConfig{NoFreeze: true})),
			"a turn has failed": save(echo, 1),
			"in the inbox":      save(echo, 0),
			"to a table":        save(echo, 13),
		} {
			if !errors.Is(err, ErrNotSaved) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := save(echo); err != nil {
			t.Errorf("an instance that has done nothing: %v", err)
		}
	})
}

func BenchmarkGoSave(b *testing.B) {
	x := get(b, goBench(b, NewConfig()))
	defer x.Put()
	in := entry()
	first(b, x, in, 10)
	var s Snapshot
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Save(&s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Clone().Bytes()), "bytes")
}

func BenchmarkGoRestore(b *testing.B) {
	x := get(b, goBench(b, NewConfig()))
	defer x.Put()
	in := entry()
	first(b, x, in, 10)
	var s Snapshot
	if err := x.Save(&s); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Restore(&s); err != nil {
			b.Fatal(err)
		}
	}
}
