package durable

import (
	"os"
	"os/exec"
	"testing"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/persist"
	"github.com/wasmactors/wasmactors/internal/thorough"
)

// page is an actor in Go that keeps its state: a number, and 1000 bytes that go with it.
type page struct {
	keeper *persist.Keeper
	n      uint64
}

func (x *page) Save() (any, error) {
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(uint64(i) * x.n * 0x9e3779b97f4a7c15 >> 40)
	}
	return []any{x.n, b}, nil
}

func (x *page) Load(payload host.Raw) error {
	var v struct {
		_ struct{} `cbor:",toarray"`
		N uint64
		B []byte
	}
	err := host.Message{Payload: payload}.Decode(&v)
	x.n = v.N
	return err
}

func (x *page) Receive(ctx *host.Context, m host.Message) error {
	var n int
	if m.Decode(&n) != nil {
		return host.ErrUnhandled
	}
	x.n += uint64(n)
	if m.Sender.IsZero() {
		return nil
	}
	return ctx.Reply(int(x.n))
}

// openPages is a system with a store and an actor "p" that keeps its state.
func openPages(t testing.TB, dir string, change ...func(*Options)) *eventful {
	t.Helper()
	x := mustOpenEvents(t, dir, nil, change...)
	d := persist.StateDefinition{Type: "page.state", Automatic: true}
	if _, err := x.Spawn("p", x.journal.StateProps(d, func(k *persist.Keeper) persist.Stateful { return &page{keeper: k} }, 2000)); err != nil {
		t.Fatal(err)
	}
	return x
}

// States that are kept again and again take the room of one: 100,000 of 1000 bytes go through the smallest store.
func TestStatesOutliveTheLog(t *testing.T) {
	n := thorough.SlowOf(30_000, 100_000)
	if testing.Short() {
		n = 10_000
	}
	dir := t.TempDir()
	small := func(o *Options) { o.Size, o.Sync = MinSize, Never }
	x := openPages(t, dir, small)
	most := int64(0)
	for sum := 0; sum < n; {
		for range 499 {
			if err := x.TellPath("/user/p", 1); err != nil {
				t.Fatal(err)
			}
		}
		sum += 500
		if got, err := x.add("p", 1); err != nil || got != sum {
			t.Fatalf("%d instead of %d: %v", got, sum, err)
		}
		most = max(most, x.store.Figures().Bytes)
	}
	f := x.store.Figures()
	t.Logf("%d states, %d MiB of records, at most %d MiB of files", n, f.Written>>20, most>>20)
	if int(f.Written) < n*1000 || most > MinSize*7/8 {
		t.Errorf("%+v, at most %d", f, most)
	}
	x.close()
	x = openPages(t, dir, small)
	if got, err := x.add("p", 0); err != nil || got != n {
		t.Errorf("%d instead of %d: %v", got, n, err)
	}
	if list := x.numbers("/user/p"); len(list) != 1 || list[0] != uint64(n) {
		t.Error(list)
	}
	x.checkpoint()
	if f := x.store.Figures(); f.Bytes > 32<<20 {
		t.Errorf("at rest there are %d bytes", f.Bytes)
	}
	x.close()
}

// Killed with -9 at any moment, the next process has the last state that was answered, or the one after it.
func TestStatesKilled(t *testing.T) {
	dir, sum := t.TempDir(), 0
	for round := range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WASMACTORS_KILLABLE="+dir, "WASMACTORS_PAGES=1")
		sum = killed(t, cmd, round, 20+7*round, sum)
	}
	x := openPages(t, dir)
	defer x.close()
	if got, err := x.add("p", 0); err != nil || got != sum && got != sum+1 || sum < 100 {
		t.Error(got, sum, err)
	}
	if list := x.numbers("/user/p"); len(list) != 1 || list[0] < uint64(sum) {
		t.Error(list, sum)
	}
}
