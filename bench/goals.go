package main

import "fmt"

// goal is what a figure is to reach.
type goal struct {
	what   string
	aim    string
	bench  string
	who    string
	limit  float64              // of the figure, or of its ratio to another's
	to     [2]string            // benchmark and contestant that the figure is divided by
	atMost bool                 // else at least
	show   func(float64) string // of the figure or ratio
}

const (
	startBench  = "second start of a bundle with a Go guest"
	getBench    = "gateway, GET at 16 connections"
	postBench   = "gateway, POST of an order at 16 connections"
	keyedBench  = "resident memory of a sleeping keyed actor of standard Go"
	meterBench  = "compute: all programs, metering's overhead, geometric mean"
	ourFigure   = "ours"
	theBaseline = "baseline"
)

// atMostTimes is a goal for how many times the figure of another a figure is at most.
func atMostTimes(what, bench, who string, limit float64, other [2]string, name string) goal {
	return goal{what: what, aim: fmt.Sprintf("<= %gx %s", limit, name), bench: bench, who: who, limit: limit, to: other, atMost: true, show: times}
}

func atLeastTimes(what, bench, who string, limit float64, other [2]string, name string) goal {
	return goal{what: what, aim: fmt.Sprintf(">= %gx %s", limit, name), bench: bench, who: who, limit: limit, to: other, show: times}
}

// atMostSo is a goal for a figure; limit is in the figure's unit.
func atMostSo(what, bench, who string, limit float64, show func(float64) string) goal {
	return goal{what: what, aim: "<= " + show(limit), bench: bench, who: who, limit: limit, atMost: true, show: show}
}

