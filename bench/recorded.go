package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/blackbox"
	"github.com/wasmactors/wasmactors/host/recorder"
	"github.com/wasmactors/wasmactors/host/rerun"
	engines "github.com/wasmactors/wasmactors/runtime"
)

// What it costs to keep or to record what guests take in, and what it takes to run them again.

// A row has the name of the guest behind it.
const (
	keptBench     = "a message with a black box, "
	tapedBench    = "a message that is recorded, "
	againBench    = "a turn that is run again, "
	insideBench   = "a recording's bytes for a message between guests"
	outsideBench  = "a recording's bytes for a message from outside, beside its payload"
	computedBench = "turns of some 0.1 ms that are run again"
	firstBench    = "the first turn of a recording that is run again, image cached"
)

// taping is a system whose messages nobody, a black box or a recording keeps.
type taping struct {
	*product
	tape string // its file; "": it is not recorded
	end  func() error
}

// watchedBy makes the system: with a black box, with a recording, or with nothing.
func (l *lab) watchedBy(code []byte, typ string, how string) (w *taping, err error) {
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return nil, err
	}
	w = &taping{end: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	change := func(c host.Config) host.Config { return c }
	switch how {
	case "kept":
		box, err := blackbox.Open(blackbox.Config{Dir: dir})
		if err != nil {
			return nil, err
		}
		w.end = func() error { box.Close(); return nil }
		change = func(c host.Config) host.Config { return c.WithBlackBox(box) }
	case "taped":
		w.tape = filepath.Join(dir, "run.wrec")
		tape, err := recorder.Open(recorder.Config{Path: w.tape})
		if err != nil {
			return nil, err
		}
		w.end = tape.Close
		change = func(c host.Config) host.Config { return c.WithRecording(tape) }
	}
	if w.product, err = newProductWith(l.ctx, code, 1, change); err != nil {
		return nil, errors.Join(err, w.end())
	}
	w.props = host.Guest(w.image, typ).WithCapabilities(host.Capabilities{Send: []string{"/user/referee"}})
	return w, nil
}

// closed ends the system, and returns what was recorded.
func (l *lab) closed(w *taping) (tape []byte, err error) {
	if err = errors.Join(w.close(l.ctx), w.end()); err == nil && w.tape != "" {
		tape, err = os.ReadFile(w.tape)
		err = errors.Join(err, os.RemoveAll(filepath.Dir(w.tape)))
	}
	return tape, err
}

// pings are messages of 32 bytes between two guests.
func (w *taping) pings() (func(n int) error, error) {
	var pair [2]host.Ref
	for i := range pair {
		var err error
		if pair[i], err = w.sys.Spawn("", w.props); err != nil {
			return nil, err
		}
	}
	return func(n int) error {
		if err := w.sys.TellFrom(pair[1], pair[0], packet('p', n, 32)); err != nil {
			return err
		}
		return w.wait()
	}, nil
}

// recorded is the piece.
func recorded(l *lab) error {
	standard, err := guestFile("go")
	if err != nil {
		return err
	}
	for _, g := range []struct {
		name string
		code []byte
	}{{"standard Go", standard}, {"WAT", benchWAT}} {
		if err := l.watchedMessages(g.name, g.code); err != nil {
			return err
		}
	}
	if err := l.recordedBytes(standard); err != nil {
		return err
	}
	return l.runAgain(standard)
}

// watchedMessages compares systems with and without, in turn.
func (l *lab) watchedMessages(name string, code []byte) error {
	hows := []string{"", "kept", "taped"}
	var ping [3]func(int) error
	var all [3]*taping
	for i, how := range hows {
		w, err := l.watchedBy(code, "bench", how)
		if err != nil {
			return err
		}
		all[i] = w
		if ping[i], err = w.pings(); err == nil {
			err = ping[i](l.scale(50_000))
		}
		if err != nil {
			return err
		}
	}
	var took [3][]float64
	for round := range 4 * l.rounds { // short ones: a slow moment hits all three
		if round > 0 && l.over() {
			break
		}
		for k := range hows {
			i := (k + round) % len(hows)
			runtime.GC()
			ns, err := perOp(l.scale(100_000), ping[i])
			if err != nil {
				return err
			}
			took[i] = append(took[i], ns)
		}
	}
	var tape []byte
	for i, w := range all {
		b, err := l.closed(w)
		if err != nil {
			return err
		}
		if hows[i] == "taped" {
			tape = b
		}
	}
	if err := errors.Join(
		l.report.pair(keptBench+name, "ns/message", took[1], took[0], "the baseline is one without"),
		l.report.pair(tapedBench+name, "ns/message", took[2], took[0], "the baseline is one that is not")); err != nil {
		return err
	}
	of, err := recorder.Read(tape)
	if err != nil {
		return err
	}
	again, err := l.rerun(of, code, "")
	if err != nil {
		return err
	}
	return l.report.compare(againBench+name, "ns/turn", again, median(took[0]), "two of 32 bytes between two guests; the baseline is a message as it was, mailbox and dispatcher included")
}

