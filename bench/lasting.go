package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/durable"
	"github.com/wasmactors/wasmactors/runtime"
	"github.com/wasmactors/wasmactors/supervision"
)

// lasting is a system of ours with a store, whose durable actors are guests of one image.
type lasting struct {
	engine *runtime.Engine
	image  *runtime.Image
	store  *durable.Store
	sys    *host.System

	repeated time.Duration // that it took to bring them back
}

// openLasting opens the store of a folder, and has n actors of a type come back, or begin. ready is called before the store is opened.
func openLasting(ctx context.Context, wasm []byte, dir, typ string, n int, recovery time.Duration, ready ...func()) (w *lasting, err error) {
	w = &lasting{}
	if w.engine, err = runtime.New(ctx, runtime.NewConfig()); err != nil {
		return nil, err
	}
	if w.image, err = w.engine.Load(ctx, wasm, runtime.ImageConfig{Name: "bench"}); err != nil {
		return nil, err
	}
	p := host.Guest(w.image, typ).WithArgs([]byte{0}).WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}}).WithDurable()
	find := func(name string) *host.Props {
		if i, err := strconv.Atoi(strings.TrimPrefix(name, "a")); err != nil || i < 0 || i >= n {
			return nil
		}
		return &p
	}
	for _, f := range ready {
		f()
	}
	if w.store, err = durable.Open(durable.Options{Dir: dir, Size: 64 << 30, Recovery: recovery, Lazy: true}); err != nil {
		return nil, err
	}
	began := time.Now()
	cfg := host.NewConfig("bench").WithGuardian(supervision.Default().WithSilence(true)).WithMemory(0).WithMostAwake(10_000).
		WithIdleAfter(100 * time.Millisecond).WithMaxActors(n + 1000)
	x, err := w.store.PrepareBy(cfg, find)
	if err != nil {
		return nil, errors.Join(err, w.store.Close())
	}
	w.sys = x.System()
	err = x.Return()
	w.repeated = time.Since(began)
	for i := 0; i < n && err == nil; i++ {
		if name := "a" + strconv.Itoa(i); !x.Back(name) {
			_, err = w.sys.Spawn(name, p)
		}
	}
	if err != nil {
		x.Abandon()
		return nil, errors.Join(err, w.close(ctx))
	}
	x.Release()
	return w, nil
}

func (w *lasting) close(ctx context.Context) error {
	return errors.Join(w.sys.Close(ctx), w.store.Close(), w.engine.Close(ctx))
}

// ref is an actor.
func (w *lasting) ref(i int) (host.Ref, error) { return w.sys.Lookup("/user/a" + strconv.Itoa(i)) }

// received is how many messages an actor of the guest bench has got.
func (w *lasting) received(ctx context.Context, i int) (uint32, error) {
	ref, err := w.ref(i)
	if err != nil {
		return 0, err
	}
	m, err := w.sys.Ask(ctx, ref, packet(opAsk, 0, 32))
	if err != nil {
		return 0, err
	}
	b := m.Payload
	if len(b) < 7 || b[2] != opAsk {
		return 0, fmt.Errorf("an answer %x", b)
	}
	return uint32(b[3])<<24 | uint32(b[4])<<16 | uint32(b[5])<<8 | uint32(b[6]), nil
}

// tell has each of n actors get so many messages.
func (w *lasting) tell(ctx context.Context, n, messages int) error {
	refs := make([]host.Ref, n)
	for i := range refs {
		ref, err := w.ref(i)
		if err != nil {
			return err
		}
		refs[i] = ref
	}
	m := packet(opFill, 0, 32)
	for i := range messages * n {
		for err := error(nil); ; {
			if err = w.sys.Tell(refs[i%n], m); err == nil {
				break
			}
			if !errors.Is(err, host.ErrMailboxFull) && w.store.Err() == nil && !errors.Is(err, durable.ErrFull) { // the disk has much to do
				time.Sleep(time.Millisecond)
				continue
			}
			return err
		}
		if i%max(1000, n/16) == 999 { // to look at all takes a while
			if err := w.sys.Idle(ctx); err != nil {
				return err
			}
		}
	}
	return w.sys.Idle(ctx)
}

