package sandbox

import (
	"log/slog"

	"github.com/wasmactors/wasmactors/internal/clock"
)

// Defaults of [Config].
const (
	// DefaultQuantum is the most fuel that a turn spends between two checks of its
	// deadline and of a kill: a million units, about 0.1 ms.
	DefaultQuantum = 1_000_000
	// DefaultMaxInstances is how many instances may live in one engine.
	DefaultMaxInstances = 2_000_000
	// DefaultCacheBytes bounds the frozen images on disk.
	DefaultCacheBytes = 1 << 30
)

// Config says how an [Engine] works. It is immutable: every With method returns
// a changed copy. The zero value is not usable; begin with [NewConfig].
type Config struct {
	cacheDir     string
	cacheBytes   int64
	cacheKey     string // file
	compile      compileWhere
	compileWith  program // if compile is compileThere
	loads        int
	interpreter  bool
	quantum      uint64
	portable     bool
	maxInstances int
	mostMapped   int
	poolBytes    int64
	clock        clock.Clock
	thread       threadTime // nil: the platform's, if the clock is the machine's
	log          *slog.Logger
}

// NewConfig is the configuration for production: compiler, copy-on-write memory where the
// platform has it, no disk cache.
func NewConfig() Config {
	return Config{
		quantum:      DefaultQuantum,
		maxInstances: DefaultMaxInstances,
		cacheBytes:   DefaultCacheBytes,
		poolBytes:    DefaultPoolBytes,
		clock:        clock.Real(),
		log:          slog.New(slog.DiscardHandler),
	}
}

// WithCacheDir keeps compiled code and frozen images in dir, which is created
// when missing; "" means no disk cache. Several engines, also of several
// processes, may share a directory. A directory that cannot be written costs a
// warning, not an error.
func (c Config) WithCacheDir(dir string) Config { c.cacheDir = dir; return c }

// WithCacheBytes bounds what the frozen images in the cache directory may take;
// the ones that were not used for longest are evicted. n <= 0 means
// DefaultCacheBytes.
func (c Config) WithCacheBytes(n int64) Config {
	if n <= 0 {
		n = DefaultCacheBytes
	}
	c.cacheBytes = n
	return c
}

// WithCacheKeyFile names the file with the key that the cache is authenticated
// with, which is made when missing; "" means wasmactors/cache.key in the user's
// configuration folder. Without the key nothing in the cache is used. It must
// belong to the user, with mode 0600, outside of the cache directory.
func (c Config) WithCacheKeyFile(file string) Config { c.cacheKey = file; return c }

// compileWhere says which process compiles.
type compileWhere uint8

const (
	compileDefault compileWhere = iota // a process of this program, if it has called CompileMain
	compileHere
	compileThere
)

// WithCompileProgram names the program whose processes decode, rewrite, initialise
// and compile modules, with the limits ImageConfig.CompileTime and CompileMemory.
// The program must call CompileMain first thing in main, and be of the same
// version. Without it, it is this program itself if that has called CompileMain;
// if not, modules are compiled in this process, without limits on time and memory.
func (c Config) WithCompileProgram(path string) Config {
	c.compile, c.compileWith = compileThere, program{path, []string{compileArg}}
	return c
}

// WithCompileInProcess compiles in this process even if it has called CompileMain.
func (c Config) WithCompileInProcess() Config { c.compile = compileHere; return c }

// WithParallelLoads bounds how many modules are loaded at a time; all that are
// compiled together take at most half of the machine's memory, but one is always
// compiled. n <= 0 means GOMAXPROCS.
func (c Config) WithParallelLoads(n int) Config { c.loads = max(n, 0); return c }

// WithInterpreter runs guests in wazero's interpreter, for platforms without a
// compiler and for tests. Fuel is the same as with the compiler.
func (c Config) WithInterpreter(on bool) Config { c.interpreter = on; return c }

// WithQuantum bounds the fuel that a turn spends between two checks. At a check it yields,
// and ends if its fuel budget is spent, its deadline has passed, or it was killed. The
// amount is adapted so that it takes about 0.1 ms, up to this bound. 0 means
// DefaultQuantum; the least is 1000.
func (c Config) WithQuantum(fuel uint64) Config {
	if fuel == 0 {
		fuel = DefaultQuantum
	}
	c.quantum = max(fuel, 1000)
	return c
}

// WithPortableMemory keeps guest memories in Go's heap, as platforms without
// memfd must. For tests.
func (c Config) WithPortableMemory(on bool) Config { c.portable = on; return c }

// WithMaxInstances bounds the instances alive at a time, idle ones in the pools
// included. n <= 0 means DefaultMaxInstances.
func (c Config) WithMaxInstances(n int) Config {
	if n <= 0 {
		n = DefaultMaxInstances
	}
	c.maxInstances = n
	return c
}

// WithMostMapped bounds the instances whose memory is mapped from their image, idle ones in the
// pools included; beyond it memories are copies. That is for images with more than 64 KiB that
// is not zero: those of standard Go. Each takes one or two of the mappings that Linux grants a
// process (vm.max_map_count). n <= 0 means a quarter of them.
func (c Config) WithMostMapped(n int) Config { c.mostMapped = max(n, 0); return c }

// WithClock sets the clock by which deadlines of turns are measured. The time
// that a guest sees is not from here but from [Entry].
func (c Config) WithClock(cl clock.Clock) Config { c.clock = cl; return c }

// WithLog sets where the engine's own warnings go (a cache that cannot be
// written). The log of guests is not from here but from [Entry].
func (c Config) WithLog(l *slog.Logger) Config { c.log = l; return c }

// WithPoolBytes bounds the estimated resident memory of idle instances, which are kept so
// that the next actors get one at once; 0 keeps none. What actors hold does not count.
func (c Config) WithPoolBytes(n int64) Config { c.poolBytes = max(n, 0); return c }
