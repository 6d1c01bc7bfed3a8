package sandbox

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/internal/wasi"
)

// turnContext is the context of every call into a guest. It carries the instance, and its
// Value, which wazero calls once a call, is cheap.
type turnContext struct{ x *Instance }

func (*turnContext) Deadline() (deadline time.Time, ok bool) { return }
func (*turnContext) Done() <-chan struct{}                   { return nil }
func (*turnContext) Err() error                              { return nil }
func (*turnContext) Value(any) any                           { return nil }

// instanceKey is the key of the instance in other contexts of calls.
type instanceKey struct{}

// instanceOf is the instance that a call with this context has entered.
func instanceOf(ctx context.Context) *Instance {
	if c, ok := ctx.(*turnContext); ok {
		return c.x
	}
	return ctx.Value(instanceKey{}).(*Instance)
}

// WASIHost makes it a wasi.Carrier.
func (c *turnContext) WASIHost() wasi.Host { return c }

// Now implements wasi.Host.
func (c *turnContext) Now() int64 { return c.x.in.Now }

// Random implements wasi.Host.
func (c *turnContext) Random(p []byte) { c.x.random.read(p, &c.x.in.Seed, c.x.turnNumber()) }

// Stdout implements wasi.Host.
func (c *turnContext) Stdout(p []byte) { c.x.write(&c.x.stdout, abi.LogInfo, p) }

// Stderr implements wasi.Host.
func (c *turnContext) Stderr(p []byte) { c.x.write(&c.x.stderr, abi.LogWarn, p) }

// Args implements wasi.Host.
func (c *turnContext) Args() []string { return guestArgs }

// Env implements wasi.Host.
func (c *turnContext) Env() []string { return c.x.image.cfg.Env }

// Files implements wasi.Host.
func (c *turnContext) Files() *wasi.FileTable { return c.x.files }

// Charge implements wasi.Host.
func (c *turnContext) Charge(fuel uint64) { c.x.charge(fuel) }

// Wait implements wasi.Host.
func (c *turnContext) Wait() bool { return c.x.wait() }

// Exit implements wasi.Host.
func (c *turnContext) Exit(code uint32) { c.x.exit(code) }

// guestArgs is the command line that every guest sees.
var guestArgs = []string{"actor"}

// randomStream is a guest's random_get: ChaCha8 keyed with the actor's seed and
// the number of the turn, so that a turn which is run again draws the same.
type randomStream struct {
	source *rand.ChaCha8
	seed   [16]byte
	turn   uint64
	live   bool
}

func (r *randomStream) read(p []byte, seed *[16]byte, turn uint64) {
	if !r.live || r.turn != turn || r.seed != *seed {
		var key [32]byte
		copy(key[:], seed[:])
		binary.LittleEndian.PutUint64(key[16:], turn)
		copy(key[24:], "wasirand")
		if r.source == nil {
			r.source = rand.NewChaCha8(key)
		} else {
			r.source.Seed(key)
		}
		r.seed, r.turn, r.live = *seed, turn, true
	}
	_, _ = r.source.Read(p) // never fails
}
