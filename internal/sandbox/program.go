package sandbox

import (
	"sync"
	"time"
)

// The program that compiles images in a process of its own, and what it is told.

// compileArg is the argument with which a program is started to compile; see CompileMain.
const compileArg = "__compile"

// linesArg is the argument with which it is started to read the lines of a module.
const linesArg = "__lines"

// compileLimits bound the process of one job.
type compileLimits struct {
	Time   time.Duration // of the processor, without the initialisation
	Init   time.Duration // deadline of the initialisation
	Memory uint64        // bytes
}

// program is the program that is started to compile.
type program struct {
	path string
	args []string
}

// watch ends the process that compiles when it exceeds its limits. Memory is what Go has
// from the system and has not given back. Where the kernel has limits, they are set somewhat
// higher, in case the watch comes too late.
type watch struct {
	limits compileLimits

	mu     sync.Mutex
	paused bool
	since  time.Duration // processor time when the pause began
	spared time.Duration // processor time of pauses
}
