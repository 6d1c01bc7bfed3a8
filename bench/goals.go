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

var goals = []goal{
	{what: "ping-pong, Go SDK, standard Go, instructions", aim: "<= 3,500", bench: "instructions", who: "go", limit: 3500, atMost: true, show: count},
	{what: "ping-pong, Go SDK, standard Go", aim: "<= 1.2 us where a call of naive wazero takes 37 ns", bench: "ping-pong", who: "go", limit: 1200, atMost: true, show: nanoseconds},
	{what: "ping-pong, Go SDK, TinyGo, instructions", aim: "<= 1,500", bench: "instructions", who: "tinygo", limit: 1500, atMost: true, show: count},
	{what: "ping-pong, Go SDK, TinyGo", aim: "<= goakt", bench: "ping-pong", who: "tinygo", to: [2]string{"ping-pong", "goakt"}, limit: 1, atMost: true, show: times},
	{what: "ping-pong, WAT", aim: "<= 0.6x goakt", bench: "ping-pong", who: "wat", to: [2]string{"ping-pong", "goakt"}, limit: 0.6, atMost: true, show: times},
	{what: "ping-pong, native", aim: "<= 0.6x goakt", bench: "ping-pong", who: "native", to: [2]string{"ping-pong", "goakt"}, limit: 0.6, atMost: true, show: times},
	{what: "fan-in, native", aim: ">= hollywood", bench: "fan-in", who: "native", to: [2]string{"fan-in", "hollywood"}, limit: 1, show: times},
	{what: "fan-in, WAT", aim: ">= hollywood", bench: "fan-in", who: "wat", to: [2]string{"fan-in", "hollywood"}, limit: 1, show: times},
	{what: "fan-in, Go SDK, standard Go", aim: ">= 0.5x hollywood", bench: "fan-in", who: "go", to: [2]string{"fan-in", "hollywood"}, limit: 0.5, show: times},
	{what: "ask, native", aim: "<= goakt", bench: "ask", who: "native", to: [2]string{"ask", "goakt"}, limit: 1, atMost: true, show: times},
	{what: "ask, WAT", aim: "<= goakt", bench: "ask", who: "wat", to: [2]string{"ask", "goakt"}, limit: 1, atMost: true, show: times},
	{what: "ask, Go SDK, standard Go", aim: "<= goakt", bench: "ask", who: "go", to: [2]string{"ask", "goakt"}, limit: 1, atMost: true, show: times},
	{what: "spawn, no instance come back, WAT", aim: "<= 8 us", bench: "spawn-living", who: "wat", limit: 8, atMost: true, show: microseconds},
	{what: "spawn, no instance come back, TinyGo", aim: "<= 12 us", bench: "spawn-living", who: "tinygo", limit: 12, atMost: true, show: microseconds},
	{what: "spawn, no instance come back, standard Go", aim: "<= 60 us", bench: "spawn-living", who: "go", limit: 60, atMost: true, show: microseconds},
	{what: "awake actor, WAT", aim: "<= 13 KiB", bench: "memory-awake", who: "wat", limit: 13 << 10, atMost: true, show: kib},
	{what: "awake actor, TinyGo", aim: "<= 25 KiB", bench: "memory-awake", who: "tinygo", limit: 25 << 10, atMost: true, show: kib},
	{what: "awake actor, standard Go", aim: "<= 90 KiB", bench: "memory-awake", who: "go", limit: 90 << 10, atMost: true, show: kib},
	{what: "Go panic, restart, next message", aim: "<= 30 us", bench: "crash", who: "go", limit: 30, atMost: true, show: microseconds},
	{what: "64 pairs, two cores against one, native", aim: ">= 1.7x", bench: "pairs-2", who: "native", to: [2]string{"pairs-1", "native"}, limit: 1.7, show: times},
	{what: "64 pairs, two cores against one, WAT", aim: ">= 1.7x", bench: "pairs-2", who: "wat", to: [2]string{"pairs-1", "wat"}, limit: 1.7, show: times},
	{what: "64 pairs, two cores against one, standard Go", aim: ">= 1.7x", bench: "pairs-2", who: "go", to: [2]string{"pairs-1", "go"}, limit: 1.7, show: times},
	{what: "metering's overhead, geometric mean", aim: "<= 1.1x", bench: "compute: all programs, metering's overhead, geometric mean", who: "ours", limit: 1.1, atMost: true, show: times},
}

func count(x float64) string        { return fmt.Sprintf("%.0f", x) }
func nanoseconds(x float64) string  { return number4(x) + " ns" }
func microseconds(x float64) string { return number4(x) + " us" }
func kib(x float64) string          { return number4(x/1024) + " KiB" }
func times(x float64) string        { return fmt.Sprintf("%.2fx", x) }

// reached is the figure as the goal counts it, and whether it is met.
func (g *goal) reached(records map[string]record) (figure, met string) {
	r, ok := records[g.bench+"\x00"+g.who]
	if !ok {
		return "-", "not measured"
	}
	if r.Missing != "" {
		return "-", r.Missing
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
	return g.show(x), "**not met**"
}