// recovering measures how many messages a second a start repeats, and when the first of many actors answers after it.
func recovering(l *lab) error {
	for _, kind := range []struct {
		name string
		wasm []byte
	}{{"wat", benchWAT}, {"go", l.goPing}} {
		const actors = 64
		each := l.scale(64_000) / actors
		dir, err := os.MkdirTemp("", "bench-store-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		w, err := openLasting(l.ctx, kind.wasm, dir, "bench", actors, time.Hour)
		if err == nil {
			err = errors.Join(w.tell(l.ctx, actors, each), w.close(l.ctx))
		}
		if err != nil {
			return err
		}
		rate, err := l.repeat(func() (float64, error) {
			w, err := openLasting(l.ctx, kind.wasm, dir, "bench", actors, time.Hour)
			if err != nil {
				return 0, err
			}
			n, err := w.received(l.ctx, actors-1)
			if err == nil && n != uint32(each) {
				err = fmt.Errorf("%d messages of %d are back", n, each)
			}
			return float64(actors*each) / w.repeated.Seconds(), errors.Join(err, w.close(l.ctx))
		})
		if err != nil {
			return err
		}
		x := record{Bench: "recovery of durable actors, " + kind.name + " guest", Who: ourFigure, Unit: "messages/s", Better: "more", Note: fmt.Sprintf("%d actors of %d messages each, no checkpoint", actors, each)}
		x.fill([]float64{rate})
		if err := l.report.write(x); err != nil {
			return err
		}
	}
	return l.manyLasting(l.scale(20_000))
}

// crowdFigures are of a crowd of durable actors.
type crowdFigures struct {
	// s: to make them, to make a checkpoint, of which they rest; to the first and the last answer of a start
	Made, Checkpoint, Rest, First, Last float64 `json:",omitzero"` // what a process does not measure stays as it was
	Store, Resident                     float64 `json:",omitzero"` // bytes each; the second after a start, with all that is of it
	Heap                                float64 `json:",omitzero"` // bytes of Go's heap each, without what the caller has
	Return, Longest                     float64 `json:",omitzero"` // ms: of one that returns, in no order, the median and the longest
	Processor, StartProcessor           float64 `json:",omitzero"` // s of processor time: of the checkpoint, and to the first answer of a start
	Written                             int64   `json:",omitzero"` // bytes of the checkpoint
	Actors                              int
}

// manyLasting starts so many durable actors from a checkpoint, in a process of its own.
func (l *lab) manyLasting(n int) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var x crowdFigures
	for _, how := range []string{"make", "open"} {
		cmd := exec.CommandContext(l.ctx, exe, "lasting", how, strconv.Itoa(n), dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(bytes.TrimSpace(out), &x)
		}
		if err != nil {
			return err
		}
	}
	note := fmt.Sprintf("%d durable actors in WAT, asleep, from a checkpoint", n)
	return errors.Join(
		l.report.alone(firstAnswerBench, "us an actor", x.First*1e6/float64(n), note),
		l.report.alone("bytes of the store of a durable actor", "B", x.Store, note),
		l.report.alone("resident memory of a durable actor that has come back", "B", x.Resident, note),
		l.report.alone("rest of durable actors in a checkpoint", "us an actor", x.Rest*1e6/float64(n), note),
	)
}

const firstAnswerBench = "start of many durable actors, to the first answer"

