package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/wasmactors/wasmactors/abi/flow"
	"github.com/wasmactors/wasmactors/bench/guard"
	"github.com/wasmactors/wasmactors/host"
	hostflow "github.com/wasmactors/wasmactors/host/flow"
)

// Streams: what a stage costs an element within one actor, and what an element costs between two, beside a message with the
// same integer. They take turns of a few milliseconds, so that what else runs on the machine slows all alike.

// streamed is what a run has measured: medians over its turns.
type streamed struct {
	Bench   string  `json:"bench"`
	Turns   int     `json:"turns"`
	Stage   float64 `json:"stage_ns"`
	Message float64 `json:"message_ns"`
	Element float64 `json:"element_ns"`
	Ratio   float64 `json:"element_to_message"` // median of the turns' ratios
}

func streams(args []string) error {
	flags := flag.NewFlagSet("streams", flag.ExitOnError)
	quick := flags.Bool("quick", false, "10 turns, one run")
	turns := flags.Int("turns", 200, "of each run")
	rounds := flags.Int("rounds", 3, "runs")
	workers := flags.Int("workers", 1, "of the actor system")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*turns, *rounds = 10, 1
	}
	for range *rounds {
		s, err := measureStreams(*turns, *workers)
		if err != nil {
			return err
		}
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		fmt.Println(string(b))
	}
	return nil
}

func measureStreams(turns, workers int) (*streamed, error) {
	sys, err := host.New(host.NewConfig("bench").WithWorkers(workers))
	if err != nil {
		return nil, err
	}
	defer func() { _ = sys.Close(context.Background()) }()
	const n, deep = 8000, 10
	each := func(f func() error) (float64, error) {
		begun := time.Now()
		err := f()
		return float64(time.Since(begun).Nanoseconds()) / n, err
	}
	giver, err := sys.Spawn("", hostflow.Props(flow.Serve("x", flow.Range(1, n), hostflow.CBOR[int]())))
	if err != nil {
		return nil, err
	}
	var stage, message, element, ratio []float64
	for range turns + 1 {
		flat, err1 := each(func() error { return guard.Pipeline(n, 0) })
		tall, err2 := each(func() error { return guard.Pipeline(n, deep) })
		m, err3 := each(func() error { return intMessages(sys, n) })
		e, err4 := each(func() error { return intElements(sys, giver, n) })
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return nil, err
		}
		stage, message, element, ratio = append(stage, (tall-flat)/deep), append(message, m), append(element, e), append(ratio, e/m)
	}
	median := func(all []float64) float64 {
		all = all[1:] // the first turn has warmed up
		slices.Sort(all)
		return all[len(all)/2]
	}
	return &streamed{"streams", turns, median(stage), median(message), median(element), median(ratio)}, nil
}

// intMessages sends n integers from one actor to another, 16 at a time, each batch of which is answered.
func intMessages(sys *host.System, n int) error {
	sum := 0
	to, err := sys.Spawn("", host.Func(func(ctx *host.Context, m host.Message) error {
		var v int
		if err := m.Decode(&v); err != nil {
			return err
		}
		if sum += v; v%16 == 15 {
			return ctx.Reply(nil)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	done := make(chan struct{})
	sent := 0
	from, err := sys.Spawn("", host.Func(func(ctx *host.Context, _ host.Message) error {
		if sent >= n {
			ctx.Stop(to)
			ctx.Stop(ctx.Self())
			close(done)
			return nil
		}
		for range 16 {
			if err := ctx.Tell(to, sent); err != nil {
				return err
			}
			sent++
		}
		return nil
	}))
	if err != nil {
		return err
	}
	if err := sys.Tell(from, nil); err != nil {
		return err
	}
	<-done
	if sum != n*(n-1)/2 {
		return fmt.Errorf("the sum of the messages is %d", sum)
	}
	return nil
}

// intElements takes n integers from an actor.
func intElements(sys *host.System, giver host.Ref, n int) error {
	sum := 0
	taken := flow.TakeFrom(giver.UID(), "x", hostflow.CBOR[int](), flow.Window{})
	if err := hostflow.Run(context.Background(), sys, "", flow.To(taken, flow.ForEach(func(v int) error { sum += v; return nil }))); err != nil {
		return err
	}
	if sum != n*(n+1)/2 {
		return fmt.Errorf("the sum of the elements is %d", sum)
	}
	return nil
}
