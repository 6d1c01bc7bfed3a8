package main

// counted are benchmarks whose figures are counts; see the package guard.
var counted = []*benchmark{
	{name: "instructions", title: "ping-pong, instructions", unit: "x86 instructions a message", scale: 1},
	{name: "allocations", title: "ping-pong, allocations", unit: "a message", scale: 1},
}