// measureLasting is what a process of its own does: `lasting make N DIR` makes actors and a checkpoint, `lasting open N DIR` starts from
// it, `lasting checkpoint N DIR` makes another one without them returning, and `lasting changed N DIR` one when 1000 have changed.
func measureLasting(args []string) error {
	if len(args) != 3 || !slices.Contains([]string{"make", "open", "checkpoint", "changed"}, args[0]) {
		return errors.New("lasting make|open|checkpoint|changed N DIR")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	x := crowdFigures{Actors: n}
	defer func() { _ = json.NewEncoder(os.Stdout).Encode(&x) }()
	if args[0] == "checkpoint" || args[0] == "changed" {
		w, err := openLasting(ctx, benchWAT, args[2], "bench", n, time.Hour)
		if err != nil {
			return err
		}
		if args[0] == "changed" {
			err = w.change(ctx, n)
		}
		if err == nil {
			err = x.checkpoint(ctx, w)
		}
		return errors.Join(err, w.close(ctx))
	}
	if args[0] == "make" {
		began := time.Now()
		w, err := openLasting(ctx, benchWAT, args[2], "bench", n, time.Hour)
		if err != nil {
			return err
		}
		if err := w.tell(ctx, n, 1); err != nil {
			return err
		}
		x.Made = time.Since(began).Seconds()
		if err := x.checkpoint(ctx, w); err != nil {
			return err
		}
		again := crowdFigures{Actors: n} // with all of them here
		if err := errors.Join(w.change(ctx, n), again.checkpoint(ctx, w)); err != nil {
			return err
		}
		_ = json.NewEncoder(os.Stderr).Encode(&again)
		if err := w.close(ctx); err != nil {
			return err
		}
		x.Store = float64(sizeOf(args[2])) / float64(n)
		return nil
	}
	before, err := resident()
	if err != nil {
		return err
	}
	var heap, used float64
	var began time.Time
	w, err := openLasting(ctx, benchWAT, args[2], "bench", n, time.Hour, func() { // what the caller has made is not the store's
		heap, used, began = heapBytes(), processTime().Seconds(), time.Now()
	})
	if err != nil {
		return err
	}
	for i, to := range []*float64{&x.First, &x.Last} {
		got, err := w.received(ctx, i*(n-1))
		if err == nil && got != 1 {
			err = fmt.Errorf("%d messages are back", got)
		}
		if err != nil {
			return err
		}
		if *to = time.Since(began).Seconds(); i == 0 {
			x.StartProcessor = processTime().Seconds() - used
		}
	}
	after, err := resident()
	if err != nil {
		return err
	}
	x.Resident = (after - before) / float64(n)
	x.Heap = (heapBytes() - heap) / float64(n)
	var took []float64
	dice := rand.New(rand.NewPCG(1, 1))
	for range min(n/10, 1000) {
		began := time.Now()
		if _, err := w.received(ctx, dice.IntN(n)); err != nil {
			return err
		}
		took = append(took, float64(time.Since(began))/1e6)
	}
	if slices.Sort(took); len(took) > 0 {
		x.Return, x.Longest = took[len(took)/2], took[len(took)-1]
	}
	return w.close(ctx)
}

// change has 1000 actors, or all if they are fewer, change.
func (w *lasting) change(ctx context.Context, n int) error {
	for i := range min(n, 1000) {
		if _, err := w.received(ctx, i*(n/min(n, 1000))); err != nil {
			return err
		}
	}
	return w.sys.Idle(ctx)
}

// checkpoint measures one.
func (x *crowdFigures) checkpoint(ctx context.Context, w *lasting) error {
	began, used := time.Now(), processTime().Seconds()
	err := w.store.Checkpoint(ctx)
	f := w.store.Figures().Checkpoint
	x.Checkpoint, x.Rest, x.Processor, x.Written = time.Since(began).Seconds(), f.Pause.Seconds(), processTime().Seconds()-used, f.Bytes
	return err
}

// heapBytes is what is alive on Go's heap.
func heapBytes() float64 {
	goruntime.GC()
	goruntime.GC() // what has waited for finalizers
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// sizeOf is how many bytes the files of a folder take.
func sizeOf(dir string) (n int64) {
	_ = filepath.Walk(dir, func(_ string, f os.FileInfo, err error) error {
		if err == nil && f.Mode().IsRegular() {
			n += f.Size()
		}
		return nil
	})
	return n
}