// rerun repeats a recording, all of it or what leads to an actor's turns, and returns nanoseconds a turn. The image is in the cache.
func (l *lab) rerun(of *recorder.Recording, code []byte, actor string) (float64, error) {
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	engine, err := engines.New(l.ctx, engines.NewConfig().WithCacheDir(dir))
	if err != nil {
		return 0, err
	}
	defer engine.Close(l.ctx)
	once := func() (float64, error) {
		began := time.Now()
		r, err := repeated(rerun.Run(l.ctx, engine, of, rerun.Options{Modules: [][]byte{code}, Actor: actor}))
		return float64(time.Since(began).Nanoseconds()) / float64(max(1, r.Turns)), err
	}
	if _, err := once(); err != nil { // compiles
		return 0, err
	}
	return l.repeat(once)
}

func repeated(r *rerun.Report, err error) (*rerun.Report, error) {
	switch {
	case err != nil:
		return &rerun.Report{}, err
	case r.Difference != nil:
		return r, fmt.Errorf("the recording is not repeated: %v", r.Difference)
	case r.Stopped != "":
		return r, errors.New(r.Stopped)
	}
	return r, nil
}

// recordedBytes measures how long files are.
func (l *lab) recordedBytes(code []byte) error {
	size := func(n int, outside bool) (float64, error) {
		w, err := l.watchedBy(code, "bench", "taped")
		if err != nil {
			return 0, err
		}
		if outside {
			var ref host.Ref
			if ref, err = w.sys.Spawn("", w.props); err == nil {
				m := packet(opHandled, 0, 32)
				err = w.drive(n, func(ctx *host.Context) error { return ctx.Tell(ref, m) })
			}
		} else {
			var ping func(int) error
			if ping, err = w.pings(); err == nil {
				err = ping(n)
			}
		}
		tape, closing := l.closed(w)
		return float64(len(tape)), errors.Join(err, closing)
	}
	each := func(outside bool) (float64, error) { // what a file has besides does not count
		few, many := l.scale(20_000), l.scale(220_000)
		a, err := size(few, outside)
		if err != nil {
			return 0, err
		}
		b, err := size(many, outside)
		return (b - a) / float64(many-few), err
	}
	inside, err := each(false)
	if err != nil {
		return err
	}
	outside, err := each(true)
	if err != nil {
		return err
	}
	return errors.Join(
		l.report.alone(insideBench, "bytes", inside, "of 32 bytes, one sender and one receiver at a time"),
		l.report.alone(outsideBench, "bytes", outside-32, "of 32 bytes, from an actor in Go"))
}

// runAgain compares the repetition of an actor with what its turns took, and measures how soon the first of them is repeated.
func (l *lab) runAgain(standard []byte) error {
	m := number(100_000) // rounds of a loop: so what a turn takes besides does not show
	w, err := l.watchedBy(busyWAT, "busy", "taped")
	if err != nil {
		return err
	}
	ref, err := w.sys.Spawn("worker", w.props)
	if err != nil {
		return err
	}
	turns := l.scale(5000)
	work := func(n int) error {
		return w.drive(n, func(ctx *host.Context) error { return ctx.Tell(ref, m) })
	}
	took, err := perOp(turns, work)
	if err != nil {
		return err
	}
	tape, err := l.closed(w)
	if err != nil {
		return err
	}
	of, err := recorder.Read(tape)
	if err != nil {
		return err
	}
	again, err := l.rerun(of, busyWAT, "/user/worker")
	if err != nil {
		return err
	}
	if err := l.report.compare(computedBench, "us/turn", again/1e3, took/1e3, "the actor alone; the baseline is what each turn took, its delivery included"); err != nil {
		return err
	}
	return l.firstAgain(standard)
}

// firstAgain measures the time from nothing to the first turn of a guest of standard Go, with what a run has left in the cache.
func (l *lab) firstAgain(code []byte) error {
	w, err := l.watchedBy(code, "bench", "taped")
	if err != nil {
		return err
	}
	ping, err := w.pings()
	if err == nil {
		err = ping(1)
	}
	tape, closing := l.closed(w)
	if err = errors.Join(err, closing); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "wasmactors-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	first := func() (float64, error) {
		began := time.Now()
		of, err := recorder.Read(tape)
		if err != nil {
			return 0, err
		}
		engine, err := engines.New(l.ctx, engines.NewConfig().WithCacheDir(dir))
		if err != nil {
			return 0, err
		}
		_, err = repeated(rerun.Run(l.ctx, engine, of, rerun.Options{Modules: [][]byte{code}}))
		took := time.Since(began)
		return float64(took.Microseconds()) / 1e3, errors.Join(err, engine.Close(l.ctx))
	}
	if _, err := first(); err != nil { // fills the cache
		return err
	}
	var all []float64
	for range l.scale(20) {
		ms, err := first()
		if err != nil {
			return err
		}
		all = append(all, ms)
	}
	return l.report.alone(firstBench, "ms", median(all), "standard Go; engine, image and two actors")
}
