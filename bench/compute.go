package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmactors/wasmactors/bench/compute"
)

// computing measures what metering costs real programs, next to plain wazero and
// to what wazero itself has for stopping a guest.
func computing(l *lab) error {
	goSuite, err := compute.Go(l.ctx, filepath.Join(l.dir, "compute"))
	if err != nil {
		return err
	}
	// One processor: where a metered program yields, another thread of an otherwise
	// busy machine must not take it over.
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	var overheads, speedups []float64
	for _, s := range []*compute.Suite{compute.C(), goSuite} {
		o, f, err := l.suite(s)
		if err != nil {
			return err
		}
		overheads, speedups = append(overheads, o...), append(speedups, f...)
	}
	return l.means("all programs", overheads, speedups)
}

// suite measures the programs of one module and returns, for each, how much longer
// the metered one takes than plain wazero, and how many times faster it is than
// wazero's CloseOnContextDone.
func (l *lab) suite(s *compute.Suite) (overheads, speedups []float64, err error) {
	plain, err := compute.Plain(l.ctx, s, wazero.NewRuntimeConfig())
	if err != nil {
		return nil, nil, err
	}
	metered, err := compute.Metered(l.ctx, s, wazero.NewRuntimeConfig())
	if err != nil {
		return nil, nil, err
	}
	closing, err := compute.Plain(l.ctx, s, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	if err != nil {
		return nil, nil, err
	}
	machines := []*compute.Machine{plain, metered, closing}
	for i := range s.Programs {
		p := &s.Programs[i]
		t, err := l.programs(p, machines)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s: %w", s.Name, p.Name, err)
		}
		overheads, speedups = append(overheads, t[1]/t[0]), append(speedups, t[2]/t[1])
		name := fmt.Sprintf("compute: %s in %s", p.Name, s.Name)
		if err := errors.Join(
			l.report.compare(name+", metered", "ms", t[1], t[0], "next to plain wazero"),
			l.report.compare(name+", stoppable", "ms", t[1], t[2], "next to wazero's CloseOnContextDone")); err != nil {
			return nil, nil, err
		}
	}
	for _, m := range machines {
		err = errors.Join(err, m.Close(l.ctx))
	}
	return overheads, speedups, errors.Join(err, l.means(s.Name, overheads, speedups))
}

// programs runs a program on each machine in turn, several times, and returns the
// medians in milliseconds. They must compute the same.
func (l *lab) programs(p *compute.Program, machines []*compute.Machine) ([]float64, error) {
	run := (*compute.Machine).Run
	if l.quick {
		run = (*compute.Machine).RunSmall
	}
	times := make([][]float64, len(machines))
	sums := make([]uint32, len(machines))
	for round := range 2*l.rounds + 1 {
		if round > 1 && l.over() {
			break
		}
		for k, m := range machines {
			start := time.Now()
			sum, err := run(m, l.ctx, p)
			if err != nil {
				return nil, err
			}
			if round == 0 { // to warm up
				sums[k] = sum
				continue
			}
			times[k] = append(times[k], float64(time.Since(start).Nanoseconds())/1e6)
			if sum != sums[0] {
				return nil, fmt.Errorf("machine %d computes %#x, plain wazero %#x", k, sum, sums[0])
			}
		}
	}
	medians := make([]float64, len(machines))
	for k := range times {
		medians[k] = median(times[k])
	}
	return medians, nil
}

func (l *lab) means(name string, overheads, speedups []float64) error {
	worst := 0.0
	for _, o := range overheads {
		worst = max(worst, o)
	}
	return errors.Join(
		l.report.alone("compute: "+name+", metering's overhead, geometric mean", "x", mean(overheads), "metered / plain wazero"),
		l.report.alone("compute: "+name+", metering's overhead, worst", "x", worst, "metered / plain wazero"),
		l.report.alone("compute: "+name+", times faster than CloseOnContextDone, geometric mean", "x", mean(speedups), ""))
}

// mean is the geometric one.
func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(xs)))
}