var goals = []goal{
	atMostTimes("a struct of six fields, Go actors", "struct", "native", 1.2, [2]string{"struct", "goakt"}, "goakt"),
	atMostTimes("a struct of six fields, standard Go", "struct", "go", 2.5, [2]string{"struct", "goakt"}, "goakt"),
	atMostTimes("a struct of six fields, TinyGo", "struct", "tinygo", 2, [2]string{"struct", "goakt"}, "goakt"),
	atMostSo("32 bytes, instructions, standard Go", "instructions", "go", 5500, count),
	atMostSo("32 bytes, instructions, TinyGo", "instructions", "tinygo", 5000, count),
	atMostSo("32 bytes, instructions, WAT", "instructions", "wat", 3300, count),
	atMostTimes("ping-pong, 32 bytes, standard Go", "ping-pong", "go", 1, [2]string{"ping-pong", "hollywood"}, "hollywood"),
	atMostTimes("64 KiB, Go actors", "payload-64k", "native", 1.5, [2]string{"payload-64k", "copies"}, "two copies"),
	atMostTimes("64 KiB, standard Go", "payload-64k", "go", 3, [2]string{"payload-64k", "copies"}, "two copies"),
	atMostTimes("64 KiB, TinyGo", "payload-64k", "tinygo", 3, [2]string{"payload-64k", "copies"}, "two copies"),
	atMostTimes("1 MiB, Go actors", "payload-1m", "native", 1.5, [2]string{"payload-1m", "copies"}, "two copies"),
	atMostTimes("1 MiB, standard Go", "payload-1m", "go", 3, [2]string{"payload-1m", "copies"}, "two copies"),
	atMostTimes("1 MiB, TinyGo", "payload-1m", "tinygo", 3, [2]string{"payload-1m", "copies"}, "two copies"),
	atMostTimes("a hop around 10^4 actors, WAT", "ring", "wat", 1, [2]string{"ring", "hollywood"}, "hollywood"),
	atMostTimes("a hop around 10^4 actors, standard Go", "ring", "go", 1.5, [2]string{"ping-pong", "go"}, "between two"),
	atMostSo("awake actor, standard Go", "memory-awake", "go", 30<<10, kib),
	atMostSo("awake actor, TinyGo", "memory-awake", "tinygo", 25<<10, kib),
	atMostSo("awake actor, WAT", "memory-awake", "wat", 13<<10, kib),
	atMostSo("sleeping keyed actor, standard Go", keyedBench, ourFigure, 4, func(x float64) string { return number4(x) + " KiB" }),
	atMostSo("spawn to first message, 10^4 living, WAT", "spawn-living", "wat", 8, microseconds),
	atMostSo("spawn to first message, 10^4 living, TinyGo", "spawn-living", "tinygo", 14, microseconds),
	atMostSo("spawn to first message, 10^4 living, standard Go", "spawn-living", "go", 40, microseconds),
	atMostTimes("ask from outside, Go actor", "ask", "native", 1, [2]string{"ask", "goakt"}, "goakt"),
	atMostTimes("ask from outside, standard Go", "ask", "go", 1.4, [2]string{"ask", "goakt"}, "goakt"),
	atLeastTimes("the gateway's GET at 16 connections", getBench, ourFigure, 0.8, [2]string{getBench, theBaseline}, "net/http"),
	atLeastTimes("a shop's POST", postBench, ourFigure, 0.4, [2]string{postBench, theBaseline}, "plain Go"),
	atMostSo("second start with a Go guest", startBench, ourFigure, 20, milliseconds),
	atMostSo("a panic of standard Go, restart, next message", "crash", "go", 30, microseconds),
	atLeastTimes("64 pairs on two cores, Go actors", "pairs-2", "native", 1.7, [2]string{"pairs-1", "native"}, "on one"),
	atLeastTimes("64 pairs on two cores, WAT", "pairs-2", "wat", 1.7, [2]string{"pairs-1", "wat"}, "on one"),
	atLeastTimes("64 pairs on two cores, standard Go", "pairs-2", "go", 1.7, [2]string{"pairs-1", "go"}, "on one"),
	atMostSo("upgrade, p99 of pauses, standard Go", pauseBench("volatile", "standard Go"), ourFigure, 5, milliseconds),
	atMostSo("upgrade, p99 of pauses, durable, standard Go", pauseBench("durable", "standard Go"), ourFigure, 5, milliseconds),
	atMostSo("upgrade, p99 of pauses, TinyGo", pauseBench("volatile", "TinyGo"), ourFigure, 1, milliseconds),
	atMostSo("upgrade of 10,000 actors, standard Go", allBench("standard Go"), ourFigure, 10, func(x float64) string { return number4(x) + " s" }),
	atMostSo("first answer of durable actors", firstAnswerBench, ourFigure, 2, func(x float64) string { return number4(x) + " us an actor" }),
	atMostSo("metering's overhead, geometric mean", meterBench, ourFigure, 1.1, times),
	atMostTimes("a black box, instructions, standard Go", "instructions-kept", "go", 1.05, [2]string{"instructions", "go"}, "without"),
	atMostTimes("a black box, instructions, WAT", "instructions-kept", "wat", 1.1, [2]string{"instructions", "wat"}, "without"),
	atMostTimes("a recording, instructions, standard Go", "instructions-taped", "go", 1.05, [2]string{"instructions", "go"}, "without"),
	atMostTimes("a black box, time, standard Go", keptBench+"standard Go", ourFigure, 1.05, [2]string{keptBench + "standard Go", theBaseline}, "without"),
	atMostTimes("a black box, time, WAT", keptBench+"WAT", ourFigure, 1.1, [2]string{keptBench + "WAT", theBaseline}, "without"),
	atMostTimes("a recording, time, standard Go", tapedBench+"standard Go", ourFigure, 1.05, [2]string{tapedBench + "standard Go", theBaseline}, "without"),
	atMostSo("recorded, a message between guests", insideBench, ourFigure, 12, inBytes),
	atMostSo("recorded, a message from outside, beside its payload", outsideBench, ourFigure, 24, inBytes),
	atMostTimes("an actor run again", computedBench, ourFigure, 1.1, [2]string{computedBench, theBaseline}, "its turns"),
	atMostSo("its first turn, image cached", firstBench, ourFigure, 20, milliseconds),
	atMostTimes("a simulated scenario", plainScenario, ourFigure, 2, [2]string{plainScenario, theBaseline}, "a test"),
	atMostTimes("a simulated scenario with services", servicesScenario, ourFigure, 5, [2]string{servicesScenario, theBaseline}, "a test"),
	{what: "virtual time with 100 timers a second", aim: ">= 1000x real time", bench: timersBench, who: ourFigure, limit: 1000, show: func(x float64) string { return number4(x) + "x" }},
	atMostSo("1000 seeds of the ledger", thousandBench, ourFigure, 10, func(x float64) string { return number4(x) + " s" }),
}

func count(x float64) string        { return fmt.Sprintf("%.0f", x) }
func microseconds(x float64) string { return number4(x) + " us" }
func milliseconds(x float64) string { return number4(x) + " ms" }
func inBytes(x float64) string      { return number4(x) + " bytes" }
func kib(x float64) string          { return number4(x/1024) + " KiB" }
func times(x float64) string        { return fmt.Sprintf("%.2fx", x) }

// reached is the figure as the goal counts it, and whether it is met.
func (g *goal) reached(records map[string]record) (figure, met string) {
	r, ok := records[g.bench+"\x00"+g.who]
	if !ok {
		return "-", "not measured"
	}
	if r.Missing != "" {
		return "-", oneLine(r.Missing)
	}
	x := r.Median
	if g.to[0] != "" {
		other := records[g.to[0]+"\x00"+g.to[1]]
		if other.Median == 0 {
			return "-", "nothing to compare with"
		}
		x /= other.Median
	}
	if g.atMost == (x <= g.limit) || x == g.limit {
		return g.show(x), "met"
	}
	return g.show(x), "**missed**"
}
